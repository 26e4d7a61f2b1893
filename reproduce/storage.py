"""Files that are whole or not there, and errors that say which folder cannot be used and why."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StorageError(Exception):
    """A folder cannot be read or written: full disk, missing permission."""


def failure(action: str, path: Path, error: OSError) -> StorageError:
    """Returns the error that says what could not be done, with what and why.

    Args:
        action: What was tried, "write" for instance.
        path: With which file or folder.
        error: The operating system's.
    """
    advice = "; free some space and run the same command again" if error.errno in _FULL else ""
    return StorageError(
        f"cannot {action} {path}: {error.strerror or error}{advice}. "
        "Every record finished before is kept."
    )


@contextmanager
def explained(action: str, path: Path) -> Iterator[None]:
    """Turns an error of the operating system into a `StorageError`; arguments as `failure`'s."""
    try:
        yield
    except OSError as error:
        raise failure(action, path, error) from error


def prepared(folder: Path) -> Path:
    """Makes a folder if it is not there, and returns it.

    Raises:
        StorageError: It cannot be made.
    """
    with explained("make", folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(path: Path, content: bytes, temporary: Path | None = None) -> None:
    """Writes a file, whole or not at all.

    Args:
        path: The file.
        content: Its bytes.
        temporary: Written first, in the same folder, then renamed; gone if that fails. `None`: one
            of this process's own.

    Raises:
        StorageError: What was at `path` is as it was.
    """
    temporary = temporary or path.with_name(f".{path.name}.{os.getpid()}.part")
    prepared(path.parent)
    fill(temporary, content)
    try:
        with explained("write", path):
            os.replace(temporary, path)
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except StorageError:
        _remove(temporary)
        raise


def fill(path: Path, content: bytes) -> None:
    """Writes a file over what is there and cuts it to length only then, or removes it.

    Raises:
        StorageError: There is no room, or no permission.
    """
    try:
        with (
            explained("write", path),
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as stream,
        ):
            stream.write(content)
            stream.flush()
            stream.truncate(len(content))
            os.fsync(stream.fileno())
    except StorageError:
        _remove(path)
        raise


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
