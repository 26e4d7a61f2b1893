"""MNIST as TensorFlow Datasets itself prepares it, without the download."""

import os
from pathlib import Path

import pytest
import tensorflow_datasets as tfds

from reproduce.data.source import TRAIN_LABELS, Source


def prepare_with_tfds(source: Source, data_dir: Path, shards: int = 1) -> None:
    """Prepares `source` with TFDS's own builder; only the download is replaced."""
    files = {name: Path(str(source.folder)) / file.name for name, file in source.files.items()}
    keys = {
        "train_data": "train_images",
        "train_labels": "train_labels",
        "test_data": "test_images",
        "test_labels": "test_labels",
    }
    official = tfds.image_classification.mnist
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(official, "_TRAIN_EXAMPLES", source.files[TRAIN_LABELS].shape[0])
        patch.setattr(official, "_TEST_EXAMPLES", source.files["test_labels"].shape[0])
        patch.setattr(
            tfds.download.DownloadManager,
            "download_and_extract",
            lambda self, urls: {key: os.fspath(files[keys[key]]) for key in urls},
        )
        dataset = tfds.builder("mnist", data_dir=data_dir)
        assert type(dataset).__module__.startswith("tensorflow_datasets.")
        config = tfds.download.DownloadConfig(num_shards=shards)
        dataset.download_and_prepare(download_config=config)
