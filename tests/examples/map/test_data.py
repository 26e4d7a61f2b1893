"""What a run sees: disjoint, seeded, as wrong as said; and the test set apart."""

from typing import Any

import numpy as np
import pytest

from examples.map import data
from reproduce.data import Mnist


@pytest.fixture
def mnist() -> Mnist:
    """Images whose first two pixels number them; the test images lie above."""
    numbers = np.arange(3000)
    images = np.zeros((3000, 28, 28), np.uint8)
    images[:, 0, 0], images[:, 0, 1] = numbers // 256, numbers % 256
    labels = (numbers % 10).astype(np.uint8)
    return Mnist(images[:2000], labels[:2000], images[2000:], labels[2000:])


def numbers(inputs: data.Array) -> list[int]:
    return list(np.round(inputs[:, :2] * 255.0).astype(int) @ [256, 1])


def test_parts_are_disjoint_and_of_the_training_images(mnist: Mnist) -> None:
    found = data.split("mnist", lambda: mnist, 0, 1000, 500, 0.0)
    seen = numbers(found.training[0]), numbers(found.validation[0])
    assert len(set(seen[0] + seen[1])) == 1500
    assert max(seen[0] + seen[1]) < 2000
    np.testing.assert_array_equal(np.array(seen[0]) % 10, found.training[1])
    assert set(numbers(data.test_set("mnist", lambda: mnist)[0])) == set(range(2000, 3000))


def test_seeds_draw_other_images_and_repeat(mnist: Mnist) -> None:
    def drawn(seed: int) -> list[int]:
        return numbers(data.split("mnist", lambda: mnist, seed, 100, 50, 0.4).training[0])

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_labels_are_as_wrong_in_both_parts(mnist: Mnist) -> None:
    found = data.split("mnist", lambda: mnist, 0, 1000, 1000, 0.4)
    right = np.array(numbers(found.training[0])) % 10
    assert (right != found.training[1]).mean() == pytest.approx(0.4, abs=0.05)
    assert (found.clean_labels != found.validation[1]).mean() == pytest.approx(0.4, abs=0.05)
    np.testing.assert_array_equal(np.array(numbers(found.validation[0])) % 10, found.clean_labels)


def test_wrong_labels_are_every_other_class() -> None:
    wrong = data.with_wrong_labels(np.zeros(9000, int), 1.0, 0)
    counts = np.bincount(wrong, minlength=10)
    assert counts[0] == 0
    assert counts[1:].min() > 850


def test_mnist1d_is_made_offline_and_leaves_the_global_generator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a network was asked"))
    monkeypatch.setattr(data, "_MNIST1D_POOL", 60)
    monkeypatch.setattr(data, "_MNIST1D_TEST", 40)
    data.mnist1d.cache_clear()
    np.random.seed(5)  # noqa: NPY002
    before: Any = np.random.get_state()  # noqa: NPY002
    found = data.split("mnist1d", lambda: pytest.fail("MNIST was loaded"), 0, 40, 20, 0.0)
    test = data.test_set("mnist1d", lambda: pytest.fail("MNIST was loaded"))
    after: Any = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(after[1], before[1])
    assert found.training[0].shape == (40, 40)
    assert len(test[0]) == 40
    joined = np.concatenate([found.training[0], found.validation[0], test[0]])
    assert len(np.unique(joined, axis=0)) == 100
    data.mnist1d.cache_clear()
