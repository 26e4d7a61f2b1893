from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reproduce.data import arrays
from reproduce.data.source import TEST_LABELS, Arrays, DamagedError, Source


@pytest.fixture
def stored(tiny: Source, tiny_arrays: Arrays, tmp_path: Path) -> Path:
    folder = tmp_path / "arrays"
    arrays.write(tiny_arrays, folder)
    return folder


def test_reads_what_was_written(tiny: Source, tiny_arrays: Arrays, stored: Path) -> None:
    for field, array in arrays.read(tiny, stored).items():
        np.testing.assert_array_equal(array, tiny_arrays[field])
    assert sorted(p.name for p in stored.iterdir()) == sorted(f"{f}.npy" for f in tiny_arrays)


def test_absent_arrays_are_no_damage(tiny: Source, stored: Path) -> None:
    (stored / f"{TEST_LABELS}.npy").unlink()
    with pytest.raises(FileNotFoundError):
        arrays.read(tiny, stored)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:60],
        lambda content: b"",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: content.replace(b"|u1", b"|i1"),
        lambda content: content.replace(b"(12,)", b"(11,)"),
    ],
    ids=["truncated", "only a header", "empty", "bit flipped", "other type", "other shape"],
)
def test_damage_is_named(tiny: Source, stored: Path, damage: Callable[[bytes], bytes]) -> None:
    path = stored / f"{TEST_LABELS}.npy"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedError) as raised:
        arrays.read(tiny, stored)
    assert str(raised.value).startswith(f"test_labels.npy in {stored} is damaged: ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, 139), mask=st.integers(1, 255))
def test_no_changed_byte_yields_other_data(
    tiny: Source, tiny_arrays: Arrays, stored: Path, position: int, mask: int
) -> None:
    arrays.write(tiny_arrays, stored)
    path = stored / f"{TEST_LABELS}.npy"
    content = bytearray(path.read_bytes())
    assert len(content) == 140
    content[position] ^= mask
    path.write_bytes(content)
    try:
        read = arrays.read(tiny, stored)[TEST_LABELS]
    except DamagedError:
        return
    np.testing.assert_array_equal(read, tiny_arrays[TEST_LABELS])
