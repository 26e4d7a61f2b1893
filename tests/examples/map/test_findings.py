"""Who is compared, and which sentence is said of it, from records made by hand."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from examples.map import figure, findings, how_measured, jobs, report
from examples.map.findings import Finding
from examples.map.jobs import Plan
from examples.map.protocol import PROTOCOL, QUICK
from examples.map.statistics import Difference
from reproduce import tidy
from reproduce.records import Record
from reproduce.runner import Job
from reproduce.tidy import Tables

SEEDS = tuple(range(6))
TASKS = tuple(
    replace(QUICK.task("inventory"), name=name, bound=0.01, primary=name != "second")
    for name in ("first", "second")
)
PLAN = Plan(replace(QUICK, tasks=TASKS, seeds=SEEDS), {}, ("first", "second"))
TUNING = {"openai_es": 0.95, "snes": 0.5}
"""Validation score of a method's first trial, else 0.1; the second's is lower."""
Score = Callable[[str, str, int], float]


class Records:
    """An archive of records of which only the scores are told.

    Args:
        validation: Mean validation score of a method's runs.
        test: Takes task, method and seed to the test score.
    """

    def __init__(self, validation: Mapping[str, float], test: Score) -> None:
        first = [cell[1] for cell in PLAN.cells()]
        trials = jobs.tuning_jobs(PLAN, {})
        numbers = [trials.index(one) % QUICK.trials for one in trials]
        self.tuned = [
            _record(one, {"validation": TUNING.get(_method(one), 0.1) - 0.05 * number})
            for one, number in zip(trials, numbers, strict=True)
        ]
        chosen = jobs.chosen(jobs.tuned(PLAN, self.tuned))
        assert len(chosen) == len(first)
        self.final = [
            _record(
                one,
                {
                    "validation": validation.get(_method(one), 0.1) + noise(one.run.seed),
                    "test": test(one.run.case.split(".")[0], _method(one), one.run.seed),
                },
            )
            for one in jobs.final_jobs(PLAN, chosen, {})
        ]

    def scan(self, experiment: str = "*") -> list[Record]:
        return self.tuned if experiment == jobs.TUNING else self.final


def _method(job: Job) -> str:
    return job.run.case.split(".")[1]


def _record(job: Job, result: Mapping[str, float]) -> Record:
    return Record(job.run, {}, {"status": "completed", **result})


def noise(seed: int) -> float:
    return 0.001 * float(np.random.default_rng(seed).standard_normal())


def found(gain: float, spread: float = 1.0) -> list[Finding]:
    """Returns what is said where ours is better than SNES, the rival by validation."""

    def test(task: str, method: str, seed: int) -> float:
        # Random search is best of all, as only the test set knows.
        score = {"local_entropy": gain + spread * noise(seed), "random_search": 0.5}
        return 0.3 + score.get(method, 0.0) + noise(100 + seed)

    return findings.findings(PLAN, Records({"snes": 0.9, "random_search": 0.2}, test))


def test_validation_alone_chooses_the_rival_and_the_settings() -> None:
    first, _ = found(0.0)
    assert first.contrast is not None
    # On the seed of the tuning another was better.
    assert max(TUNING, key=TUNING.__getitem__) == "openai_es"
    assert first.contrast.rival.method == "snes"
    assert first.contrast.ours.method == "local_entropy"
    settings = PLAN.trials(("first", "snes"))
    assert first.contrast.rival.settings == settings[0] != settings[1]


@pytest.mark.parametrize(
    ("gain", "spread", "says"),
    [
        (0.05, 1.0, "gains"),
        (-0.05, 1.0, "loses"),
        (0.004, 1.0, "gains, though by less than the bound of 0.01"),
        (0.0, 1.0, "equal within the bound of 0.01"),
        (0.005, 100.0, "no gain shown"),
    ],
)
def test_each_outcome_has_its_sentence(gain: float, spread: float, says: str) -> None:
    there = found(gain, spread)
    text = report.markdown(there, PLAN, None)
    assert f"SNES: {says} (" in text
    # The secondary task, with the same numbers, is never said to gain.
    assert "SNES: secondary, not tested (" in text
    assert set(findings.gains(there)) == {"first"}


def test_a_verdict_does_not_turn_back_when_a_batch_comes_in() -> None:
    gain = _finding("a", p=0.03, p_equal=0.03)
    later = _finding("b", p=0.9, p_equal=0.9)
    tests = findings.gains, findings.equalities
    for test in tests:
        before = test([gain, replace(later, contrast=None)])
        # Alone, 0.03 would pass; of two it is more than 0.025.
        assert before == test([gain, later]) == {"a": False, "b": False}
        sure = _finding("a", p=0.02, p_equal=0.02)
        assert test([sure, replace(later, contrast=None)]) == test([sure, later])
        assert test([sure, later])["a"]


def _finding(name: str, p: float, p_equal: float) -> Finding:
    first, _ = found(0.0)
    assert first.contrast is not None
    difference = replace(first.contrast.difference, p=p, p_equal=p_equal)
    task = replace(first.task, name=name)
    return replace(first, task=task, contrast=replace(first.contrast, difference=difference))


def test_measures_that_are_not_finite_come_through_tables_and_page(tmp_path: Path) -> None:
    records = Records({"snes": 0.9}, lambda *_: 0.5)
    final = [
        replace(one, result={**one.result, "nll": math.nan, "gap": math.nan, "status": "diverged"})
        for one in records.final
    ]
    tidy.add(tmp_path, [*records.tuned, *final])
    text, _ = report.render(Tables(tmp_path), PLAN, tmp_path / "map.md", tmp_path / "map")
    line = next(one for one in text.splitlines() if one.startswith("| SNES"))
    assert "| nan " in line
    assert f"counted as they are: OpenAI's evolution strategy ({len(SEEDS)})" in text


def test_flatness_is_compared_where_all_methods_are_there() -> None:
    records = Records({"snes": 0.9}, lambda task, method, seed: len(method) / 20.0)
    records.final = [
        replace(one, result={**one.result, "gap": 1.0 - one.result["test"]})
        for one in records.final
    ]
    text = report.markdown(findings.findings(PLAN, records), PLAN, None)
    assert "Rank correlation of F_tau - f with the test error over the 5 methods: +1.00." in text
    records.final = [one for one in records.final if not one.run.case.endswith("cma_es")]
    assert "Rank correlation" not in report.markdown(findings.findings(PLAN, records), PLAN, None)


def test_the_page_counts_what_is_searched() -> None:
    text = how_measured.section(Plan(PROTOCOL, {}, ()))
    for counted in ("Entropy-SGD (6)", "SGD (4)", "SGD (2)", "CMA-ES (1)"):
        assert f" {counted};" in text
    assert "Compared on a network of signs, 0-1 loss: straight-through estimator (4);" in text


def test_no_gain_is_said_of_an_interval_that_reaches_zero() -> None:
    touching = Difference(0.05, -0.001, 0.101, 0.04, 1.0, 10)
    assert findings.verdict(touching, True, False, 0.01) == "no gain shown"
    assert findings.verdict(touching, False, True, 0.1) == "equal within the bound of 0.1"


def test_a_seed_that_is_missing_is_no_result() -> None:
    records = Records({"snes": 0.9}, lambda *_: 0.5)
    records.final = [one for one in records.final if one.run.seed != 3]
    assert [one.contrast for one in findings.findings(PLAN, records)] == [None, None]
    assert all(not one.methods for one in findings.findings(PLAN, records))


def test_trials_that_are_missing_choose_nothing() -> None:
    records = Records({"snes": 0.9}, lambda *_: 0.5)
    assert not jobs.tuned(PLAN, records.tuned[1:]).keys() >= {("first", "openai_es")}


def test_an_added_method_is_shown_and_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(TASKS[0], methods=("snes", "local_entropy"), added=("openai_es",))
    plan = replace(PLAN, protocol=replace(PLAN.protocol, tasks=(task,)), tasks=("first",))
    monkeypatch.setitem(globals(), "PLAN", plan)
    records = Records({"snes": 0.5, "openai_es": 0.9}, lambda *position: noise(position[2]))
    (one,) = findings.findings(plan, records)
    assert one.contrast is not None
    assert one.contrast.rival.method == "snes"
    text = report.markdown([one], plan, None)
    assert "| *OpenAI's evolution strategy* " in text
    assert "In italics: added when results were known" in text
    # It takes as many updates as the method it is like.
    of_added = PROTOCOL.task("small-data").name, "heat_adam"
    costs = {"dense": {"heat": 0.004}}
    timed = Plan(PROTOCOL, costs, ("small-data",))
    assert timed.updates(of_added, {}) == timed.updates((of_added[0], "heat"), {}) == 3800


def test_the_figure_has_a_point_per_task_and_method(tmp_path: Path) -> None:
    frame = figure.frame(found(0.05))
    assert len(frame) == 2 * len(TASKS[0].methods)
    rival, ours = (frame[frame.method == name].iloc[0] for name in ("SNES", frame.method.iloc[4]))
    assert (rival.low, rival.gain, rival.high) == (0.0, 0.0, 0.0)
    assert ours.is_ours
    assert 0.0 < ours.low < ours.gain < ours.high
    written = figure.draw(frame, tmp_path / "map")
    assert [path.suffix for path in written] == [".png", ".pdf", ".csv"]
