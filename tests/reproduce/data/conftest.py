"""A small data set in the form of the original files, for the paths that real MNIST is slow on."""

from pathlib import Path

import numpy as np
import pytest

from reproduce.data.source import (
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Arrays,
    Source,
)
from tests.reproduce.data._carried import carried


@pytest.fixture(scope="session")
def tiny_arrays() -> Arrays:
    rng = np.random.default_rng(0)
    arrays = {}
    for images, labels, n in ((TRAIN_IMAGES, TRAIN_LABELS, 40), (TEST_IMAGES, TEST_LABELS, 12)):
        arrays[images] = rng.integers(0, 256, (n, 28, 28), np.uint8)
        arrays[labels] = rng.integers(0, 10, n, np.uint8)
    # An image twice with one label and once with another: the order must survive both.
    arrays[TRAIN_IMAGES][[5, 9]] = arrays[TRAIN_IMAGES][2]
    arrays[TRAIN_LABELS][[2, 5, 9]] = 7, 3, 7
    return arrays


@pytest.fixture
def tiny(tmp_path: Path, tiny_arrays: Arrays) -> Source:
    return carried(tiny_arrays, tmp_path / "carried files")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "tfds data"
