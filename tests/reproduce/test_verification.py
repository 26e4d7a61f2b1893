from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduce import cli, making, tidy, verification
from reproduce.cli.options import DEFAULT_SHARE
from reproduce.experiments import base
from reproduce.parallel import Plan, Workers
from reproduce.protocols import TABLE1, Training
from reproduce.records import Record, Store
from reproduce.runner import Job
from reproduce.verification import DIFFERS, IDENTICAL, MISSING, WITHIN, compare
from tests.reproduce._examples import record, stripes

EXECUTION = {"threads": 2, "device": "cpu", "jit_compile": False}
OURS = record(TABLE1, "is", 0, {0: 0.1, 500: 0.8})


@pytest.fixture
def reference(tmp_path: Path) -> Store:
    return Store(tmp_path / "reference", warn=pytest.fail)


def _changed(accuracy: float, loss: Any = None, environment: Mapping[str, Any] = {}) -> Record:
    curve = {"update": [0, 500], "accuracy": [0.1, accuracy], "loss": [None, loss]}
    result = {**OURS.result, "curve": curve}
    return replace(OURS, result=result, environment={**OURS.environment, **environment})


def test_equal_versions_must_give_equal_numbers(reference: Store) -> None:
    assert compare(OURS, reference).verdict == MISSING
    reference.save(OURS)
    assert compare(OURS, reference).verdict == IDENTICAL
    assert compare(replace(OURS, timings={"seconds": 1.0}), reference).verdict == IDENTICAL
    assert compare(_changed(0.8001), reference).verdict == DIFFERS
    assert not compare(_changed(0.8001), reference).is_good


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (_changed(0.8, environment={"numpy": "3"}), WITHIN),
        (_changed(0.819, environment={"numpy": "3"}), WITHIN),
        (_changed(0.821, environment={"numpy": "3"}), DIFFERS),
        (_changed(0.779, environment={"numpy": "3"}), DIFFERS),
        (_changed(float("nan"), environment={"numpy": "3"}), DIFFERS),
        (_changed(0.8, loss=0.1, environment={"numpy": "3"}), DIFFERS),
    ],
)
def test_other_versions_must_give_numbers_within_bounds(
    reference: Store, ours: Record, verdict: str
) -> None:
    reference.save(OURS)
    compared = compare(ours, reference)
    assert compared.verdict == verdict, compared.detail
    assert ("curve" in compared.detail) == (ours.result != OURS.result)


def test_other_threads_are_compared_within_bounds(reference: Store) -> None:
    reference.save(OURS)
    assert compare(record(TABLE1, "is", 0, {0: 0.1, 500: 0.81}, threads=1), reference).is_good


def test_a_share_of_the_seconds_is_recomputed_drawn_by_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = ("sgd", "is", "sgld", "hr")
    records = [record(TABLE1, case, seed, {0: 0.1, 500: 0.8}) for case in cases for seed in (0, 7)]
    long = min(records, key=lambda one: one.run.key)
    seconds = {one.run.key: 100.0 if one is long else 10.0 for one in records}
    tidy.add(tmp_path, [replace(one, timings={"seconds": seconds[one.run.key]}) for one in records])
    reference = tidy.Tables(tmp_path)
    for share, count in ((0.01, 0), (0.06, 1), (0.15, 2), (0.6, 1), (1.0, 8)):
        chosen = verification.chosen(reference, share)
        assert len(chosen) == count
        assert sum(seconds[one.run.key] for one in chosen) <= share * 170.0
        assert chosen == sorted(chosen, key=lambda one: one.run.key)
        assert (long.run in [one.run for one in chosen]) == (share >= 0.6)
    monkeypatch.setattr(verification, "REFERENCE", tmp_path)
    jobs = making.verified_jobs(1.0, stripes, {**EXECUTION, "threads": 9})
    assert {(job.run.case, job.run.seed) for job in jobs} == {
        (one.run.case, one.run.seed) for one in records
    }


def test_the_shares_runs_are_those_of_the_whole() -> None:
    chosen = verification.chosen(tidy.Tables(verification.REFERENCE), DEFAULT_SHARE)
    jobs = making.verified_jobs(DEFAULT_SHARE, stripes, EXECUTION)
    assert 0 < len(jobs) == len(chosen)


def test_collected_records_are_whole_and_missing_ones_named(tmp_path: Path) -> None:
    source = Store(tmp_path, warn=pytest.fail)
    timed = replace(OURS, timings={"seconds": 1.0})
    source.save(timed)
    cases = TABLE1.with_methods(("sgd", "is"))
    jobs = base.jobs(cases, (0,), "auto", pytest.fail, EXECUTION)
    found, missing = verification.collect(jobs, source)
    assert found == [timed]
    assert [job.run.case for job in missing] == ["sgd"]
    source.save(OURS)  # of before records were timed
    assert verification.collect(jobs, source) == ([], jobs)


def test_verify_ends_with_code_1_unless_the_reference_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(plan: Plan, workers: Workers) -> int:
        Store(plan.output, warn=pytest.fail).save(OURS)
        return 0

    monkeypatch.setattr("reproduce.cli.commands.make", make)
    monkeypatch.setattr(verification, "REFERENCE", tmp_path)
    assert cli.main(["verify", "--jobs", "2", "--share", "0.5"]) == 1
    assert MISSING in capsys.readouterr().out
    tidy.add(tmp_path, [OURS])
    assert cli.main(["verify"]) == 0
    assert "1 of 1 runs confirm the reference" in capsys.readouterr().out
    tidy.add(tmp_path, [_changed(0.5)])
    assert cli.main(["verify"]) == 1
    assert DIFFERS in capsys.readouterr().out


def test_recomputed_runs_confirm_their_own_reference(reference: Store) -> None:
    tiny = Training(updates=4, test_images=50, evaluate_every=2, tabulated=(4,))
    cases = replace(TABLE1, training=tiny).with_methods(("sgd",))
    execution = {**EXECUTION, "threads": 0}
    for seed in (0, 1):
        first, second = (
            _record(base.jobs(cases, (seed,), "auto", stripes, execution)[0]) for _ in range(2)
        )
        reference.save(first)
        assert compare(second, reference).verdict == IDENTICAL


def _record(job: Job) -> Record:
    result, _ = job.execute(lambda steps: None)
    return Record(job.run, {"numpy": "2"}, result)
