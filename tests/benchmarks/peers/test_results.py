"""A measurement is made once, and again when anything that it depends on has changed."""

from pathlib import Path

import pytest

from benchmarks.peers import results
from benchmarks.peers.results import Results
from reproduce import strict_json


class Measurement:
    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> dict[str, int]:
        self.made += 1
        return {"number": self.made}


def of(folder: Path, measurement: Measurement, **settings: int) -> object:
    return Results(folder, lambda text: None).of("a/b", settings, measurement)["result"]


def test_second_time_it_is_read(tmp_path: Path) -> None:
    measurement = Measurement()
    assert [of(tmp_path, measurement, threads=2) for _ in range(2)] == [{"number": 1}] * 2
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.json"]


def test_record_says_when_and_on_what(tmp_path: Path) -> None:
    of(tmp_path, Measurement(), threads=2)
    record = strict_json.loads((tmp_path / "a" / "b.json").read_text())
    assert record["settings"] == {"threads": 2}
    assert record["made"].endswith("+00:00")
    assert record["machine"]["processors"] >= 1
    assert "tensorflow" in record["machine"]


def test_other_settings_measure_anew(tmp_path: Path) -> None:
    measurement = Measurement()
    of(tmp_path, measurement, threads=2)
    assert of(tmp_path, measurement, threads=1) == {"number": 2}


def test_other_code_measures_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = Measurement()
    of(tmp_path, measurement)
    monkeypatch.setattr(results, "code_digest", lambda: "another")
    assert of(tmp_path, measurement) == {"number": 2}


def test_other_machine_measures_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = Measurement()
    of(tmp_path, measurement)
    monkeypatch.setattr(results, "machine", lambda: {"processors": 64})
    assert of(tmp_path, measurement) == {"number": 2}


@pytest.mark.parametrize("content", ["", "{", '{"settings": {}}', "[]"])
def test_damaged_record_is_measured_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a" / "b.json"
    path.parent.mkdir()
    path.write_text(content)
    assert of(tmp_path, Measurement()) == {"number": 1}
    assert of(tmp_path, Measurement()) == {"number": 1}


def test_failed_measurement_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> dict[str, int]:
        raise RuntimeError("as asked")

    with pytest.raises(RuntimeError, match="as asked"):
        Results(tmp_path, lambda text: None).of("a", {}, fail)
    assert list(tmp_path.iterdir()) == []


def test_digest_covers_the_library_and_the_systems() -> None:
    root = Path(results.__file__).resolve().parents[2]
    covered = {path for pattern in results._CODE for path in root.glob(pattern)}
    assert root / "lerh_tf" / "kernels" / "sgld.py" in covered
    assert root / "benchmarks" / "peers" / "systems" / "torch_loops.py" in covered
    assert root / "benchmarks" / "peers" / "worker.py" in covered
    assert results.code_digest() == results.code_digest()
