"""Diagnostics in Keras's logs, and tau by the effective sample size."""

import csv
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import (
    SGLD,
    AdaptTau,
    Diagnostics,
    HeatRegularization,
    ImportanceSampling,
    LocalEntropy,
    RobbinsMonro,
    Scoping,
    heat_regularization,
    local_entropy,
)
from tests.lerh_tf._regression import assert_equal, compiled, data, network

pytestmark = pytest.mark.usefixtures("plain_loops")
# Keras's files and its TensorBoard callback convert variables in a way that NumPy 2 deprecates.
saving = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning")

BATCHES, EPOCHS, SAMPLES = 2, 2, 40
NAMES = {
    *("tau", "step_norm", "sampled_dimensions", "non_finite", "relative_error"),
    *("effective_sample_size", "local_entropy", "standard_error"),
}


class Seen(keras.callbacks.Callback):
    """What the optimizer itself says after each batch."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.diagnostics: list[dict[str, float]] = []
        self.logs: list[dict[str, float]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.diagnostics.append(self.model.optimizer.diagnostics)
        self.logs.append(dict(logs))


def fit(model: keras.Model, *callbacks: Any, **arguments: Any) -> Any:
    x, y = data()
    arguments = {"epochs": EPOCHS, "verbose": 0, "shuffle": False, **arguments}
    return model.fit(x, y, batch_size=len(x) // BATCHES, callbacks=list(callbacks), **arguments)


def importance(tau: Any = 0.1, **arguments: Any) -> LocalEntropy:
    return LocalEntropy(tau, ImportanceSampling(SAMPLES), seed=0, **arguments)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One training that every logger watches."""
    folder, seen = tmp_path_factory.mktemp("logs"), Seen()
    history = fit(
        compiled(importance(0.25)),
        *(Diagnostics(), seen, keras.callbacks.CSVLogger(folder / "log.csv")),
        keras.callbacks.TensorBoard(folder / "board", update_freq=1, write_graph=False),
    )
    return {"folder": folder, "seen": seen, "history": history.history}


@pytest.mark.feature(
    "logs", "diagnostics of each update in the logs", "yes, by the callback `Diagnostics`"
)
@saving
def test_batch_logs_are_the_update_s_diagnostics(logged: dict[str, Any]) -> None:
    seen = logged["seen"]
    for logs, found in zip(seen.logs, seen.diagnostics, strict=True):
        assert logs.keys() == {"loss", *NAMES}
        assert logs["tau"] == 0.25
        for name in NAMES & found.keys():
            assert logs[name] == found[name]
        assert logs["relative_error"] == found["standard_error"] / found["step_norm"]


def means(seen: Seen, name: str) -> list[float]:
    values = np.array([logs[name] for logs in seen.logs])
    return list(values.reshape(EPOCHS, BATCHES).mean(1))


@pytest.mark.feature("logs", "diagnostics of each update in the logs")
@saving
def test_history_has_the_epochs_means(logged: dict[str, Any]) -> None:
    for name in NAMES:
        assert logged["history"][name] == pytest.approx(means(logged["seen"], name))


@pytest.mark.feature("callbacks", "`CSVLogger`", "yes")
@pytest.mark.feature("logs", "diagnostics in the progress bar, `CSVLogger`, `TensorBoard`")
@saving
def test_csv_logger_has_them(logged: dict[str, Any]) -> None:
    with (logged["folder"] / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name in NAMES:
        assert [float(row[name]) for row in rows] == pytest.approx(means(logged["seen"], name))


@pytest.mark.feature("logs", "diagnostics in the progress bar, `CSVLogger`, `TensorBoard`")
@saving
def test_tensorboard_has_them(logged: dict[str, Any]) -> None:
    found: dict[str, list[float]] = {}
    (path,) = (logged["folder"] / "board" / "train").glob("events*")
    for raw in tf.data.TFRecordDataset(str(path)):
        event = tf.compat.v1.Event.FromString(raw.numpy())
        for value in event.summary.value:
            if value.HasField("tensor"):
                found.setdefault(value.tag, []).append(tf.make_ndarray(value.tensor).item())
    for name in NAMES:
        batches = [logs[name] for logs in logged["seen"].logs]
        assert found[f"batch_{name}"] == pytest.approx(batches, rel=1e-6)
        assert found[f"epoch_{name}"] == pytest.approx(means(logged["seen"], name), rel=1e-6)


@pytest.mark.feature("logs", "diagnostics in the progress bar, `CSVLogger`, `TensorBoard`", "yes")
def test_progress_bar_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    fit(compiled(importance()), Diagnostics(), epochs=1, verbose=1)
    shown = capsys.readouterr().out
    assert all(f"{name}: " in shown for name in NAMES)


@pytest.mark.parametrize(
    ("optimizer", "names"),
    [
        (lambda: LocalEntropy(0.1, SGLD(4)), {"standard_error", "relative_error", "mean_start"}),
        (
            lambda: HeatRegularization(0.1, RobbinsMonro(2, 2)),
            {"residual", "relative_residual", "standard_error", "relative_error", "steps"},
        ),
    ],
)
def test_kernels_tell_what_they_have(optimizer: Any, names: set[str]) -> None:
    history = fit(compiled(optimizer()), Diagnostics(), epochs=1)
    common = {"loss", "tau", "step_norm", "sampled_dimensions", "non_finite"}
    assert history.history.keys() == common | names


def test_f_tau_and_its_kin_are_measured_after_each_epoch() -> None:
    model, seen, (x, y) = compiled(importance()), Seen(), data()
    history = fit(model, Diagnostics((x, y), samples=5, seed=2), seen).history
    settings: dict[str, Any] = {"tau": 0.1, "samples": 5, "seed": 2, "verbose": 0}
    for name, found in (
        ("local_entropy", local_entropy(model, x, y, **settings)),
        ("heat_regularization", heat_regularization(model, x, y, **settings)),
    ):
        assert history[f"measured_{name}"][-1] == pytest.approx(found.value)
        assert history[f"measured_{name}"][0] != pytest.approx(found.value)
        error = history[f"measured_{name}_standard_error"]
        assert error[-1] == pytest.approx(found.standard_error)
        assert history[f"measured_{name}_gap"][-1] == pytest.approx(found.gap)
        assert history["measured_loss"][-1] == pytest.approx(found.loss)
    assert not any(name.startswith("measured_") for logs in seen.logs for name in logs)


@pytest.mark.feature("numbers", "losses that are infinite or NaN")
@pytest.mark.parametrize("policy", ["raise", "warn"])
def test_failures_under_jit_are_told_after_the_batch(policy: str) -> None:
    def infinite(y: tf.Tensor, prediction: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(prediction - y) + float("inf")

    model, seen = compiled(importance(on_failure=policy), loss=infinite, jit_compile=True), Seen()
    if policy == "raise":
        with pytest.raises(tf.errors.InvalidArgumentError, match="The weights were left"):
            fit(model, seen, Diagnostics())
    else:
        with pytest.warns(RuntimeWarning, match="The weights were left"):
            fit(model, seen, Diagnostics())
    assert len(seen.logs) == (1 if policy == "raise" else BATCHES * EPOCHS)


def test_step_that_moves_nothing_is_all_noise() -> None:
    def flat(y: tf.Tensor, prediction: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(prediction - y) * float("nan")

    seen = Seen()
    with pytest.warns(RuntimeWarning):
        fit(compiled(importance(on_failure="warn"), loss=flat), Diagnostics(), seen, epochs=1)
    assert seen.logs[-1]["relative_error"] == math.inf
    assert seen.logs[-1]["non_finite"] == SAMPLES


class Slope(keras.layers.Layer):
    """f(w) = 10 |w|^2 / 2 in 8 dimensions, whatever the inputs."""

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(shape=(8,), initializer="ones")

    def call(self, x: Any) -> Any:
        return 5.0 * tf.reduce_sum(self.w**2) + 0.0 * x


def slope(optimizer: Any) -> keras.Model:
    model = keras.Sequential([keras.Input((1,)), Slope()])
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, loss=lambda y, prediction: tf.reduce_mean(prediction))
    return model


def adapted(callback: Any, tau: float, updates: int = 120) -> tuple[LocalEntropy, Seen]:
    # Weights that hardly move leave the ESS to tau alone.
    optimizer = LocalEntropy(tau, ImportanceSampling(500), seed=0, learning_rate=1e-6)
    seen, x = Seen(), np.zeros((updates, 1), "float32")
    slope(optimizer).fit(x, x, batch_size=1, verbose=0, callbacks=[callback, seen])
    return optimizer, seen


def shares(seen: Seen) -> list[float]:
    return [found["effective_sample_size"] / 500 for found in seen.diagnostics[-40:]]


@pytest.mark.parametrize("tau", [1e-5, 1.0])
@pytest.mark.parametrize("target", [0.2, 0.7])
def test_tau_reaches_the_target(tau: float, target: float) -> None:
    _, seen = adapted(AdaptTau(target, rate=0.3), tau)
    assert np.mean(shares(seen)) == pytest.approx(target, rel=0.1)


def test_other_sign_runs_into_a_bound() -> None:
    class Wrong(AdaptTau):
        """tau moves the other way."""

        def on_train_begin(self, logs: Any = None) -> None:
            self._rate = -0.3

    optimizer, seen = adapted(Wrong(0.5, lower=1e-4, upper=0.5), 0.05)
    assert optimizer.tau.numpy() in (np.float32(1e-4), np.float32(0.5))
    assert abs(np.mean(shares(seen)) - 0.5) > 0.3


def test_rule_by_hand() -> None:
    optimizer, seen = adapted(AdaptTau(0.5, rate=0.1), 0.01, updates=1)
    share = seen.diagnostics[0]["effective_sample_size"] / 500
    assert float(optimizer.tau.numpy()) == pytest.approx(0.01 * (share / 0.5) ** 0.1, rel=1e-6)


def test_tau_stays_within_its_bounds() -> None:
    assert adapted(AdaptTau(0.9, lower=0.3, upper=0.5), 0.4, updates=40)[
        0
    ].tau.numpy() == np.float32(0.3)
    assert adapted(AdaptTau(0.1, lower=1e-5, upper=2e-5), 1e-5, updates=40)[
        0
    ].tau.numpy() == np.float32(2e-5)


def test_update_without_an_effective_sample_counts_as_one_with_one() -> None:
    def infinite(y: tf.Tensor, prediction: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(prediction - y) + float("inf")

    optimizer = importance(0.1, on_failure="warn")
    with pytest.warns(RuntimeWarning):
        fit(compiled(optimizer, loss=infinite), AdaptTau(0.5, rate=1.0), epochs=1)
    expected = 0.1 * (1 / SAMPLES / 0.5) ** BATCHES
    assert float(optimizer.tau.numpy()) == pytest.approx(expected, rel=1e-5)


@saving
def test_training_that_was_saved_goes_on(tmp_path: Path) -> None:
    model = compiled(importance())
    fit(model, AdaptTau(), epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for each in (model, loaded):
        fit(each, AdaptTau(), epochs=1)
    assert loaded.optimizer.tau.numpy() == model.optimizer.tau.numpy() != np.float32(0.1)
    assert_equal(loaded.get_weights(), model.get_weights())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target_ess": 1.0}, r"`target_ess` must be below 1\. Received: target_ess=1\.0"),
        ({"target_ess": 0.0}, "`target_ess` must be positive and finite"),
        ({"rate": 1.5}, r"`rate` must be at most 1\. Received: rate=1\.5"),
        ({"rate": -0.1}, "`rate` must be positive and finite"),
        ({"lower": 0.0}, "`lower` must be positive and finite"),
        (
            {"lower": 1.0, "upper": 0.5},
            r"`lower` must not be above `upper`.*lower=1\.0, upper=0\.5",
        ),
    ],
)
def test_arguments_are_checked(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdaptTau(**arguments)


@pytest.mark.parametrize("arguments", [{"samples": 1}, {"batch_size": 0}, {"seed": -1}])
def test_arguments_of_the_measurement_are_checked(arguments: Any) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(arguments))}` must be"):
        Diagnostics(data(), **arguments)


@pytest.mark.parametrize(
    ("callback", "optimizer", "message"),
    [
        (Diagnostics, keras.optimizers.SGD, "`Diagnostics` needs an optimizer that is one of"),
        (AdaptTau, keras.optimizers.SGD, "`AdaptTau` needs an optimizer that is `LocalEntropy`"),
        (
            AdaptTau,
            lambda: LocalEntropy(0.1, SGLD(2)),
            "needs the samples and the effective sam",
        ),
        (
            AdaptTau,
            lambda: importance(Scoping(0.5, 0.1)),
            "^`AdaptTau` sets tau .* a number for `tau`. Received: a schedule whose tau is 0.5 now",
        ),
    ],
)
def test_other_optimizers_are_refused(callback: Any, optimizer: Any, message: str) -> None:
    model = network()
    model.compile(optimizer(), "mse")
    with pytest.raises(TypeError, match=message):
        fit(model, callback())
