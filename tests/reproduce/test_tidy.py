"""Tidy tables: they read back as the records were, and the committed ones are today's runs."""

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduce import making, records, tidy, verification
from reproduce.protocols import TABLE1
from reproduce.records import Record, Run, Store
from reproduce.storage import StorageError
from tests.reproduce._examples import record

NAN, INF = float("nan"), float("inf")
EXECUTION = {"threads": 1, "device": "cpu", "jit_compile": False}
CURVE = {"update": [0, 10, 20], "accuracy": [0.1, 1 / 3, 1e-17], "loss": [None, NAN, 2.5]}
ODD: dict[str, Any] = {
    "status": "completed",
    "text": "1.5",
    "empty": "",
    "none": None,
    "flag": True,
    "nothing": {},
    "no_list": [],
    "numbers": {"10": [1, 2.0, -INF], "map": [[0.1, 0.2], [0.3, 0.1 + 0.2]]},
    "minimisers": [{"mean": 1.0, "density": [0.5, NAN]}, {"mean": 2, "density": []}],
}


def _odd() -> Record:
    return Record(Run("odd", 'a, "b"', 3, {"none": None, "ends": [[1.0]]}), {"python": "3.12"}, ODD)


def _trained() -> Record:
    made = record(TABLE1, "sgld", 4, {0: 0.1})
    reported = {"compiled": [1.0, 0.0], "standard_error": [INF, 0.1]}
    result = {**made.result, "diverged_at": 21, "curve": CURVE, "diagnostics": reported}
    return replace(made, result=result)


RECORDS = [
    _odd(),
    record(TABLE1, "sgd", 10, {0: 0.1}, timings={"seconds": 0.1, "median_update_seconds": None}),
    record(TABLE1, "sgd", 2, {0: 0.1, 10: 0.2}, timings={"seconds": 3}),
    replace(_trained(), timings={"seconds": 1e-300}),
]


def test_records_and_timings_read_back_in_a_stores_order(tmp_path: Path) -> None:
    tidy.write(tmp_path / "tables", RECORDS)
    store = Store(tmp_path, warn=pytest.fail)
    for made in RECORDS:
        store.save(made)
    tables = tidy.Tables(tmp_path / "tables")
    for experiment in ("*", "training", "odd", "none"):
        texts = [one.text() for one in tables.scan(experiment)]
        assert texts == [one.text() for one in store.scan(experiment)]


def test_pandas_reads_the_tables(tmp_path: Path) -> None:
    tidy.write(tmp_path, RECORDS)
    runs, curves, diagnostics, values = (
        # Values as text: before 3.1 pandas rounds a number's last digit as it reads.
        pd.read_csv(tmp_path / f"{name}.csv", dtype={"value": str})
        for name in ("runs", "curves", "diagnostics", "values")
    )
    (trained,) = runs[runs["configuration.method.name"] == "LocalEntropyBySGLD"].run
    curve = curves[curves.run == trained]
    np.testing.assert_array_equal(curve.accuracy, CURVE["accuracy"])
    np.testing.assert_array_equal(curve.loss, [NAN, NAN, 2.5])
    reported = diagnostics[diagnostics.run == trained]
    assert list(zip(reported["update"], reported.standard_error, strict=True)) == [
        (10, INF),
        (20, 0.1),
    ]
    numbers = values[values.quantity == "numbers.map"].value
    assert [float(number) for number in numbers] == [0.1, 0.2, 0.3, 0.1 + 0.2]


def test_added_records_take_the_place_of_their_runs(tmp_path: Path) -> None:
    tidy.add(tmp_path, RECORDS[:2])
    changed = replace(_odd(), result={"status": "failed"}, timings={"seconds": 1})
    tidy.add(tmp_path, [changed, RECORDS[2]])
    tables = tidy.Tables(tmp_path)
    assert len(tables.scan()) == 3
    assert tables.scan("odd") == [changed]


@pytest.mark.parametrize("name", ["runs", "curves", "timings"])
def test_changed_table_is_said(name: str, tmp_path: Path) -> None:
    tidy.write(tmp_path, RECORDS)
    path = tmp_path / f"{name}.csv"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(StorageError, match=rf"{name}\.csv is not what manifest\.csv says"):
        tidy.Tables(tmp_path).scan()
    path.unlink()
    with pytest.raises(StorageError, match="cannot read"):
        tidy.Tables(tmp_path).scan()


def test_record_that_does_not_fit_is_refused_and_nothing_written(tmp_path: Path) -> None:
    dotted = replace(_odd(), result={"status": "completed", "a.b": 1})
    with pytest.raises(ValueError, match=r"odd .* must fit the tables"):
        tidy.write(tmp_path / "tables", [dotted])
    assert not (tmp_path / "tables").exists()


def test_another_numerics_revision_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy.write(tmp_path, RECORDS)
    monkeypatch.setattr(records, "NUMERICS_REVISION", 0)
    assert tidy.Tables(tmp_path).scan() == []
    assert tidy.Tables(tmp_path / "none").scan() == []


@pytest.fixture(scope="module")
def reference() -> tidy.Tables:
    return tidy.Tables(verification.REFERENCE)


def test_committed_records_are_those_of_todays_protocols(reference: tidy.Tables) -> None:
    made = {one.run.key for one in reference.scan()}
    seeds = sorted({one.run.seed for one in reference.scan()})
    jobs = making.reference_jobs(seeds, EXECUTION)
    jobs += making.further_jobs(seeds, pytest.fail, EXECUTION, jobs)
    wanted = {job.run.key for job in jobs}
    # So many were there on 30 November 2026, under keys that no new setting may change.
    assert len(made) >= 1921
    assert made <= wanted


def test_manifest_counts_the_lines(reference: tidy.Tables) -> None:
    manifest = pd.read_csv(reference.folder / "manifest.csv").set_index("table")
    assert list(manifest.index) == list(tidy.TABLES)
    for name in tidy.TABLES:
        text = (reference.folder / f"{name}.csv").read_text(encoding="utf-8")
        assert manifest.loc[name, "rows"] == len(pd.read_csv(StringIO(text)))
    assert all(one.timings for one in reference.scan())
