import filecmp
from collections.abc import Sequence
from pathlib import Path

import pytest

from reproduce import readings
from reproduce.experiments.base import RECORDS
from reproduce.experiments.table1 import EXPERIMENT as TABLE
from reproduce.protocols import (
    TABLE1,
    Comparison,
    GradientDescent,
    LocalEntropyByImportanceSampling,
    Training,
)
from reproduce.records import Store
from reproduce.runner import Fate, run_missing
from tests.reproduce._examples import numbers, record, stripes
from tests.reproduce._invocation import Lines

TINY = Comparison(
    Training(updates=4, test_images=50, evaluate_every=2, tabulated=(2, 4)),
    {"sgd": GradientDescent(), "is": LocalEntropyByImportanceSampling(samples=3)},
)
EXECUTION = {"threads": 0, "device": "cpu", "jit_compile": False}
ENVIRONMENT = {"tensorflow": "2.21.0", "keras": "3.15.1", "processor": "a processor"}


def _run(folder: Path, seeds: Sequence[int], methods: tuple[str, ...]) -> dict[Path, str]:
    store = Store(folder, warn=pytest.fail)
    jobs = TABLE.jobs(TINY.with_methods(methods), seeds, "auto", stripes, EXECUTION)
    assert not run_missing(jobs, store, ENVIRONMENT, Lines())[Fate.FAILED]
    return numbers(folder)


def test_records_do_not_depend_on_order_or_company(tmp_path: Path) -> None:
    first = _run(tmp_path / "one", (0,), ("sgd", "is"))
    _run(tmp_path / "two", (1,), ("sgd",))
    second = _run(tmp_path / "two", (0,), ("is", "sgd"))
    assert first.items() <= second.items()
    assert len(set(second.values())) == 3


def test_render_shows_what_there_is(tmp_path: Path) -> None:
    _run(tmp_path, (0,), ("sgd",))
    records = Store(tmp_path, warn=pytest.fail).scan(RECORDS)
    text, written = TABLE.render(records, TINY, (0, 1), "auto", tmp_path, tmp_path / "figures")
    assert "SGD: 1 of 2 runs; missing: seed 1" in text
    assert "NOT the paper's budget" in text
    assert all("updates-4" in path.name for path in written)
    again = TABLE.render(records, TINY, (0, 1), "auto", tmp_path / "b", tmp_path / "b" / "figures")[
        1
    ]
    assert all(filecmp.cmp(*pair, shallow=False) for pair in zip(written, again, strict=True))


def test_jobs_carry_the_execution_and_the_reading_in_their_keys() -> None:
    def keys(comparison: Comparison, subspace: str | bool) -> set[str]:
        jobs = TABLE.jobs(comparison, (0,), subspace, stripes, EXECUTION)
        return {job.run.key for job in jobs}

    printed = TABLE1.with_methods(("sgd", "sgld"))
    linear = readings.choose(printed, {"noise": "linear"})
    assert len(keys(printed, "auto") | keys(printed, False)) == 4
    assert len(keys(printed, "auto") | keys(linear, "auto")) == 3


def test_render_keeps_runs_in_all_weights_apart(tmp_path: Path) -> None:
    plain = [record(TABLE1, "is", 0, {0: 0.1, 500: 0.8}, subspace=False)]
    assert not TABLE.recorded(plain, TABLE1)
    text, written = TABLE.render(plain, TABLE1, None, False, tmp_path, tmp_path)
    assert "0.800" in text
    assert {path.stem for path in written} == {"table1-subspace-false", "figure4-subspace-false"}


def test_render_without_records_draws_no_figure(tmp_path: Path) -> None:
    text, written = TABLE.render([], TINY, None, "auto", tmp_path, tmp_path)
    assert [path.suffix for path in written] == [".md", ".csv"]
    assert "missing" in text
    assert not TABLE.recorded([], TINY)
