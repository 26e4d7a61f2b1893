from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from reproduce import networks, training
from reproduce.protocols import (
    Case,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
    Training,
)
from reproduce.sampling import held_out_subset, minibatches
from tests.reproduce._examples import stripes

DATA = stripes()
SETUP = Training(updates=12, test_images=50, evaluate_every=5, tabulated=(7,))
SMALL_SETUP = Training(updates=3, test_images=20, evaluate_every=2, tabulated=(3,))
SGD = GradientDescent(learning_rate=0.1)
HR = HeatRegularizationByRobbinsMonro(steps=2, samples=2)
METHODS = {
    "sgd": SGD,
    "is": LocalEntropyByImportanceSampling(samples=4),
    "sgld": LocalEntropyBySGLD(samples=4),
    "hr": HR,
}


def _train(
    method: Method, setup: Training = SETUP, seed: int = 0, subspace: str | bool = "auto"
) -> dict[str, Any]:
    return dict(training.train(Case(setup, method), seed, DATA, lambda updates: None, subspace)[0])


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """What a short run of each method came to; tracing one costs seconds."""
    return {name: _train(method, SMALL_SETUP) for name, method in METHODS.items()}


def test_train_is_gradient_descent_on_the_seeds_minibatches() -> None:
    order = minibatches(0, len(DATA.train_labels), SETUP.batch_size, SETUP.updates)
    chosen = held_out_subset(0, len(DATA.test_labels), SETUP.test_images)
    model = networks.build("hidden_dense", "glorot_uniform", 0)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.learning_rate = 0.1
    losses, accuracies = [], {}
    for update, batch in enumerate(order, start=1):
        images = DATA.train_images[batch].reshape(-1, 784) / np.float32(255)
        model.reset_metrics()
        losses.append(float(model.train_on_batch(images, DATA.train_labels[batch])))
        logits = model.predict_on_batch(DATA.test_images[chosen].reshape(-1, 784) / np.float32(255))
        accuracies[update] = (logits.argmax(axis=1) == DATA.test_labels[chosen]).mean()
    result = _train(SGD)
    assert result["status"] == "completed"
    assert result["parameters"] == 159010
    assert result["curve"]["update"] == [0, 5, 7, 10, 12]
    assert result["curve"]["accuracy"][1:] == [accuracies[k] for k in (5, 7, 10, 12)]
    spans = [losses[:5], losses[5:7], losses[7:10], losses[10:]]
    means = [np.mean(span) for span in spans]
    assert result["curve"]["loss"][0] is None
    np.testing.assert_allclose(result["curve"]["loss"][1:], means, rtol=1e-5)


def test_train_methods_of_a_seed_share_their_start(results: dict[str, dict[str, Any]]) -> None:
    (start,) = {result["curve"]["accuracy"][0] for result in results.values()}
    assert _train(SGD, SMALL_SETUP, seed=1)["curve"]["accuracy"][0] != start


def test_train_methods_go_ways_of_their_own(results: dict[str, dict[str, Any]]) -> None:
    assert all(result["status"] == "completed" for result in results.values())
    assert len({tuple(result["curve"]["loss"]) for result in results.values()}) == len(METHODS)


def test_train_keeps_the_diagnostics(results: dict[str, dict[str, Any]]) -> None:
    own = {
        "is": {"effective_sample_size", "local_entropy", "standard_error", "non_finite"},
        "sgld": {"standard_error", "non_finite"},
        "hr": {"residual", "non_finite"},
    }
    common = {"step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized"}
    assert results["sgd"]["diagnostics"] == {}
    for name, names in own.items():
        reported = results[name]["diagnostics"]
        assert reported.keys() == common | names
        assert reported["dimensions"] == [159010, 159010]
        assert max(reported["sampled_dimensions"]) <= 20 * 200 + 200 + 2010
        assert reported["compiled"] == [1, 1]
        assert min(reported["step_norm"]) > 0
    assert all(1 <= size <= 4 for size in results["is"]["diagnostics"]["effective_sample_size"])


def test_train_in_all_weights(results: dict[str, dict[str, Any]]) -> None:
    plain = _train(HR, SMALL_SETUP, subspace=False)
    assert plain["diagnostics"]["sampled_dimensions"] == [159010, 159010]
    assert plain["curve"]["loss"] != results["hr"]["curve"]["loss"]


def test_train_test_images_drawn_at_each_evaluation() -> None:
    still = GradientDescent(learning_rate=1e-30)
    fixed = _train(still)["curve"]["accuracy"]
    anew = Training(updates=12, test_images=50, evaluate_every=5, test_draw="per_evaluation")
    assert len(set(fixed)) == 1
    assert len(set(_train(still, anew)["curve"]["accuracy"])) > 1


def test_train_measures_on_all_test_images_and_on_some_drawn_anew() -> None:
    result, beside = training.train(Case(SETUP, SGD), 0, DATA, lambda updates: None)
    anew = _train(SGD, replace(SETUP, test_draw="per_evaluation"))
    assert beside["held_out"]["per_evaluation"] == anew["curve"]["accuracy"]
    whole = _train(SGD, replace(SETUP, test_images=len(DATA.test_labels)))
    assert set(SETUP.evaluations) > set(SETUP.columns)
    assert beside["held_out"]["all"] == [
        accuracy if update in SETUP.columns else None
        for update, accuracy in zip(SETUP.evaluations, whole["curve"]["accuracy"], strict=True)
    ]
    assert "held_out" not in result


def test_train_pixels_standardised() -> None:
    scaled = training.pixels(replace(SETUP, pixels="standardised"), DATA)
    images = np.asarray(scaled(DATA.train_images))
    assert images.shape == (400, 784)
    assert images.dtype == np.float32
    assert images.mean() == pytest.approx(0.0, abs=1e-4)
    assert images.std() == pytest.approx(1.0, abs=1e-4)
    unit = np.asarray(training.pixels(SETUP, DATA)(DATA.train_images))
    np.testing.assert_array_equal(unit, DATA.train_images.reshape(-1, 784) / np.float32(255))


@pytest.mark.parametrize(
    "reading",
    [
        {"initialization": "uniform"},
        {"activation": "tanh"},
        {"activation": "sigmoid"},
        {"sampling": "replacement"},
        {"pixels": "standardised"},
    ],
    ids=str,
)
def test_train_readings_go_ways_of_their_own(reading: dict[str, Any]) -> None:
    usual, other = (_train(SGD, replace(SMALL_SETUP, **own)) for own in ({}, reading))
    assert other["status"] == "completed"
    assert other["curve"]["loss"] != usual["curve"]["loss"]


def test_train_every_reading_at_once() -> None:
    setup = replace(
        SMALL_SETUP,
        initialization="normal",
        activation="tanh",
        sampling="replacement",
        pixels="standardised",
    )
    for method in (
        LocalEntropyByImportanceSampling(samples=4, loss_multiplier=20.0),
        replace(HR, growing=True),
        LocalEntropyBySGLD(samples=4, persistent=False, restart=False),
    ):
        assert _train(method, setup)["status"] == "completed"


def test_train_diverged_run_stops_and_says_where() -> None:
    result = _train(GradientDescent(learning_rate=1e38))
    assert result["status"] == "diverged"
    assert 1 <= result["diverged_at"] <= 5
    assert result["curve"]["update"] == [0]


def test_train_estimate_that_finds_nothing_finite_is_divergence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = _train(HeatRegularizationByRobbinsMonro(tau=1e38, steps=2, samples=2), SMALL_SETUP)
    assert (result["status"], result["diverged_at"]) == ("diverged", 1)

    def fit(*args: Any, **kwargs: Any) -> None:
        raise tf.errors.InvalidArgumentError(None, None, "shapes do not match")

    monkeypatch.setattr(keras.Model, "fit", fit)
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes do not match"):
        _train(HR, SMALL_SETUP)


def test_train_reports_every_update_and_times_them() -> None:
    seen: list[int] = []
    _, timings = training.train(Case(SMALL_SETUP, SGD), 0, DATA, seen.append)
    assert seen == [1, 2, 3]
    assert timings["updates"] == 3
    assert timings["total_update_seconds"] >= timings["first_update_seconds"] > 0


AFTER_SGD = replace(SMALL_SETUP, sgd_updates=4, sgd_learning_rate=0.1)


def test_train_after_sgd_starts_methods_from_sgds_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[list[np.ndarray[Any, Any]]] = []
    fit = training._fit

    def keep(model: keras.Model, *arguments: Any) -> None:
        starts.append([weight.numpy() for weight in model.weights])
        fit(model, *arguments)

    monkeypatch.setattr(training, "_fit", keep)
    methods = (SGD, GradientDescent(learning_rate=0.5))
    results = [_train(method, AFTER_SGD) for method in methods]
    initial, switched = starts[::2], starts[1::2]
    for weight, other in zip(*switched, strict=True):
        np.testing.assert_array_equal(weight, other)
    assert any((a != b).any() for a, b in zip(initial[0], switched[0], strict=True))
    points = [0, 2, 3, 4, 6, 7]
    assert [result["curve"]["update"] for result in results] == [points] * len(methods)
    assert len({tuple(result["curve"]["accuracy"][:4]) for result in results}) == 1
    assert len({tuple(result["curve"]["loss"][4:]) for result in results}) == len(methods)


def test_train_sgd_after_sgd_is_sgd() -> None:
    parted = replace(SETUP, updates=7, sgd_updates=5, sgd_learning_rate=0.1)
    assert _train(SGD, parted) == _train(SGD)


def test_train_that_diverges_before_the_method_never_gets_to_it() -> None:
    steps: list[int] = []
    setup = replace(SMALL_SETUP, sgd_updates=5, sgd_learning_rate=1e38)
    result, timings = training.train(Case(setup, HR), 0, DATA, steps.append)
    assert result["status"] == "diverged"
    assert result["diverged_at"] == len(steps) <= 5
    assert timings["updates"] == 0
    assert timings["median_update_seconds"] is None


def test_train_times_the_methods_own_updates() -> None:
    steps: list[int] = []
    _, timings = training.train(Case(AFTER_SGD, SGD), 0, DATA, steps.append)
    assert steps == [1, 2, 3, 4, 5, 6, 7]
    assert timings["updates"] == 3
