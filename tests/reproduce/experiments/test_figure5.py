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


def test_views_show_the_whole_and_the_switch_from_close() -> None:
    updates = {0: 0.1, 2000: 0.8, 2900: 0.85, 2990: 0.85, 3000: 0.9, 3500: 0.91}
    records = [record(COMPARISON, row, 0, updates) for row in ("sgd", "is")]
    rows = summarise(records, COMPARISON, (0,))
    panel = Panel("one", rows, columns=COMPARISON.training.columns, switch=3000)
    whole, closer, closest = figure5.views([panel])
    assert whole == panel
    assert (closer.first, closer.switch, closer.accuracy) == (2900, 3000, (0.0, 1.0))
    assert closest.accuracy == pytest.approx((0.84, 0.96))
    # Before the switch there is SGD only, and it is drawn as such.
    assert [whole.updates(row) for row in rows[:2]] == [list(updates), [3000, 3500]]
    assert [closer.updates(row) for row in rows[:2]] == [[2900, 2990, 3000, 3500], [3000, 3500]]
