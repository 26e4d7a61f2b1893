"""`load_mnist`: from the cache, else from the TFDS data set, else from the files we carry."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from reproduce.data import arrays
from reproduce.data.source import MNIST, Array, Arrays, DamagedError, DataError, Source

_REMEDY = "choose another folder with --data-dir or the environment variable TFDS_DATA_DIR."


@dataclass(frozen=True, eq=False)
class Mnist:
    """MNIST in the order of its original files; the arrays are read-only.

    Attributes:
        train_images: uint8 (60000, 28, 28), grey values 0 to 255.
        train_labels: uint8 (60000,), digits 0 to 9.
        test_images: uint8 (10000, 28, 28).
        test_labels: uint8 (10000,).
    """

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array


def load_mnist(data_dir: Path | str | None = None) -> Mnist:
    """Loads MNIST, preparing it first where that has not been done; no network is used.

    The TFDS data set `mnist` 3.0.1 under `data_dir` is used if there is one, and prepared from
    the files in this package if not (about a minute, said on standard error). Its decoded
    arrays are kept in `lerh_tf/` beside it, so later loads are fast. Every load checks the arrays
    against the original files' MD5; damage to what this package wrote is said and repaired.

    Preparing runs TensorFlow: set its thread counts and devices before.

    Args:
        data_dir: folder of TFDS data sets. Default: the environment variable `TFDS_DATA_DIR`,
            else a folder in the platform's cache directory.

    Returns:
        The same arrays whoever prepared the data set.

    Raises:
        DataError: the folder cannot be used, or holds a data set of somebody else's that is not
            MNIST to the byte, or a file of this package is damaged.
    """
    return load(MNIST, resolve_data_dir(data_dir))


def resolve_data_dir(data_dir: Path | str | None = None) -> Path:
    """Returns the absolute folder of TFDS data sets that `load_mnist(data_dir)` uses."""
    cache = user_cache_path("lerh-tf", appauthor=False) / "tensorflow_datasets"
    chosen = os.fspath(data_dir or os.environ.get("TFDS_DATA_DIR") or cache)
    if re.match(r"\w{2,}:/", chosen):
        raise DataError(f"`data_dir` must be a local folder. Received: {chosen}")
    return Path(chosen).expanduser().absolute()


def load(source: Source, data_dir: Path) -> Mnist:
    """Does what `load_mnist` does, from any `source` of four idx files."""
    try:
        return Mnist(**arrays.read(source, _arrays_folder(data_dir)))
    except (OSError, DamagedError):
        return Mnist(**_restore(source, data_dir))


def _restore(source: Source, data_dir: Path) -> Arrays:
    folder = _arrays_folder(data_dir)
    try:
        with _alone(data_dir):
            try:  # another process may have written them while this one waited
                return arrays.read(source, folder)
            except FileNotFoundError:
                pass
            except DamagedError as damage:
                _say(f"{damage}. Restoring it from the TFDS data set in {data_dir}.")
            arrays.write(_from_tfds(source, data_dir), folder)
            return arrays.read(source, folder)
    except OSError as error:
        return _without_keeping(source, data_dir, error)


def _without_keeping(source: Source, data_dir: Path, error: OSError) -> Arrays:
    from reproduce.data import builder

    if not os.path.lexists(builder.dataset_folder(data_dir)):
        raise DataError(f"MNIST cannot be kept in {data_dir}: {error}; {_REMEDY}") from error
    _say(f"Decoding MNIST at every load, as its arrays cannot be kept in {data_dir}: {error}.")
    return builder.decode(source.read(), data_dir)


def _from_tfds(source: Source, data_dir: Path) -> Arrays:
    # Importing TensorFlow Datasets takes seconds, which loads from the cache need not spend.
    from reproduce.data import builder

    originals = source.read()
    _check_encoding(data_dir)
    folder = builder.dataset_folder(data_dir)
    if not os.path.lexists(folder):
        _prepare(originals, data_dir)
    try:
        return builder.decode(originals, data_dir)
    except DamagedError as damage:
        if not (folder / builder.MARKER).exists():
            raise DataError(
                f"MNIST cannot be loaded: {damage}. It was not prepared by this package and is "
                f"left as it is: remove {folder} to have it prepared anew, or {_REMEDY}"
            ) from damage
        _say(f"{damage}. Preparing it anew.")
    _prepare(originals, data_dir)
    return builder.decode(originals, data_dir)


def _check_encoding(data_dir: Path) -> None:
    # TFDS hands paths to protocol buffers, which are UTF-8.
    try:
        os.fspath(data_dir).encode()
    except UnicodeEncodeError:
        shown = os.fspath(data_dir).encode(errors="surrogateescape").decode(errors="replace")
        raise DataError(
            f"`data_dir` must be of letters that this locale has, to prepare MNIST there. "
            f"Received: {shown}; set LC_ALL=C.UTF-8, or {_REMEDY}"
        ) from None


def _prepare(originals: Arrays, data_dir: Path) -> None:
    from reproduce.data import builder

    _say(f"Preparing MNIST in {data_dir}, once; this takes about a minute.")
    start = time.monotonic()
    builder.prepare(originals, data_dir, scratch=_own_folder(data_dir) / "preparing")
    _say(f"MNIST is prepared ({time.monotonic() - start:.0f} s).")


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """Waits until no other process prepares MNIST in `data_dir`, and keeps others waiting."""
    _own_folder(data_dir).mkdir(parents=True, exist_ok=True)
    lock = FileLock(_own_folder(data_dir) / "mnist.lock")
    try:
        held = lock.acquire(timeout=0)
    except Timeout:
        _say(f"Waiting for another process that prepares MNIST in {data_dir}.")
        held = lock.acquire()
    with held:
        yield


def _own_folder(data_dir: Path) -> Path:
    return data_dir / "lerh_tf"


def _arrays_folder(data_dir: Path) -> Path:
    return _own_folder(data_dir) / "mnist-3.0.1"


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
