"""Finite gradients that clipping or accumulating makes infinite or NaN: nothing moves, all told."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import HeatRegularization, RobbinsMonro, RobbinsMonroSteps
from tests.lerh_tf._kernels import Array

pytestmark = pytest.mark.usefixtures("plain_loops")

START = [[1.0], [2.0]]
RATE = 0.0625
TOLD = r"^The weights after the step .* accumulated or clipped.*\(Weight updates: 1\.\)"
# Squares above 255, and sums above 65504, leave float16.
CLIPPED = [1.0, 300.0, 1.0]
CASES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "global-clipnorm": ({"global_clipnorm": 1.0}, CLIPPED),
    "clipnorm": ({"clipnorm": 1000.0}, CLIPPED),
    "accumulated": ({"gradient_accumulation_steps": 2}, [1, 1, 6e4, 6e4, 1, 1]),
    "accumulated-and-clipped": (
        {"gradient_accumulation_steps": 2, "global_clipnorm": 1.0},
        [1, 1, 400, 400, 1, 1],
    ),
}


def ours(**arguments: Any) -> HeatRegularization:
    """Gradient descent: one exact move of Robbins-Monro, whatever the noise."""
    solver = RobbinsMonro(1, 1, RobbinsMonroSteps(1.0))
    return HeatRegularization(1.0, solver, 0, learning_rate=RATE, **arguments)


def network(optimizer: Any, jit: bool) -> keras.Model:
    """A model whose loss on one example x is <x, weights>, so that its gradient is x."""
    dense = keras.layers.Dense(1, use_bias=False, dtype="float16")
    model = keras.Sequential([keras.Input((2,), dtype="float16"), dense])
    dense.kernel.assign(START)
    model.compile(optimizer, lambda y, p: tf.reduce_sum(p), jit_compile=jit)
    return model


class Trace(keras.callbacks.Callback):
    """The weights and their average after each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[Array] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        (weights,) = self.model.trainable_variables
        (average,) = self.model.optimizer._model_variables_moving_average
        self.states.append(np.concatenate([weights.numpy(), average.numpy()]))


def by_fit(optimizer: Any, factors: Sequence[float], jit: bool = False) -> list[Array]:
    model, trace = network(optimizer, jit), Trace()
    x = np.ones((len(factors), 2), "float16") * np.array(factors, "float16")[:, None]
    model.fit(x, x, batch_size=1, shuffle=False, verbose=0, callbacks=[trace])
    return trace.states


def by_step(optimizer: Any, factors: Sequence[float]) -> list[Array]:
    weight, states = tf.Variable(START, dtype="float16"), []

    def loss(factor: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.reduce_sum(factor * weight), "float32")

    for factor in factors:
        optimizer.step(loss, [weight], np.float16(factor))
        (average,) = optimizer._model_variables_moving_average
        states.append(np.concatenate([weight.numpy(), average.numpy()]))
    return states


WAYS: dict[str, Callable[..., list[Array]]] = {
    "step": by_step,
    "fit": by_fit,
    "jit": lambda optimizer, factors: by_fit(optimizer, factors, jit=True),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "step") for name in CASES),
        ("clipnorm", "fit"),
        ("accumulated-and-clipped", "fit"),
        ("accumulated-and-clipped", "jit"),
    ],
)
def test_update_that_overflows_moves_nothing_and_is_told(name: str, way: str) -> None:
    arguments, factors = CASES[name]
    decayed = {**arguments, "weight_decay": 0.5, "use_ema": True}
    with pytest.warns(RuntimeWarning, match=TOLD):
        states = WAYS[way](ours(on_failure="warn", **decayed), factors)
    raw = arguments.get("gradient_accumulation_steps", 1)
    first, failed, last = (states[i - 1][:2] for i in (raw, 2 * raw, 3 * raw))
    np.testing.assert_array_equal(failed, first)
    np.testing.assert_array_equal(states[2 * raw - 1], states[2 * raw - 2])
    # Nothing of it is left in what waits to be accumulated either.
    twice = WAYS[way](ours(**decayed), [f for f in factors if f == 1])
    np.testing.assert_array_equal(last, twice[2 * raw - 1][:2])
    assert not np.array_equal(last, first)


@pytest.mark.parametrize("name", CASES)
def test_keras_s_sgd_makes_weights_nan_there(name: str) -> None:
    arguments, factors = CASES[name]
    sgd = keras.optimizers.SGD(RATE, use_ema=True, **arguments)
    assert not np.isfinite(by_fit(sgd, factors)[-1]).any()


@pytest.mark.parametrize("name", CASES)
def test_it_raises_by_default(name: str) -> None:
    arguments, factors = CASES[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match="accumulated or clipped"):
        by_step(ours(use_ema=True, **arguments), factors)


def test_part_that_overflows_the_sum_is_left_out_alone() -> None:
    arguments = {"gradient_accumulation_steps": 3, "use_ema": True}
    with pytest.warns(RuntimeWarning, match=TOLD):
        states = by_step(ours(on_failure="warn", **arguments), [6e4, 6e4, 48])
    expected = np.array(START) - RATE * (6e4 + 48) / 3
    np.testing.assert_allclose(states[-1][:2], expected, rtol=1e-2)


@pytest.mark.parametrize("bad", [float("nan"), -0.5, 0.0])
def test_bad_tau_lets_the_accumulated_update_go_where_it_is_the_rate(bad: float) -> None:
    class BadSecond(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> tf.Tensor:
            return tf.where(tf.equal(step, 1), bad, 0.0625)

    weight = tf.Variable([1.0, 2.0])
    optimizer = HeatRegularization(
        BadSecond(),
        RobbinsMonro(1, 1, RobbinsMonroSteps(1.0)),
        0,
        on_failure="warn",
        gradient_accumulation_steps=2,
        weight_decay=0.5,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            optimizer.step(lambda: tf.reduce_sum(weight), [weight])
    np.testing.assert_array_equal(weight.numpy(), [1.0, 2.0])
    (warned,) = caught
    assert "`tau` must be positive and finite" in str(warned.message)


def test_weights_that_do_not_decay_do_not_leave_the_dtype_by_it() -> None:
    weight = tf.Variable([1.0, 2.0])
    solver = RobbinsMonro(1, 1, RobbinsMonroSteps(1.0))
    optimizer = HeatRegularization(1.0, solver, 0, learning_rate=1e15, weight_decay=1e30)
    optimizer.exclude_from_weight_decay([weight])
    optimizer.step(lambda: tf.reduce_sum(1e-15 * weight), [weight])
    np.testing.assert_allclose(weight.numpy(), [0.0, 1.0], atol=1e-6)
