"""Images and labels in the form of the original files."""

import hashlib
import lzma
from pathlib import Path

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


def carried(arrays: Arrays, folder: Path) -> Source:
    """Writes images and labels in the form of the original files."""
    folder.mkdir()
    files = {}
    for field, array in arrays.items():
        content = IdxFile(NAMES[field], array.shape, "").header + array.tobytes()
        (folder / f"{NAMES[field]}.xz").write_bytes(lzma.compress(content))
        (folder / NAMES[field]).write_bytes(content)
        files[field] = IdxFile(NAMES[field], array.shape, hashlib.md5(content).hexdigest())
    return Source(folder, files)
