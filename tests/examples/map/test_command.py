"""The whole at a tiny budget: trials, choice, fresh seeds, tables, page; and going on from them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from examples.map import command, costs, jobs
from examples.map.__main__ import ROOT
from examples.map.command import Where
from examples.map.jobs import Plan
from examples.map.protocol import PROTOCOL, QUICK, Protocol
from reproduce.records import Store
from reproduce.storage import StorageError
from reproduce.tidy import Tables

INVENTORY = replace(QUICK, tasks=(QUICK.task("inventory"),))


def where(folder: Path) -> Where:
    return Where(folder / "records", folder / "tables", folder / "map.md", folder / "map")


def plan(protocol: Protocol = INVENTORY) -> Plan:
    return Plan(protocol, {}, tuple(task.name for task in protocol.tasks))


@pytest.fixture(scope="module", autouse=True)
def _tensorflow_runs_already() -> Iterator[None]:
    """Its threads can't be set where another test of this process has used it."""
    execution = {"threads": 1, "device": "cpu", "jit_compile": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproduce.environment.prepare", lambda threads: execution)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Where:
    """Everything of the inventory, made."""
    there = where(tmp_path_factory.mktemp("map"))
    with open(there.page.with_suffix(".log"), "w") as log:
        # One process and this one's threads: no other is started.
        assert command.make(plan(), there, 1, 1, Console(file=log)) == 0
    return there


@pytest.fixture(autouse=True)
def _mnist_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reproduce.data.load_mnist", lambda _: None)


def test_the_page_has_every_cell_from_the_tables(made: Where) -> None:
    text = command.write(plan(), made, Console(quiet=True))
    assert text == made.page.read_text(encoding="utf-8")
    for method in ("OpenAI's evolution strategy", "SNES", "CMA-ES", "random search"):
        assert f"| {method} " in text
    assert "| **local entropy without gradients** |" in text
    assert {path.suffix for path in made.figure.parent.glob("map.*")} > {".png", ".pdf", ".csv"}
    assert "A budget that shows only that it runs" in text


def test_trials_and_seeds_are_as_many_as_the_protocol_says(made: Where) -> None:
    tables = Tables(made.tables)
    methods = len(INVENTORY.tasks[0].methods)
    assert len(tables.scan(jobs.TUNING)) == INVENTORY.trials * methods
    finals = tables.scan(jobs.FINAL)
    assert len(finals) == len(INVENTORY.seeds) * methods
    assert {record.run.seed for record in finals} == set(INVENTORY.seeds)
    assert all("test" not in record.result for record in tables.scan(jobs.TUNING))
    chosen = jobs.chosen(jobs.tuned(plan(), tables.scan(jobs.TUNING)))
    for record in finals:
        task, _, method = record.run.case.partition(".")
        assert record.run.configuration["settings"] == chosen[task, method]


def test_a_fresh_clone_goes_on_from_the_tables(
    made: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_execute", lambda *_: pytest.fail("a run was made again"))
    clone = replace(made, records=tmp_path / "records")
    with open(tmp_path / "log", "w") as log:
        assert command.make(plan(), clone, 1, 1, Console(file=log)) == 0
    count = len(list((tmp_path / "records").rglob("records/*/*/seed-*.json")))
    assert count == len(Tables(made.tables).scan())


def test_what_is_missing_says_so(made: Where, tmp_path: Path) -> None:
    there = where(tmp_path)
    store = Store(there.records, warn=pytest.fail)
    for record in Tables(made.tables).scan()[:-1]:
        store.save(record)
    command.publish(store, there.tables)
    text = command.write(plan(), there, Console(quiet=True))
    assert "not run to its end yet" in text
    assert "[" not in text.split("## How it was measured")[0].replace("**[", "")


def test_without_records_the_page_says_that_it_is_not_run(tmp_path: Path) -> None:
    there = where(tmp_path)
    text = command.write(Plan(PROTOCOL, {}, ()), there, Console(quiet=True))
    assert "**Not run yet.**" in text
    assert "gain" not in text.split("## How it was measured")[0].replace("against", "")
    assert not list(tmp_path.glob("*.png"))


def test_the_committed_page_is_what_the_committed_tables_say(tmp_path: Path) -> None:
    found = command.write(
        Plan(PROTOCOL, costs.read() or {}, ()),
        Where(tmp_path, ROOT / "examples/map/reference", tmp_path / "map.md", tmp_path / "map"),
        Console(quiet=True),
    )
    committed = (ROOT / "docs/map.md").read_text(encoding="utf-8")
    assert found.replace(tmp_path.name, "figures") == committed


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    with pytest.raises(StorageError, match="records"):
        command.make(plan(), where(tmp_path), 1, 1, Console(quiet=True))
