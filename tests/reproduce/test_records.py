import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduce import records, strict_json
from reproduce.protocols import TABLE1
from reproduce.records import Record, Run, Store
from reproduce.storage import StorageError

EXECUTION = {"threads": 2, "device": "cpu", "jit_compile": False, "subspace": "auto"}
CONFIGURATION = TABLE1.cases()["sgld"].configuration() | {"execution": EXECUTION}
RUN = Run("table1", "sgld", 0, CONFIGURATION)
RECORD = Record(RUN, {"numpy": "2"}, {"status": "completed", "loss": [1.0, float("inf")]})


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, warnings: list[str]) -> Store:
    return Store(tmp_path, warn=warnings.append)


def _variants(value: Any) -> Any:
    """Returns a value of the same type that differs."""
    match value:
        case str():
            return value + "x"
        case bool():
            return not value
        case list():
            return [*value, 1]
        case _:
            return value + 1


def test_key_changes_with_every_setting() -> None:
    keys = {RUN.key, replace(RUN, experiment="x").key, replace(RUN, case="x").key}
    keys.add(replace(RUN, seed=1).key)
    changed = 4
    for group, settings in CONFIGURATION.items():
        for name, value in settings.items():
            other = CONFIGURATION | {group: settings | {name: _variants(value)}}
            keys.add(replace(RUN, configuration=other).key)
            changed += 1
    assert len(keys) == changed


def test_key_changes_with_the_numerics_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    before = RUN.key
    monkeypatch.setattr(records, "NUMERICS_REVISION", records.NUMERICS_REVISION + 1)
    assert RUN.key != before


def test_save_then_load_and_equal_bytes(store: Store, tmp_path: Path) -> None:
    store.save(RECORD, {"seconds": 1.0})
    other = Store(tmp_path / "other", warn=pytest.fail)
    other.save(RECORD, {"seconds": 2.0})
    assert store.load(RUN) == RECORD
    assert store.path(RUN).read_bytes() == other.path(RUN).read_bytes()
    assert strict_json.loads(other.timings_path(RUN).read_bytes()) == {"seconds": 2.0}


def _damages() -> list[Any]:
    return [
        pytest.param(lambda content: content[: len(content) // 2], id="truncated"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: b"\xff\x00" + content, id="not text"),
        pytest.param(lambda content: b"[]", id="another type"),
        pytest.param(lambda content: content.replace(b"completed", b"diverged"), id="altered"),
        pytest.param(lambda content: content.replace(b"inf", b"nan"), id="altered number"),
        pytest.param(lambda content: b"\0" * len(content), id="zeros"),
    ]


@pytest.mark.parametrize("damage", _damages())
def test_load_names_a_damaged_record_and_sets_it_aside(
    store: Store, warnings: list[str], damage: Any
) -> None:
    store.save(RECORD, {})
    path = store.path(RUN)
    for number in (1, 2):
        path.write_bytes(damage(RECORD.text().encode()))
        assert store.load(RUN) is None
        assert not path.exists()
        assert path.with_name(f"{path.name}.damaged-{number}").exists()
        assert str(path) in warnings[-1]
        assert f"set aside as {path.name}.damaged-{number}" in warnings[-1]


def test_load_refuses_another_runs_record(store: Store, warnings: list[str]) -> None:
    store.save(RECORD, {})
    other = replace(RUN, seed=9)
    store.path(RUN).rename(store.path(other))
    assert store.load(other) is None
    assert "another run" in warnings[0]


def test_scan_leaves_damaged_records_where_they_are(store: Store, warnings: list[str]) -> None:
    second = replace(RECORD, run=replace(RUN, seed=1))
    store.save(RECORD, {})
    store.save(second, {})
    store.path(RUN).write_text("{")
    assert store.scan("table1") == [second]
    assert store.path(RUN).exists()
    assert "left out" in warnings[0]
    assert store.scan("figure9") == []


def test_scan_leaves_out_older_numerics(
    store: Store, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(RECORD, {})
    monkeypatch.setattr(records, "NUMERICS_REVISION", records.NUMERICS_REVISION + 1)
    assert store.scan("table1") == []
    assert "numerics revision" in warnings[0]


def test_claim_is_exclusive_and_given_back(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path, warn=pytest.fail)
    with store.claim(RUN) as mine, other.claim(RUN) as theirs:
        assert mine
        assert not theirs
    with other.claim(RUN) as theirs:
        assert theirs


def test_reserved_holds_space_and_leaves_nothing(store: Store) -> None:
    folder = store.path(RUN).parent
    with store.reserved(RUN):
        assert [path.stat().st_size for path in folder.iterdir()] == [1 << 16]
        store.save(RECORD, {})
    assert store.load(RUN) == RECORD
    with pytest.raises(RuntimeError), store.reserved(replace(RUN, seed=1)):
        raise RuntimeError
    assert len(list(folder.iterdir())) == 1


def _full(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_is_said_and_loses_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(RECORD, {})
    other = replace(RECORD, run=replace(RUN, seed=1))
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(StorageError, match="No space left on device; free some space and run"):
        store.save(other, {})
    with (
        pytest.raises(StorageError, match="Every record finished before is kept"),
        store.reserved(other.run),
    ):
        pytest.fail("the run began without room for its record")
    monkeypatch.undo()
    assert store.load(RUN) == RECORD
    assert [path.name for path in store.path(RUN).parent.iterdir()] == [store.path(RUN).name]


def test_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    store = Store(tmp_path / "taken", warn=pytest.fail)
    with pytest.raises(StorageError, match="cannot make"), store.claim(RUN):
        pytest.fail("claimed")
