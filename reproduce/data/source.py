"""The four original idx files that travel with the package, and what identifies them."""

import hashlib
import importlib.resources
import lzma
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.uint8]
Arrays = dict[str, Array]

# The four arrays, by the names of `Mnist`'s fields.
TRAIN_IMAGES, TRAIN_LABELS = "train_images", "train_labels"
TEST_IMAGES, TEST_LABELS = "test_images", "test_labels"

_UNSIGNED_BYTE = 0x08


class DataError(RuntimeError):
    """MNIST cannot be had: the message names the file, the folder and the remedy."""


class DamagedError(DataError):
    """A stored copy is not the original data: the message names the file and the folder."""


@dataclass(frozen=True)
class IdxFile:
    """One file in the idx format: unsigned bytes behind a header that gives their shape.

    Attributes:
        name: the file's original name.
        shape: the shape of its array.
        md5: MD5 of the whole file, header included, as hexadecimal digits.
    """

    name: str
    shape: tuple[int, ...]
    md5: str

    @property
    def header(self) -> bytes:
        """The bytes before the data: the type, the rank, then each dimension, big-endian."""
        magic = bytes([0, 0, _UNSIGNED_BYTE, len(self.shape)])
        return magic + b"".join(n.to_bytes(4, "big") for n in self.shape)

    def check(self, array: NDArray[np.generic]) -> None:
        """Raises `ValueError` unless `array` holds this file's data, to the byte."""
        if array.dtype != np.uint8 or array.shape != self.shape:
            raise ValueError(
                f"expected uint8 of shape {self.shape}, received {array.dtype} of {array.shape}"
            )
        self._check_md5(self.header, np.ascontiguousarray(array).data)

    def parse(self, content: bytes) -> Array:
        """Returns the array in the idx file `content`; raises `ValueError` if it is another."""
        if not content.startswith(self.header):
            raise ValueError("it does not start with the header of that idx file")
        size = len(self.header) + math.prod(self.shape)
        if len(content) != size:
            raise ValueError(f"expected {size} bytes, received {len(content)}")
        self._check_md5(content)
        return np.frombuffer(content, np.uint8, offset=len(self.header)).reshape(self.shape)

    def _check_md5(self, *parts: bytes | memoryview) -> None:
        digest = hashlib.md5(usedforsecurity=False)
        for part in parts:
            digest.update(part)
        if digest.hexdigest() != self.md5:
            raise ValueError(f"expected MD5 {self.md5}, received {digest.hexdigest()}")


@dataclass(frozen=True)
class Source:
    """A folder with the xz-compressed idx files of a data set.

    Attributes:
        folder: where they lie, as `<name>.xz`.
        files: the idx file of each of `Mnist`'s four fields.
    """

    folder: Traversable
    files: Mapping[str, IdxFile]

    def read(self) -> Arrays:
        """Returns the four arrays in the files' own order.

        Raises:
            DataError: a file is missing, truncated or not the original.
        """
        return {field: self._read(file) for field, file in self.files.items()}

    def _read(self, file: IdxFile) -> Array:
        packed = f"{file.name}.xz"
        try:
            return file.parse(lzma.decompress((self.folder / packed).read_bytes()))
        except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
            raise DataError(
                f"The MNIST file {packed} in {self.folder} is missing or damaged ({error}). "
                "It came with this package: install that again, or check the file out anew."
            ) from error


MNIST = Source(
    folder=importlib.resources.files("reproduce.data") / "mnist",
    files={
        TRAIN_IMAGES: IdxFile(
            "train-images-idx3-ubyte", (60_000, 28, 28), "6bbc9ace898e44ae57da46a324031adb"
        ),
        TRAIN_LABELS: IdxFile(
            "train-labels-idx1-ubyte", (60_000,), "a25bea736e30d166cdddb491f175f624"
        ),
        TEST_IMAGES: IdxFile(
            "t10k-images-idx3-ubyte", (10_000, 28, 28), "2646ac647ad5339dbf082846283269ea"
        ),
        TEST_LABELS: IdxFile(
            "t10k-labels-idx1-ubyte", (10_000,), "27ae3e4e09519cfbb04c329615203637"
        ),
    },
)
