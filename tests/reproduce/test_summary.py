import pytest

from reproduce import readings
from reproduce.protocols import QUICK_TABLE1, TABLE1
from reproduce.summary import Budget, centre, spread, summarise
from tests.reproduce._examples import record


def test_summarise_takes_only_the_comparisons_own_records() -> None:
    records = [
        record(TABLE1, "sgd", 0, {0: 0.1, 100: 0.7}),
        record(QUICK_TABLE1, "sgd", 1, {0: 0.2, 100: 0.6}),
        record(TABLE1.with_budget(samples=7), "is", 0, {0: 0.1}),
    ]
    sgd, importance, *_ = summarise(records, TABLE1, None)
    assert sgd.curves == {0: {0: 0.1, 100: 0.7}}
    assert sgd.seeds == (0,)
    assert importance.curves == {}
    assert importance.missing == (0,)


def test_summarise_shows_the_seeds_asked_for() -> None:
    records = [record(TABLE1, "sgd", seed, {100: 0.7}) for seed in (0, 1, 2)]
    sgd, *_ = summarise(records, TABLE1, (2, 5))
    assert list(sgd.curves) == [2]
    assert sgd.missing == (5,)


def test_summarise_of_runs_made_twice_takes_the_first() -> None:
    twice = [record(TABLE1, "sgd", 0, {100: 0.1 * n}, threads=n) for n in (2, 4)]
    assert summarise(twice, TABLE1, None)[0].curves == {0: {100: 0.2}}


def test_summarise_keeps_executions_apart_and_says_which_path_ran() -> None:
    records = [record(TABLE1, "is", 0, {100: 0.5})]
    records.append(record(TABLE1, "is", 0, {100: 0.6}, subspace=False))
    reduced, plain = (summarise(records, TABLE1, None, subspace)[1] for subspace in ("auto", False))
    assert (reduced.curves, plain.curves) == ({0: {100: 0.5}}, {0: {100: 0.6}})
    assert reduced.paths == ("noise in 6,010-6,210 of 159,010 dimensions, loop compiled by XLA",)
    assert "subspace=false" in plain.environments[0]
    assert summarise([record(TABLE1, "sgd", 0, {100: 0.5})], TABLE1, None)[0].paths == ()


def test_title_of_a_variant_names_its_reading() -> None:
    titles = [row.title for row in summarise([], TABLE1, ())]
    assert titles == ["SGD", "IS", "SGLD (as printed)", "HR", "SGLD (noise=linear)"]


def test_title_is_the_reading_that_was_run() -> None:
    chosen = readings.choose(TABLE1.with_methods(("sgld",)), {"noise": "linear"})
    assert [row.title for row in summarise([], chosen, ())] == ["SGLD (noise=linear)"]


def test_centre_and_spread() -> None:
    assert centre([]) is None
    assert centre([0.5, 0.7]) == pytest.approx(0.6)
    assert spread([0.5]) is None
    assert spread([0.5, 0.7]) == pytest.approx(0.02**0.5)


def test_budget_marks_all_but_the_papers() -> None:
    assert Budget.of(TABLE1, TABLE1, QUICK_TABLE1) == Budget()
    assert Budget.of(TABLE1.with_methods(("is",)), TABLE1, QUICK_TABLE1).warning == ""
    quick = Budget.of(QUICK_TABLE1, TABLE1, QUICK_TABLE1)
    assert quick.suffix == "-quick"
    assert quick.warning.startswith("NOT the paper's budget: updates=100, samples=50")
    other = Budget.of(TABLE1.with_budget(updates=30), TABLE1, QUICK_TABLE1)
    assert other.suffix == "-updates-30"


def test_budget_tells_readings_from_budgets() -> None:
    chosen = readings.choose(TABLE1, {"noise": "linear", "loss_multiplier": 20.0})
    budget = Budget.of(chosen, TABLE1, QUICK_TABLE1)
    assert budget.departures == ()
    assert budget.warning == (
        "other readings than by default: loss_multiplier=20 (is), noise=linear (sgld)"
    )
    assert budget.suffix == "-loss_multiplier-20-noise-linear"
    quick = readings.choose(QUICK_TABLE1, {"growing": True})
    assert Budget.of(quick, TABLE1, QUICK_TABLE1, False).suffix == (
        "-quick-growing-true-subspace-false"
    )
