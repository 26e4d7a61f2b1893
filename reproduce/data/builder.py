"""MNIST as TFDS data set `mnist` 3.0.1, written from arrays and read back. Imports TensorFlow."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from numpy.typing import NDArray

from reproduce.data.source import (
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Array,
    Arrays,
    DamagedError,
)

# Lies in the folders that this package prepared: only those may it ever replace.
MARKER = "PREPARED_BY_LERH_TF.txt"
_MARKER_TEXT = (
    "Prepared by lerh-tf from the MNIST files it carries.\n"
    "Found damaged, this folder is prepared anew without asking.\n"
)

_SPLITS = {"train": (TRAIN_IMAGES, TRAIN_LABELS), "test": (TEST_IMAGES, TEST_LABELS)}
_READ_BATCH = 10_000


class MnistBuilder(  # TFDS's own builder keeps the registered name
    tfds.core.GeneratorBasedBuilder,
    skip_registration=True,  # type: ignore[call-arg]
):
    """TFDS's `mnist` in name, version, features and keys, and therefore in order.

    Args:
        arrays: images and labels by `Source`'s field names.
        data_dir: the folder that holds TFDS data sets.
    """

    name = "mnist"
    VERSION = tfds.core.Version("3.0.1")

    def __init__(self, *, arrays: Arrays, data_dir: Path) -> None:
        self._arrays = arrays
        super().__init__(data_dir=os.fspath(data_dir))

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description="The MNIST database of handwritten digits.",
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(28, 28, 1)),
                    "label": tfds.features.ClassLabel(num_classes=10),
                }
            ),
            supervised_keys=("image", "label"),
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
        del dl_manager  # there is nothing to download
        return {
            split: self._generate_examples(self._arrays[images], self._arrays[labels])
            for split, (images, labels) in _SPLITS.items()
        }

    def _generate_examples(
        self, images: Array, labels: Array
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        # The key decides where TFDS puts an example: the index, as in TFDS's own builder.
        for index, (image, label) in enumerate(zip(images, labels, strict=True)):
            yield index, {"image": image[..., None], "label": int(label)}


def dataset_folder(data_dir: Path) -> Path:
    """Returns where TFDS keeps `mnist` 3.0.1 under `data_dir`."""
    return data_dir / MnistBuilder.name / str(MnistBuilder.VERSION)


def prepare(arrays: Arrays, data_dir: Path, scratch: Path) -> None:
    """Writes the TFDS data set under `data_dir`, in place of one that this package prepared.

    It appears whole or not at all: it is written under `scratch`, on the same file system, and
    moved. The caller sees to it that nobody else uses `scratch`.
    """
    shutil.rmtree(scratch, ignore_errors=True)  # left by a preparation that was interrupted
    builder = MnistBuilder(arrays=arrays, data_dir=scratch)
    if not sys.stderr.isatty():  # its bars would fill a log
        tfds.disable_progress_bar()
    config = tfds.download.DownloadConfig(try_download_gcs=False)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that it downloads
        builder.download_and_prepare(download_config=config)
    prepared, target = dataset_folder(scratch), dataset_folder(data_dir)
    (prepared / MARKER).write_text(_MARKER_TEXT, encoding="utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    if (target / MARKER).exists():
        target.rename(scratch / "replaced")
    if not target.exists():  # TFDS itself may have prepared one meanwhile: that one stays
        prepared.rename(target)
    shutil.rmtree(scratch)


def decode(originals: Arrays, data_dir: Path) -> Arrays:
    """Returns the examples of the TFDS data set under `data_dir` in the order of `originals`.

    TFDS stores examples in the order of a hash and may cut them into any number of files, so the
    order they are read in is no property of the data; the order of the original files is.

    Raises:
        DamagedError: the data set cannot be read, or its examples are not the original ones.
    """
    folder = dataset_folder(data_dir)
    decoded: Arrays = {}
    try:
        builder = MnistBuilder(arrays=originals, data_dir=data_dir)
        for split, (images, labels) in _SPLITS.items():
            read = _read_split(builder, split)
            wanted = originals[images], originals[labels]
            decoded[images], decoded[labels] = _in_order_of(wanted, read)
    except Exception as error:  # a damaged folder makes TFDS fail in any way whatever
        message = f"the TFDS data set in {folder} is damaged: {type(error).__name__}: {error}"
        raise DamagedError(message) from error
    return decoded


def _read_split(builder: MnistBuilder, split: str) -> tuple[Array, Array]:
    batches = builder.as_dataset(split=split, batch_size=_READ_BATCH, shuffle_files=False)
    pairs = [(batch["image"], batch["label"]) for batch in batches.as_numpy_iterator()]
    images, labels = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return images[..., 0], labels.astype(np.uint8)


def _in_order_of(wanted: tuple[Array, Array], read: tuple[Array, Array]) -> tuple[Array, Array]:
    wanted_rows, read_rows = _rows(*wanted), _rows(*read)
    if len(read_rows) != len(wanted_rows):
        raise ValueError(f"expected {len(wanted_rows)} examples, read {len(read_rows)}")
    order = np.empty(len(wanted_rows), np.intp)
    order[np.argsort(wanted_rows)] = np.argsort(read_rows)
    if not np.array_equal(read_rows[order], wanted_rows):
        raise ValueError("its examples are not those of the original files")
    return read[0][order], read[1][order]


def _rows(images: Array, labels: Array) -> NDArray[np.void]:
    """Returns each example's image and label as one value that sorts and compares by its bytes."""
    table = np.concatenate([images.reshape(len(images), -1), labels[:, None]], axis=1)
    return table.view(f"V{table.shape[1]}")[:, 0]
