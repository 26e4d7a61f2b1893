import lzma
from pathlib import Path

import numpy as np
import pytest

from reproduce.data.source import MNIST, TRAIN_IMAGES, TRAIN_LABELS, Arrays, DataError, Source


def test_read_returns_the_arrays(tiny: Source, tiny_arrays: Arrays) -> None:
    read = tiny.read()
    assert read.keys() == tiny_arrays.keys()
    for field, array in tiny_arrays.items():
        np.testing.assert_array_equal(read[field], array)


def damage(path: Path, kind: str) -> None:
    packed = path.read_bytes()
    content = lzma.decompress(packed)
    if kind == "missing":
        path.unlink()
    elif kind == "truncated":
        path.write_bytes(packed[: len(packed) // 2])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "not xz":
        path.write_bytes(content)
    elif kind == "bit flipped":
        path.write_bytes(packed[:100] + bytes([packed[100] ^ 1]) + packed[101:])
    elif kind == "short content":
        path.write_bytes(lzma.compress(content[:-1]))
    elif kind == "other content":
        path.write_bytes(lzma.compress(content[:-1] + bytes([content[-1] ^ 1])))
    elif kind == "other header":
        path.write_bytes(lzma.compress(b"\0\0\x09" + content[3:]))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("missing", "No such file"),
        ("truncated", "end-of-stream"),
        ("empty", "end-of-stream"),
        ("not xz", "not supported"),
        ("bit flipped", "Corrupt"),
        ("short content", r"expected 31376 bytes, received 31375"),
        ("other content", r"expected MD5 \w{32}, received \w{32}"),
        ("other header", "header"),
    ],
)
def test_damaged_file_is_named_with_folder_and_reason(tiny: Source, kind: str, reason: str) -> None:
    name = f"{tiny.files[TRAIN_IMAGES].name}.xz"
    damage(Path(str(tiny.folder)) / name, kind)
    with pytest.raises(DataError, match=reason) as raised:
        tiny.read()
    assert f"{name} in {tiny.folder}" in str(raised.value)
    assert "install that again" in str(raised.value)


def test_check_refuses_another_type_or_shape() -> None:
    labels = MNIST.files[TRAIN_LABELS]
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(60000,\), received int64"):
        labels.check(np.zeros(60_000, np.int64))
    with pytest.raises(ValueError, match=r"received uint8 of \(59999,\)"):
        labels.check(np.zeros(59_999, np.uint8))
    with pytest.raises(ValueError, match="expected MD5 a25bea736e30d166cdddb491f175f624"):
        labels.check(np.zeros(60_000, np.uint8))


def test_licence_and_source_lie_beside_the_files() -> None:
    readme = (MNIST.folder / "README.md").read_text(encoding="utf-8")
    assert all(file.name in readme and file.md5 in readme for file in MNIST.files.values())
    assert "CC BY-SA 3.0" in (MNIST.folder / "LICENSE").read_text(encoding="utf-8")
