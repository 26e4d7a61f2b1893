import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduce import records, strict_json, tables
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


def test_save_then_load_one_file_and_equal_numbers(store: Store) -> None:
    timed = replace(RECORD, timings={"seconds": 2.0})
    store.save(timed)
    assert store.load(RUN) == timed
    assert [path for path in store.folder.rglob("*") if path.is_file()] == [store.path(RUN)]
    assert timed.text() != RECORD.text()
    assert timed.numbers() == RECORD.numbers()
    other = replace(RECORD, result={**RECORD.result, "status": "diverged"})
    assert other.numbers() != RECORD.numbers()


def test_older_file_without_timings_is_read(store: Store) -> None:
    body = strict_json.loads(RECORD.text())
    del body["timings"], body["checksum"]
    checksum = hashlib.sha256(strict_json.dumps(body).encode()).hexdigest()
    store.save(RECORD)
    store.path(RUN).write_text(strict_json.dumps(body | {"checksum": checksum}))
    assert store.load(RUN) == RECORD


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
    store.save(RECORD)
    path = store.path(RUN)
    for number in (1, 2):
        path.write_bytes(damage(RECORD.text().encode()))
        assert store.load(RUN) is None
        assert not path.exists()
        assert path.with_name(f"{path.name}.damaged-{number}").exists()
        assert str(path) in warnings[-1]
        assert f"set aside as {path.name}.damaged-{number}" in warnings[-1]


def test_load_refuses_another_runs_record(store: Store, warnings: list[str]) -> None:
    store.save(RECORD)
    other = replace(RUN, seed=9)
    store.path(RUN).rename(store.path(other))
    assert store.load(other) is None
    assert "another run" in warnings[0]


def test_scan_leaves_damaged_records_where_they_are(store: Store, warnings: list[str]) -> None:
    second = replace(RECORD, run=replace(RUN, seed=1))
    store.save(RECORD)
    store.save(second)
    store.path(RUN).write_text("{")
    assert store.scan("table1") == [second]
    assert store.path(RUN).exists()
    assert "left out" in warnings[0]
    told = len(warnings)
    store.scan()
    assert len(warnings) == told
    assert store.scan("figure9") == []


def test_scan_leaves_out_older_numerics(
    store: Store, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(RECORD)
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
        assert [path.stat().st_size for path in folder.iterdir()] == [1 << 19]
        store.save(RECORD)
    assert store.load(RUN) == RECORD
    with pytest.raises(RuntimeError), store.reserved(replace(RUN, seed=1)):
        raise RuntimeError
    assert len(list(folder.iterdir())) == 1


STEPS = ("open", "fdopen", "fsync", "replace", "mkdir")


class Failing:
    """A function of `os`, whose call number `place` finds the disk full or not writable."""

    def __init__(self, step: str, place: int | None, code: int) -> None:
        self.calls = 0
        self._original, self._place, self._code = getattr(os, step), place, code

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls - 1 == self._place:
            raise OSError(self._code, os.strerror(self._code))
        return self._original(*arguments, **named)


def _write(store: Store, record: Record) -> StorageError | None:
    try:
        with store.claim(record.run), store.reserved(record.run):
            store.save(record)
    except StorageError as error:
        return error
    return None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("step", STEPS)
def test_disk_that_fails_at_any_step_is_said_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    other = replace(RECORD, run=replace(RUN, experiment="other"))
    counted = Failing(step, None, code)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, counted)
        _write(Store(tmp_path / "whole", warn=pytest.fail), other)
    content = Store(tmp_path / "whole", warn=pytest.fail).path(other.run).read_bytes()
    errors = []
    for place in range(counted.calls):
        store = Store(tmp_path / str(place), warn=pytest.fail)
        store.save(RECORD)
        with monkeypatch.context() as patch:
            patch.setattr(os, step, Failing(step, place, code))
            errors.append(_write(store, other))
        assert store.load(RUN) == RECORD
        assert list(store.folder.rglob("*.part")) == []
        assert _write(store, other) is None
        assert store.path(other.run).read_bytes() == content
    # What looks for a lock's abilities only is no error.
    said = {place: str(error) for place, error in enumerate(errors) if error is not None}
    assert said
    for place, text in said.items():
        assert os.strerror(code) in text
        assert str(tmp_path / str(place)) in text
        assert ("free some space" in text) == (code == errno.ENOSPC)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_files_have_the_mode_that_the_callers_umask_leaves(
    tmp_path: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        tables.write_text(tmp_path / "table.md", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "table.md").stat().st_mode & 0o777 == mode


def test_full_disk_is_said_of_tables_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table.md"
    tables.write_text(table, "old")
    monkeypatch.setattr(os, "fsync", Failing("fsync", 0, errno.ENOSPC))
    with pytest.raises(StorageError, match=f"cannot write {tmp_path}/.*No space left on device"):
        tables.write_text(table, "new")
    assert table.read_text() == "old"
    assert list(tmp_path.iterdir()) == [table]


def test_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    store = Store(tmp_path / "taken", warn=pytest.fail)
    with pytest.raises(StorageError, match="cannot make"), store.claim(RUN):
        pytest.fail("claimed")
