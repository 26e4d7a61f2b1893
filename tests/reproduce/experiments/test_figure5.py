import pytest

from reproduce.experiments import figure5
from reproduce.protocols import TABLE1, LocalEntropyBySGLD
from reproduce.summary import Panel, summarise
from tests.reproduce._examples import record

(COMPARISON,) = figure5.PROTOCOL.panels.values()


def test_protocol_is_sgd_for_an_epoch_then_each_method() -> None:
    training = COMPARISON.training
    assert training.sgd_updates * training.batch_size == 60_000
    assert (training.sgd_updates, training.updates, training.total_updates) == (3000, 500, 3500)
    assert training.columns == (3000, 3100, 3200, 3300, 3400, 3500)
    assert {0, 3000, 3010, 3500} <= set(training.evaluations)
    assert list(COMPARISON.methods) == ["sgd", "is", "sgld", "hr", "sgld-linear"]


def test_methods_are_table_1s_but_for_the_step_sizes() -> None:
    for row, method in COMPARISON.methods.items():
        if not row.startswith("sgld"):
            assert method == TABLE1.methods[row]
    assert COMPARISON.methods["sgld"] == LocalEntropyBySGLD(offset=2000.0)
    assert COMPARISON.methods["sgld-linear"] == LocalEntropyBySGLD(offset=2000.0, noise="linear")
    assert all(getattr(one, "tau", 0.01) == 0.01 for one in COMPARISON.methods.values())


def test_views_show_the_whole_and_differences_on_the_same_seed() -> None:
    sgd = {0: {0: 0.1, 2990: 0.85, 3000: 0.9, 3500: 0.95}, 1: {3000: 0.8, 3500: 0.7}}
    importance = {0: {3000: 0.9, 3500: 0.91}, 1: {3000: 0.8, 3500: 0.76}}
    records = [
        record(COMPARISON, row, seed, curve)
        for row, curves in (("sgd", sgd), ("is", importance))
        for seed, curve in curves.items()
    ]
    rows = summarise(records, COMPARISON, (0, 1))
    panel = Panel("one", rows, columns=COMPARISON.training.columns, switch=3000)
    whole, differences, near = figure5.views([panel])
    assert whole == panel
    assert whole.updates(rows[0]) == [0, 2990, 3000, 3500]
    control, own, *_ = differences.rows
    assert control.curves == {seed: {3000: 0.0, 3500: 0.0} for seed in (0, 1)}
    assert own.curves[0] == pytest.approx({3000: 0.0, 3500: -0.04})
    assert own.curves[1] == pytest.approx({3000: 0.0, 3500: 0.06})
    assert (differences.first, differences.limits) == (3000, (None, None))
    assert near.rows == differences.rows
    assert near.limits == (-0.04, 0.04)


def test_seed_without_sgd_has_no_difference() -> None:
    records = [record(COMPARISON, "is", 0, {3000: 0.9})]
    panel = Panel("one", summarise(records, COMPARISON, (0,)), switch=3000)
    assert figure5.views([panel])[1].rows[1].curves == {0: {}}
