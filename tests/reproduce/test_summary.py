import pytest

from reproduce.protocols import QUICK_TABLE1, TABLE1
from reproduce.summary import Budget, centre, spread, summarise
from tests.reproduce._examples import record


def test_summarise_takes_only_the_comparisons_own_records() -> None:
    records = [
        record(TABLE1, "sgd", 0, {0: 0.1, 100: 0.7}),
        record(QUICK_TABLE1, "sgd", 1, {0: 0.2, 100: 0.6}),
        record(TABLE1.with_budget(samples=7), "is", 0, {0: 0.1}),
    ]
    sgd, importance = summarise(records, TABLE1, None)
    assert sgd.curves == {0: {0: 0.1, 100: 0.7}}
    assert sgd.seeds == (0,)
    assert importance.curves == {}
    assert importance.missing == (0,)


def test_summarise_shows_the_seeds_asked_for() -> None:
    records = [record(TABLE1, "sgd", seed, {100: 0.7}) for seed in (0, 1, 2)]
    sgd, _ = summarise(records, TABLE1, (2, 5))
    assert list(sgd.curves) == [2]
    assert sgd.missing == (5,)


def test_summarise_of_runs_made_twice_takes_the_first() -> None:
    twice = [record(TABLE1, "sgd", 0, {100: 0.1 * n}, threads=n) for n in (2, 4)]
    assert summarise(twice, TABLE1, None)[0].curves == {0: {100: 0.2}}


def test_centre_and_spread() -> None:
    assert centre([]) is None
    assert centre([0.5, 0.7]) == pytest.approx(0.6)
    assert spread([0.5]) is None
    assert spread([0.5, 0.7]) == pytest.approx(0.02**0.5)


def test_budget_marks_all_but_the_papers() -> None:
    assert Budget.of(TABLE1, TABLE1, QUICK_TABLE1) == Budget((), "")
    assert Budget.of(TABLE1.with_methods(("is",)), TABLE1, QUICK_TABLE1).warning == ""
    quick = Budget.of(QUICK_TABLE1, TABLE1, QUICK_TABLE1)
    assert quick.suffix == "-quick"
    assert quick.warning.startswith("NOT the paper's budget: updates=100, samples=50")
    other = Budget.of(TABLE1.with_budget(updates=30), TABLE1, QUICK_TABLE1)
    assert other.suffix == "-updates-30"
