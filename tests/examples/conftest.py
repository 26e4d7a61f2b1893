import numpy as np
import pytest

from reproduce.data import Mnist


@pytest.fixture(scope="module")
def data() -> Mnist:
    """Two classes that a bright half of the image tells apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=1000).astype("uint8")
    images = rng.integers(100, size=(1000, 28, 28)).astype("uint8")
    images[labels == 1, :14] += 100
    images[labels == 0, 14:] += 100
    return Mnist(images, labels, images, labels)
