from pathlib import Path

import platformdirs
import pytest

from reproduce.data import load_mnist, resolve_data_dir
from reproduce.data.loading import load
from reproduce.data.source import DataError, Source


@pytest.mark.parametrize("below", [".", "below"])
def test_data_dir_that_is_a_file_is_refused(tiny: Source, tmp_path: Path, below: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"kept")
    with pytest.raises(DataError, match=r"MNIST cannot be kept in .*file.*--data-dir"):
        load(tiny, path / below)
    assert path.read_bytes() == b"kept"


def test_unwritable_folder_is_refused(tiny: Source, data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "lerh_tf").write_bytes(b"")  # stops root too, whom permissions do not
    with pytest.raises(DataError, match=r"cannot be kept in .*tfds data.*TFDS_DATA_DIR"):
        load(tiny, data_dir)


def test_data_dir_is_the_argument_else_the_environment_else_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "environment"))
    assert resolve_data_dir(tmp_path / "argument") == tmp_path / "argument"
    assert resolve_data_dir() == tmp_path / "environment"
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("TFDS_DATA_DIR")
        else:
            monkeypatch.setenv("TFDS_DATA_DIR", unset)
        assert resolve_data_dir().is_relative_to(platformdirs.user_cache_path())
    assert resolve_data_dir("~/data") == Path.home() / "data"
    assert resolve_data_dir("data") == Path.cwd() / "data"


@pytest.mark.parametrize("url", ["gs://bucket/data", Path("gs://bucket/data")])
def test_remote_folder_is_refused(url: Path | str) -> None:
    with pytest.raises(DataError, match=r"`data_dir` must be a local folder\. Received: gs:/"):
        load_mnist(url)
