"""The decoded arrays as `.npy` files, each checked whole at every load."""

import os
from pathlib import Path

import numpy as np

from reproduce.data.source import Array, Arrays, DamagedError, IdxFile, Source


def read(source: Source, folder: Path) -> Arrays:
    """Returns the four arrays in `folder`, memory-mapped and read-only.

    Raises:
        FileNotFoundError: one has not been written yet.
        DamagedError: one does not hold the source's data, to the byte.
    """
    return {field: _read(file, _path(folder, field)) for field, file in source.files.items()}


def write(arrays: Arrays, folder: Path) -> None:
    """Writes each array under `folder`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for field, array in arrays.items():
        path = _path(folder, field)
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as stream:
            np.save(stream, array)
        os.replace(temporary, path)


def _path(folder: Path, field: str) -> Path:
    return folder / f"{field}.npy"


def _read(file: IdxFile, path: Path) -> Array:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        file.check(array)
    except FileNotFoundError:
        raise
    except Exception as error:  # NumPy fails in any way whatever on a damaged header
        raise DamagedError(f"{path.name} in {path.parent} is damaged: {error}") from error
    return array
