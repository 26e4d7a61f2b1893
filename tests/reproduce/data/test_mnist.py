"""The real MNIST, prepared once for the whole run of the tests."""

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds

from reproduce.data import Mnist
from reproduce.data.source import MNIST


def test_arrays_are_the_original_files_in_their_order(mnist: Mnist) -> None:
    for field, original in MNIST.read().items():
        array = getattr(mnist, field)
        assert array.dtype == np.uint8
        np.testing.assert_array_equal(array, original)
    assert mnist.train_images.shape == (60_000, 28, 28)
    assert mnist.test_images.shape == (10_000, 28, 28)
    assert mnist.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert mnist.test_labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


def test_arrays_cannot_be_written_to(mnist: Mnist) -> None:
    with pytest.raises(ValueError, match="read-only"):
        mnist.train_images[0] = 0


def test_plain_tfds_load_reads_the_folder(
    mnist_dir: Path, mnist: Mnist, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError(f"the network was asked for: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    test, info = tfds.load("mnist", split="test", data_dir=mnist_dir, batch_size=-1, with_info=True)
    assert info.full_name == "mnist/3.0.1"
    assert info.splits["train"].num_examples == 60_000
    images, labels = test["image"].numpy(), test["label"].numpy()
    assert images.shape == (10_000, 28, 28, 1)

    def rows(images: np.ndarray, labels: np.ndarray) -> list[bytes]:
        pairs = zip(images, labels.astype(np.uint8), strict=True)
        return sorted(image.tobytes() + label.tobytes() for image, label in pairs)

    assert rows(images, labels) == rows(mnist.test_images, mnist.test_labels)


def test_later_loads_are_silent_and_import_no_tensorflow(mnist_dir: Path) -> None:
    script = (
        "import sys; from reproduce.data import load_mnist; load_mnist(sys.argv[1]);"
        "assert not {'tensorflow', 'tensorflow_datasets'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(mnist_dir)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
