import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow_datasets as tfds
from filelock import FileLock

from reproduce.data import builder
from reproduce.data.loading import Mnist, load
from reproduce.data.source import TRAIN_IMAGES, TRAIN_LABELS, Arrays, DataError, Source
from tests.processes import Start
from tests.reproduce.data._carried import carried
from tests.reproduce.data._official import prepare_with_tfds

FIELDS = ("train_images", "train_labels", "test_images", "test_labels")


def assert_same(mnist: Mnist, expected: Arrays) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(mnist, field), expected[field])


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def train_records(data_dir: Path) -> Path:
    return builder.dataset_folder(data_dir) / "mnist-train.tfrecord-00000-of-00001"


def forget_arrays(data_dir: Path) -> None:
    for path in data_dir.glob("lerh_tf/mnist-3.0.1/*.npy"):
        path.unlink()


@pytest.fixture(scope="module")
def prepared(tiny_arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders prepared once, to be copied: `ours` by this package, the others by TFDS itself."""
    folder = tmp_path_factory.mktemp("prepared")
    source = carried(tiny_arrays, folder / "carried files")
    load(source, folder / "ours")
    for shards in (1, 3):
        prepare_with_tfds(source, folder / f"official-{shards}", shards)
    return folder


@pytest.fixture
def ours(prepared: Path, data_dir: Path) -> Path:
    """A folder that this package prepared."""
    shutil.copytree(prepared / "ours", data_dir)
    return data_dir


@pytest.fixture
def official(prepared: Path, data_dir: Path) -> Path:
    """A data set that TFDS prepared itself."""
    shutil.copytree(prepared / "official-1", data_dir)
    return builder.dataset_folder(data_dir)


def test_first_load_prepares_and_says_so_later_ones_are_silent(
    tiny: Source, tiny_arrays: Arrays, data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert_same(load(tiny, data_dir), tiny_arrays)
    said = capfd.readouterr()
    assert f"Preparing MNIST in {data_dir}, once" in said.err
    assert said.out == ""
    assert_same(load(tiny, data_dir), tiny_arrays)
    assert capfd.readouterr() == ("", "")
    assert not (data_dir / "lerh_tf" / "preparing").exists()


def test_order_is_that_of_tfds_own_builder(prepared: Path) -> None:
    ours, official = (
        tfds.load("mnist", split="train", data_dir=prepared / name, batch_size=-1)
        for name in ("ours", "official-1")
    )
    np.testing.assert_array_equal(ours["image"], official["image"])
    np.testing.assert_array_equal(ours["label"], official["label"])


@pytest.mark.parametrize("shards", [1, 3])
def test_data_set_prepared_by_tfds_is_used_as_it_is(
    tiny: Source,
    tiny_arrays: Arrays,
    prepared: Path,
    data_dir: Path,
    capfd: pytest.CaptureFixture[str],
    shards: int,
) -> None:
    shutil.copytree(prepared / f"official-{shards}", data_dir)
    folder = builder.dataset_folder(data_dir)
    before = contents(folder)
    capfd.readouterr()
    assert_same(load(tiny, data_dir), tiny_arrays)
    assert "Preparing" not in capfd.readouterr().err
    assert contents(folder) == before


def other_data(kind: str, originals: Arrays) -> Arrays:
    other = {field: array.copy() for field, array in originals.items()}
    if kind == "pixel":
        other[TRAIN_IMAGES][0, 0, 0] ^= 1
    elif kind == "label":
        other[TRAIN_LABELS][0] = (other[TRAIN_LABELS][0] + 1) % 10
    elif kind == "swapped labels":
        other[TRAIN_LABELS][[2, 3]] = other[TRAIN_LABELS][[3, 2]]
    elif kind == "missing example":
        other[TRAIN_IMAGES], other[TRAIN_LABELS] = (
            other[TRAIN_IMAGES][1:],
            other[TRAIN_LABELS][1:],
        )
    return other


@pytest.mark.parametrize("kind", ["pixel", "label", "swapped labels", "missing example"])
def test_somebody_elses_other_data_are_refused(
    tiny: Source, tiny_arrays: Arrays, data_dir: Path, tmp_path: Path, kind: str
) -> None:
    builder.prepare(other_data(kind, tiny_arrays), data_dir, scratch=tmp_path / "scratch")
    folder = builder.dataset_folder(data_dir)
    (folder / builder.MARKER).unlink()
    before = contents(folder)
    reason = "expected 40 examples, read 39" if kind == "missing example" else "are not those of"
    with pytest.raises(DataError, match=reason) as raised:
        load(tiny, data_dir)
    assert f"remove {folder} to have it prepared anew" in str(raised.value)
    assert contents(folder) == before


@pytest.mark.parametrize("kind", ["truncated", "no records", "no info", "empty", "a file"])
def test_somebody_elses_half_prepared_data_set_is_refused_and_left(
    tiny: Source, data_dir: Path, official: Path, kind: str
) -> None:
    folder = official
    if kind == "truncated":
        truncate(train_records(data_dir), 1000)
    elif kind == "no records":
        train_records(data_dir).unlink()
    elif kind == "no info":
        (folder / "dataset_info.json").unlink()
    else:
        for path in folder.iterdir():
            path.unlink()
    if kind == "a file":
        folder.rmdir()
        folder.write_bytes(b"")
    with pytest.raises(DataError, match="It was not prepared by this package") as raised:
        load(tiny, data_dir)
    assert f"the TFDS data set in {folder} is damaged" in str(raised.value)
    assert "--data-dir" in str(raised.value)
    assert os.path.lexists(folder)
    assert not list(data_dir.glob("lerh_tf/**/*.npy"))


@pytest.mark.parametrize("name", ["mnist-train.tfrecord-00000-of-00001", "dataset_info.json"])
def test_our_own_damaged_data_set_is_named_and_prepared_anew(
    tiny: Source,
    tiny_arrays: Arrays,
    ours: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
) -> None:
    data_dir = ours
    forget_arrays(data_dir)
    folder = builder.dataset_folder(data_dir)
    truncate(folder / name, 100)
    capfd.readouterr()
    assert_same(load(tiny, data_dir), tiny_arrays)
    said = capfd.readouterr().err
    assert f"the TFDS data set in {folder} is damaged" in said
    assert "Preparing it anew." in said
    forget_arrays(data_dir)
    assert_same(load(tiny, data_dir), tiny_arrays)
    assert not capfd.readouterr().err


def test_damaged_array_is_named_and_restored(
    tiny: Source, tiny_arrays: Arrays, ours: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data_dir = ours
    folder = data_dir / "lerh_tf" / "mnist-3.0.1"
    truncate(folder / "train_images.npy", 5000)
    capfd.readouterr()
    assert_same(load(tiny, data_dir), tiny_arrays)
    said = capfd.readouterr().err
    assert f"train_images.npy in {folder} is damaged: " in said
    assert "Restoring it" in said
    assert "Preparing" not in said
    load(tiny, data_dir)
    assert not capfd.readouterr().err


def test_damaged_carried_file_is_refused_before_anything_is_written(
    tiny: Source, data_dir: Path
) -> None:
    truncate(Path(str(tiny.folder)) / "train-images-idx3-ubyte.xz", 100)
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.xz in .*carried files"):
        load(tiny, data_dir)
    assert not builder.dataset_folder(data_dir).exists()


def test_folder_that_the_locale_cannot_name_is_refused_in_a_line(
    tiny: Source, tmp_path: Path
) -> None:
    # What Python makes of "ä" where the file system's encoding is ASCII.
    folder = tmp_path / b"\xc3\xa4".decode("ascii", errors="surrogateescape")
    with pytest.raises(DataError, match=r"`data_dir` must be of letters .*ä; set LC_ALL=C\.UTF-8"):
        load(tiny, folder)


def test_interrupt_leaves_no_data_set(
    tiny: Source, tiny_arrays: Arrays, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Any, images: Any, labels: Any) -> Any:
        yield 0, {"image": images[0][..., None], "label": 0}
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builder.MnistBuilder, "_generate_examples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load(tiny, data_dir)
    assert not builder.dataset_folder(data_dir).exists()
    assert_same(load(tiny, data_dir), tiny_arrays)


KILLED = """
import os, pickle, sys
from pathlib import Path
from reproduce.data import builder
from reproduce.data.loading import load
def killed(self, images, labels):
    yield 0, {"image": images[0][..., None], "label": 0}
    os.kill(os.getpid(), 9)
builder.MnistBuilder._generate_examples = killed
load(pickle.load(sys.stdin.buffer), Path(sys.argv[1]))
"""

LOAD = """
import pickle, sys
from pathlib import Path
from reproduce.data.loading import load
mnist = load(pickle.load(sys.stdin.buffer), Path(sys.argv[1]))
sys.stdout.buffer.write(mnist.train_images.tobytes() + mnist.train_labels.tobytes())
"""


@pytest.fixture
def load_elsewhere(start: Start) -> Start:
    """Starts a script with a source on its standard input."""

    def start_script(script: str, source: Source, data_dir: Path) -> subprocess.Popen[bytes]:
        process = start(
            [sys.executable, "-c", script, os.fspath(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(source))
        process.stdin.flush()
        return process

    return start_script


def test_killed_preparation_is_taken_up_by_the_next(
    load_elsewhere: Start, tiny: Source, tiny_arrays: Arrays, data_dir: Path
) -> None:
    process = load_elsewhere(KILLED, tiny, data_dir)
    process.communicate()
    assert process.returncode == -9
    assert list(data_dir.glob("lerh_tf/preparing/mnist/*"))
    assert not builder.dataset_folder(data_dir).exists()
    assert_same(load(tiny, data_dir), tiny_arrays)
    assert not (data_dir / "lerh_tf" / "preparing").exists()


def test_two_processes_at_once_prepare_once(
    load_elsewhere: Start, tiny: Source, tiny_arrays: Arrays, data_dir: Path
) -> None:
    processes = [load_elsewhere(LOAD, tiny, data_dir) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    expected = tiny_arrays[TRAIN_IMAGES].tobytes() + tiny_arrays[TRAIN_LABELS].tobytes()
    assert [process.returncode for process in processes] == [0, 0]
    assert [out for out, _ in outputs] == [expected, expected]
    assert sum(err.count(b"Preparing MNIST") for _, err in outputs) == 1


def test_waits_for_another_process_and_says_so(
    tiny: Source, tiny_arrays: Arrays, ours: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data_dir = ours
    kept = data_dir / "lerh_tf" / "mnist-3.0.1" / "test_labels.npy"
    content = kept.read_bytes()
    kept.unlink()
    capfd.readouterr()
    loaded: list[Mnist] = []
    lock = FileLock(data_dir / "lerh_tf" / "mnist.lock")
    thread = threading.Thread(target=lambda: loaded.append(load(tiny, data_dir)))
    with lock:
        thread.start()
        said = ""
        while "Waiting for another process that prepares MNIST in" not in said:
            assert thread.is_alive()
            said += capfd.readouterr().err
        assert not loaded
        kept.write_bytes(content)  # what the other process would do
    thread.join()
    assert_same(loaded[0], tiny_arrays)
    assert str(data_dir) in said


def test_data_set_that_tfds_prepared_meanwhile_stays(
    tiny_arrays: Arrays, data_dir: Path, official: Path
) -> None:
    before = contents(official)
    builder.prepare(tiny_arrays, data_dir, scratch=data_dir / "scratch")
    assert contents(official) == before


def test_unwritable_folder_with_a_data_set_is_decoded_at_every_load(
    tiny: Source,
    tiny_arrays: Arrays,
    data_dir: Path,
    official: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (data_dir / "lerh_tf").write_bytes(b"")
    for _ in range(2):
        assert_same(load(tiny, data_dir), tiny_arrays)
        assert "Decoding MNIST at every load" in capfd.readouterr().err
