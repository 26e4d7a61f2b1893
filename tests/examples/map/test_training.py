"""A run of each kind: what it trains on, what it keeps, and when it reads the test set."""

from dataclasses import replace
from functools import partial
from typing import Any

import keras
import numpy as np
import pytest

from examples.map import data, gradient_free, training
from examples.map.gradient_free import Signs
from examples.map.protocol import Protocol
from examples.map.search import Settings
from examples.map.strategies import STRATEGIES, Losses, Strategy
from examples.map.training import Result
from examples.sign_network import zero_one
from reproduce.data import Mnist
from reproduce.sampling import minibatches

SETTINGS = {
    "learning_rate": 0.5,
    "momentum": 0.0,
    "weight_decay": 1e-4,
    "forgetting": 0.1,
    "rho": 0.05,
}


def run(
    task: str,
    method: str,
    protocol: Protocol,
    mnist: Mnist,
    is_final: bool = False,
    settings: Settings = SETTINGS,
) -> Result:
    way = training.over_rates if task == "learning-rates" else training.classify
    chosen = (protocol.task(task), method, settings, 6, 0, protocol)
    return way(*chosen, lambda: mnist, is_final, lambda _: None)


@pytest.mark.parametrize(
    ("task", "method"),
    [("wrong-labels", "average"), ("convolution", "sgd"), ("sign-network", "straight_through")],
)
def test_a_final_run_reads_the_test_set_once_and_keeps_the_best_weights(
    task: str, method: str, tiny: Protocol, halves: Mnist, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = []

    def read(*arguments: Any) -> data.Examples:
        tests.append(arguments)
        return original(*arguments)

    original = data.test_set
    monkeypatch.setattr(data, "test_set", read)
    found = run(task, method, tiny, halves, is_final=True)
    assert len(tests) == 1
    assert found["status"] == "completed"
    assert len(found["validations"]) == tiny.checkpoints
    assert found["validation"] == pytest.approx(max(found["validations"]))
    names = ("test", "nll", "ece", "gap", "gap_error")
    assert all(np.isfinite(found[name]) for name in names)
    assert ("trace" in found) == (task != "sign-network")
    # Wrong labels are wrong in validation too, and right beside it.
    assert (found["validation"] != found["clean_validation"]) == (task == "wrong-labels")


@pytest.mark.parametrize("method", ["sgd", "average", "adam"])
def test_a_final_run_that_diverges_is_measured_all_the_same(
    method: str, tiny: Protocol, halves: Mnist
) -> None:
    settings = {**SETTINGS, "learning_rate": 1e38}
    found = run("wrong-labels", method, tiny, halves, is_final=True, settings=settings)
    assert found["status"] == "diverged"
    assert 0.0 <= found["test"] <= 1.0
    assert np.isnan([found[name] for name in ("nll", "ece", "gap", "trace")]).all()


def test_one_checkpoint_that_is_not_finite_is_divergence(tiny: Protocol, halves: Mnist) -> None:
    """Whichever weights are kept: here those of the first checkpoint, which are finite."""
    task = tiny.task("small-data")
    split = training.split_of(task, 0, tiny, lambda: halves)
    model = training.build(task, "sgd", 0, keras.optimizers.SGD(0.1))

    def report(checkpoint: int) -> None:
        if checkpoint == 1:
            model.optimizer.learning_rate = np.inf

    found = training.fit(model, task, split.training, split.validation, 6, 0, tiny, report)
    assert found["status"] == "diverged"
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_so_it_is_without_gradients(tiny: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaping(Strategy):
        def _update(self, losses: Losses) -> None:
            self.weights = self.weights * (np.nan if self._updates == 0 else 1.0)
            if self._updates == 2:
                self.weights = np.zeros_like(self.weights)

    method = replace(STRATEGIES["snes"], strategy=Leaping)
    monkeypatch.setattr(gradient_free, "strategies_of", lambda kind: {"snes": method})
    task = tiny.task("inventory")
    found = gradient_free.optimise(task, "snes", {}, 4, 0, tiny, pytest.fail, True, lambda _: None)
    assert found["status"] == "diverged"
    assert np.isfinite(found["test"])


def test_tuning_never_reads_the_test_set(
    tiny: Protocol, halves: Mnist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "test_set", lambda *_: pytest.fail("the test set was read"))
    found = run("small-data", "sgd", tiny, halves)
    assert set(found) == {"status", "validation", "clean_validation", "validations"}


def test_each_learning_rate_starts_anew(
    tiny: Protocol, halves: Mnist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "RATES", (0.5, 0.01, 0.5))
    found = run("learning-rates", "average", replace(tiny, updates=6), halves, is_final=True)
    first, other, again = found["by_rate"]["nll"]
    assert first == again != other
    assert found["test"] == pytest.approx(np.mean(found["by_rate"]["test"]))


def test_signs_are_the_network_that_fit_trains(tiny: Protocol, halves: Mnist) -> None:
    task = tiny.task("sign-network")
    problem = Signs(0, task, tiny, lambda: halves, 3)
    start = problem.start()
    model = training.build(task, "local_entropy", 0, keras.optimizers.SGD(0.1))
    rng = np.random.default_rng(0)
    other = [v.numpy() + 0.1 * rng.standard_normal(v.shape) for v in model.weights]
    population = np.stack([start, np.concatenate([value.ravel() for value in other])])
    x, y = data.split("mnist", lambda: halves, 0, task.training, tiny.validation, 0.0).training
    rows = minibatches(0, len(x), task.batch, 3)[1]
    found = problem.losses(1, population)
    assert found[0] == pytest.approx(float(np.mean(zero_one(y[rows], model(x[rows])))))
    model.set_weights(other)
    assert found[1] == pytest.approx(float(np.mean(zero_one(y[rows], model(x[rows])))))
    assert found[0] != found[1]


def test_wrong_validation_labels_choose() -> None:
    """The score that decides is not the one with the right labels beside it."""
    from examples.map.jobs import validation
    from reproduce.records import Record, Run

    made = partial(Run, "map-tuning", "wrong-labels.sgd", 1000)
    result = {"validation": 0.5, "clean_validation": 0.9}
    assert validation(Record(made({}), {}, result)) == 0.5
    assert validation(Record(made({}), {}, result | {"validation": float("nan")})) < 0.0
