"""Stock `fit`, `optimizer.step` and `TrainStep` make the same weight updates."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LocalEntropy,
    RobbinsMonro,
    Temperatures,
    TrainStep,
)

Array = npt.NDArray[Any]
Optimizer = LocalEntropy | HeatRegularization

RNG = np.random.default_rng(0)
# Two batches and, at the end of the epoch, a ragged third one.
BATCH = 3
X = RNG.standard_normal((8, 4)).astype("float32")
Y = RNG.standard_normal((8, 2)).astype("float32")
WHOLE_BATCHES = 2 * BATCH

OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "sgld": lambda: LocalEntropy(0.1, SGLD(4, Temperatures(10.0)), seed=0),
    "importance-sampling": lambda: LocalEntropy(0.1, ImportanceSampling(20), seed=0),
    "robbins-monro": lambda: HeatRegularization(0.1, RobbinsMonro(3, 2), seed=0),
}


class Explicit(TrainStep, keras.Model):
    """A functional model with the explicit door."""


def dropout(x: Any) -> Any:
    return layers.Dropout(0.5, seed=3)(layers.Dense(5, activation="tanh")(x))


def batch_normalization(x: Any) -> Any:
    return layers.BatchNormalization()(layers.Dense(5)(x))


def l2_regularizer(x: Any) -> Any:
    return layers.Dense(5, activation="tanh", kernel_regularizer="l2")(x)


def activity_regularizer(x: Any) -> Any:
    return layers.Dense(5, activation="tanh", activity_regularizer="l1")(x)


def everything(x: Any) -> Any:
    for layer in (l2_regularizer, activity_regularizer, batch_normalization, dropout):
        x = layer(x)
    return x


FEATURES = {
    f.__name__: f for f in (dropout, batch_normalization, l2_regularizer, activity_regularizer)
}


def build(feature: Callable[[Any], Any], cls: type = keras.Model) -> keras.Model:
    keras.utils.set_random_seed(1)
    x = keras.Input((4,))
    return cls(x, layers.Dense(2)(feature(x)))


def run_fit(model: keras.Model, optimizer: Optimizer, data: Any, **compile_arguments: Any) -> Any:
    model.compile(optimizer, "mse", metrics=["mae"], **compile_arguments)
    model.fit(*data, batch_size=BATCH, shuffle=False, verbose=0)
    return model


def fit(feature: Any, optimizer: Optimizer, data: Any, jit: bool = False) -> keras.Model:
    return run_fit(build(feature), optimizer, data, jit_compile=jit)


def train_step(feature: Any, optimizer: Optimizer, data: Any, jit: bool = False) -> keras.Model:
    return run_fit(build(feature, Explicit), optimizer, data, jit_compile=jit)


def eager_train_step(feature: Any, optimizer: Optimizer, data: Any) -> keras.Model:
    return run_fit(build(feature, Explicit), optimizer, data, run_eagerly=True)


def batches(data: Any) -> Any:
    starts = range(0, len(data[0]), BATCH)
    return [[tf.constant(part[i : i + BATCH]) for part in data] for i in starts]


def loss_of(model: keras.Model) -> Callable[[Any, Any], Any]:
    model.compile(loss="mse")
    return lambda x, y: model.compute_loss(x=x, y=y, y_pred=model(x, training=True))


def step(feature: Any, optimizer: Optimizer, data: Any) -> keras.Model:
    model = build(feature)
    loss = loss_of(model)
    for x, y in batches(data):
        optimizer.step(loss, model.trainable_variables, x, y)
    return model


def step_in_function(
    feature: Any, optimizer: Optimizer, data: Any, jit: bool = False
) -> keras.Model:
    model = build(feature)
    loss = loss_of(model)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=jit)
    def update(x: tf.Tensor, y: tf.Tensor) -> None:
        optimizer.step(loss, model.trainable_variables, x, y)

    for x, y in batches(data):
        update(x, y)
    return model


def state(model: keras.Model, optimizer: Optimizer) -> dict[str, Array]:
    """The values of all weights, statistics, seeds and optimizer variables."""
    variables = [*model.weights, *seeds(model), *optimizer.variables]
    return {f"{i} {v.path}": v.numpy() for i, v in enumerate(variables)}


def seeds(model: keras.Model) -> list[keras.Variable]:
    known = {id(v) for v in model.weights}
    return [v for v in model.non_trainable_variables if id(v) not in known]


def run(door: Any, feature: Any, kernel: str, data: Any = (X, Y), **arguments: Any) -> Any:
    optimizer = OPTIMIZERS[kernel]()
    return list(state(door(feature, optimizer, data, **arguments), optimizer).values())


def assert_equal(actual: list[Array], expected: list[Array], rtol: float = 0.0) -> None:
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("feature", FEATURES)
def test_doors_agree_to_the_bit_on_every_feature(feature: str) -> None:
    expected = run(fit, FEATURES[feature], "sgld")
    assert_equal(run(step, FEATURES[feature], "sgld"), expected)
    assert_equal(run(train_step, FEATURES[feature], "sgld"), expected)


@pytest.mark.parametrize("kernel", OPTIMIZERS)
def test_doors_agree_to_the_bit_with_every_kernel(kernel: str) -> None:
    expected = run(fit, everything, kernel)
    assert_equal(run(step, everything, kernel), expected)
    assert_equal(run(step_in_function, everything, kernel), expected)
    assert_equal(run(train_step, everything, kernel), expected)
    # The pass that moves statistics and seeds runs eagerly: its sums may be rounded otherwise.
    assert_equal(run(eager_train_step, everything, kernel), expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", OPTIMIZERS)
def test_doors_agree_compiled_by_xla(kernel: str) -> None:
    data = X[:WHOLE_BATCHES], Y[:WHOLE_BATCHES]
    expected = run(fit, everything, kernel, data, jit=True)
    assert_equal(run(step_in_function, everything, kernel, data, jit=True), expected, rtol=1e-6)
    assert_equal(run(train_step, everything, kernel, data, jit=True), expected, rtol=1e-6)


def logs(door: Any, optimizer: Any) -> dict[str, Any]:
    model = door(everything, optimizer, (X[:BATCH], Y[:BATCH]))
    # The second epoch of the model is the first one that is looked at from equal weights.
    history: dict[str, Any] = model.history.history
    return history


def still() -> keras.optimizers.Optimizer:
    return keras.optimizers.SGD(0.0)


@pytest.mark.parametrize("door", [fit, train_step, eager_train_step])
def test_logs_are_keras_s_own(door: Any) -> None:
    expected = logs(fit, still())
    actual = logs(door, OPTIMIZERS["sgld"]())
    assert actual.keys() == expected.keys() == {"loss", "mae"}
    for name, values in expected.items():
        np.testing.assert_allclose(actual[name], values, rtol=1e-6)


@pytest.mark.parametrize("door", [train_step, eager_train_step])
def test_logs_of_an_epoch_weigh_its_ragged_batch_as_fit_does(door: Any) -> None:
    histories = [d(dropout, OPTIMIZERS["sgld"](), (X, Y)).history.history for d in (fit, door)]
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-6)


def not_trained(model: keras.Model) -> list[Array]:
    return [v.numpy() for v in model.non_trainable_variables]


@pytest.mark.parametrize(
    "door", [fit, step, step_in_function, train_step, eager_train_step], ids=lambda d: d.__name__
)
def test_statistics_and_seeds_move_once_per_update(door: Any) -> None:
    data = X[:BATCH], Y[:BATCH]
    expected = not_trained(fit(everything, still(), data))
    actual = not_trained(door(everything, OPTIMIZERS["sgld"](), data))
    assert len(expected) == 3
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)


class Counting(layers.Layer):
    """Counts how often it is called, which in a graph is how often it is traced."""

    calls = 0

    def call(self, x: Any) -> Any:
        self.calls += 1
        return x


@pytest.mark.parametrize("cls", [keras.Model, Explicit])
def test_a_fit_traces_no_more_as_it_goes_on(cls: type) -> None:
    counting = Counting()
    model = build(lambda x: counting(layers.Dense(5)(x)), cls)
    data = X[:WHOLE_BATCHES], Y[:WHOLE_BATCHES]
    run_fit(model, OPTIMIZERS["sgld"](), data)
    calls = counting.calls
    model.fit(*data, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    assert counting.calls == calls
