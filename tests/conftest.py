"""What tests of both packages share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reproduce.data import Mnist, load_mnist, resolve_data_dir
from tests.processes import Start, processes


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes, as `subprocess.Popen` does; none outlives its test."""
    with processes() as start:
        yield start


@pytest.fixture(scope="session")
def mnist_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with MNIST prepared: `TFDS_DATA_DIR` if set, else one for this run of the tests."""
    if os.environ.get("TFDS_DATA_DIR"):
        folder = resolve_data_dir()
    else:
        base = tmp_path_factory.getbasetemp()
        # Workers of pytest-xdist share one preparation, which the loader's own lock guards.
        folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tfds data"
    load_mnist(folder)
    return folder


@pytest.fixture(scope="session")
def mnist(mnist_dir: Path) -> Mnist:
    return load_mnist(mnist_dir)
