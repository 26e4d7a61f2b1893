"""A small data set in the form of the original files, for the paths that real MNIST is slow on."""

import hashlib
import lzma
from pathlib import Path

import numpy as np
import pytest

from reproduce.data.source import (
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Arrays,
    IdxFile,
    Source,
)

NAMES = {
    TRAIN_IMAGES: "train-images-idx3-ubyte",
    TRAIN_LABELS: "train-labels-idx1-ubyte",
    TEST_IMAGES: "t10k-images-idx3-ubyte",
    TEST_LABELS: "t10k-labels-idx1-ubyte",
}


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
    folder = tmp_path / "carried files"
    folder.mkdir()
    files = {}
    for field, array in tiny_arrays.items():
        content = IdxFile(NAMES[field], array.shape, "").header + array.tobytes()
        (folder / f"{NAMES[field]}.xz").write_bytes(lzma.compress(content))
        (folder / NAMES[field]).write_bytes(content)
        files[field] = IdxFile(NAMES[field], array.shape, hashlib.md5(content).hexdigest())
    return Source(folder, files)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "tfds data"
