"""The comparison of estimators from runs to report, at a tiny budget, and its references."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.special import ndtr

from benchmarks.estimators import accuracy, command, landscapes, other_noise, problem, report
from benchmarks.estimators.protocol import (
    PROTOCOL,
    QUICK,
    Accuracy,
    Bias,
    Protocol,
)
from lerh_tf import LossFunction, PhiloxNoise
from reproduce.cli.options import Making
from reproduce.parallel import Plan, Workers
from reproduce.protocols import Panels
from reproduce.records import Record, Store
from reproduce.runner import Fate, run_missing
from tests.reproduce._examples import ENVIRONMENT, record, stripes
from tests.reproduce._invocation import Lines

EXECUTION = {"threads": 0, "device": "cpu", "jit_compile": False}
TINY = Protocol(
    Accuracy((1,), (0.01,), 1, 2, 200, 5, quick=True),
    Bias((("double_well", 1.6, 0.5),), 200, quick=True),
    Panels({"SGD": QUICK.training.panels["SGD"]}),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The records of the tiny protocol."""
    store = Store(tmp_path_factory.mktemp("estimators"), warn=pytest.fail)
    jobs = [
        *accuracy.jobs(TINY.accuracy, stripes, EXECUTION),
        *landscapes.jobs(TINY.bias, EXECUTION),
    ]
    assert not run_missing(jobs, store, ENVIRONMENT, Lines())[Fate.FAILED]
    comparison = TINY.training.panels["SGD"]
    (name,) = comparison.methods
    for seed in (0, 1):
        store.save(record(comparison, name, seed, {0: 0.1, 2: 0.3, 4: 0.5 + 0.1 * seed}))
    return store


def test_report_shows_references_errors_bias_and_training(store: Store, tmp_path: Path) -> None:
    text, written = report.render(store, TINY, (0, 1), tmp_path, tmp_path / "figures")
    assert [path.name for path in written] == [
        *("estimators-quick.md", "estimators-quick.csv"),
        *("estimators-quick.png", "estimators-quick.pdf", "estimators-quick.csv"),
    ]
    for heading in (
        "references",
        "Error of m",
        "Other noise",
        "Bias and standard deviation",
        "Training with",
    ):
        assert heading in text
    assert "| 0.550 ± 0.071 |" in text
    frame = pd.read_csv(written[1])
    assert list(frame.estimator) == [each.name for each in TINY.accuracy.estimators]
    assert (frame.error > 0).all()
    assert (frame.seconds > 0).all()
    assert "importance sampling, gradients, scrambled Sobol points" in text


def test_report_without_records_is_a_heading(tmp_path: Path) -> None:
    empty = Store(tmp_path, warn=pytest.fail)
    text, written = report.render(empty, PROTOCOL, (0,), tmp_path, tmp_path)
    assert text == "# Estimators of the mean\n"
    assert [path.suffix for path in written] == [".md", ".csv"]


def test_gradients_do_more_than_losses(store: Store) -> None:
    ((place, found),) = report.measured_errors(store, TINY).items()
    assert place == (1, 0.01)
    errors = {label: np.median(values) for label, values in found.result["errors"].items()}
    assert errors["importance sampling, gradients, 10"] < 0.1 * errors["importance sampling, 10"]
    assert (
        errors["importance sampling, control variate, 10"] < 0.5 * errors["importance sampling, 10"]
    )


def test_records_of_other_settings_are_left_out(store: Store) -> None:
    other = replace(TINY, accuracy=replace(TINY.accuracy, repetitions=3))
    assert report.measured_errors(store, other) == {}


def test_labels_are_distinct_and_quick_ones_are_among_them() -> None:
    labels = [each.label for each in PROTOCOL.accuracy.estimators]
    assert len(set(labels)) == len(labels)
    assert set(QUICK.accuracy.estimators) <= set(PROTOCOL.accuracy.estimators)


def test_the_comparison_s_loss_is_the_network_s() -> None:
    from reproduce import networks

    data = stripes()
    weights = problem.weights_after(data, 0, 0, 5)
    (batch,) = problem.batches(data, 0, 3, 1)
    model = networks.build("hidden_dense", "glorot_uniform", 0)
    for variable, value in zip(model.trainable_variables, weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    logits = model(batch[0]).numpy().astype("float64")
    logits -= logits.max(1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -log_p[np.arange(20), batch[1]].mean()
    assert float(problem.loss(weights, batch)) == pytest.approx(expected, rel=1e-5)


def test_a_start_elsewhere_is_forgotten() -> None:
    objective = LossFunction(lambda w: tf.reduce_sum(w[0] ** 2), 1)
    anchor = [tf.ones([50])]

    def solve(steps: int) -> Any:
        kernel = problem.FromElsewhere(steps, samples=100)
        noise = PhiloxNoise(0, tf.constant(0, tf.int64), anchor)
        run = tf.function(lambda: kernel(objective, anchor, tf.constant(0.1), noise))
        return run.get_concrete_function()().displacement[0].numpy()

    # x = 1 moves to 1 / (1 + 2 tau) but for the noise of 4000 gradients.
    root = 1.0 / 1.2 - 1.0
    np.testing.assert_allclose(solve(80), root, atol=0.01)
    # After one move half of the distance of a draw of N(x, tau I) is left.
    assert np.abs(solve(1) - root).max() > 0.2


def test_a_reference_says_how_it_was_made(store: Store) -> None:
    record: Record = next(iter(store.scan(accuracy.NAME)))
    first, second = record.result["references"].values()
    assert first[0].keys() == {
        *("effective_sample_size", "by", "chains_apart", "samplers_apart", "step")
    }
    assert second[0].keys() == {"starts_apart", "step"}
    assert record.run.case == "after-1-tau-0.01"


def test_other_noise_has_the_law_of_each_sample_alone() -> None:
    like, where = [tf.zeros([3]), tf.zeros([2, 2])], tf.constant(5, tf.int64)
    drawn = {
        name: [z.numpy() for z in make(0, where, like)(tf.constant(1, tf.int64), 64)]
        for name, make in other_noise.NOISES.items()
    }
    for name, (a, b) in drawn.items():
        assert (a.shape, b.shape) == ((64, 3), (64, 2, 2)), name
        numbers = np.concatenate([a.ravel(), b.ravel()])
        # Of a pair, one square.
        squares = numbers.size // (2 if name == "antithetic pairs" else 1)
        assert abs(numbers.mean()) < 3.1 / np.sqrt(numbers.size)
        assert abs(np.mean(numbers**2) - 1.0) < 3.1 * np.sqrt(2.0 / squares)
    (pairs, _), (net, _) = drawn["antithetic pairs"], drawn["scrambled Sobol points"]
    np.testing.assert_array_equal(pairs[:32], -pairs[32:])
    # One point in each of 64 intervals of equal probability.
    assert sorted(np.floor(64 * ndtr(net[:, 0]))) == list(range(64))
    first = PhiloxNoise(0, where, like)(tf.constant(0, tf.int64), 64)
    np.testing.assert_array_equal(drawn["common random numbers"][0], first[0])


class Inline:
    """An executor that calls at once, here."""

    def __init__(self, *_: object) -> None:
        """Takes what a pool takes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def submit(self, function: Callable[..., int], *arguments: object) -> SimpleNamespace:
        found = function(*arguments)
        return SimpleNamespace(result=lambda: found)


@pytest.mark.parametrize(("costs_only", "plans"), [(False, 3), (True, 2)])
def test_costs_are_measured_alone_on_demand(
    costs_only: bool, plans: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Plan] = []
    monkeypatch.setattr(command, "ProcessPoolExecutor", Inline)

    def note(plan: Plan, workers: Workers) -> int:
        made.append(plan)
        return 0

    monkeypatch.setattr(command, "make", note)
    options = Making(quick=True, output=tmp_path)
    assert command.compare(options, costs_only=costs_only) == 0
    assert len(made) == plans
    assert [plan.threads for plan in made[-2:]] == [1, 2]
