"""The objective in every way that Keras runs a train step."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import ImportanceSampling, LocalEntropy, LossFunction
from lerh_tf.loss.objective import Weights
from tests.lerh_tf._cases import dense, sequential
from tests.lerh_tf._keras_steps import (
    Array,
    Probe,
    elsewhere,
    relative_error,
    set_state,
    state_of,
    value_of,
)
from tests.lerh_tf._kernels import replayed

BATCH = 6
# Two batches and a ragged third one.
SAMPLES = 15
STEPS = 3


def inner_jit(function: Callable[[Any], Any], weights: Any) -> Any:
    return tf.function(function, jit_compile=True)(weights)


MODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "steps-per-execution": ({"steps_per_execution": 2}, {}),
    "jit": ({"jit_compile": True}, {}),
    "inner-jit": ({"jit_compile": False}, {"call": inner_jit}),
}

NETWORKS: dict[str, Callable[[], keras.Model]] = {
    "dropout-and-normalization": sequential(
        (4, 4, 1),
        layers.Flatten,
        dense(use_bias=False),
        layers.BatchNormalization,
        lambda: layers.Dropout(0.5, seed=3),
        dense(2),
    ),
    "convolution": sequential((4, 4, 1), lambda: layers.Conv2D(2, 3), layers.Flatten, dense(2)),
}


@pytest.fixture
def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((SAMPLES, 4, 4, 1)), rng.standard_normal((SAMPLES, 2))
    return x.astype("float32"), y.astype("float32")


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("mode", MODES)
def test_loss_and_gradient_are_keras_s(mode: str, network: str, data: tuple[Array, Array]) -> None:
    keras.utils.set_random_seed(2)
    model = NETWORKS[network]()
    state, v = state_of(model.non_trainable_variables), elsewhere(model.trainable_variables)
    compile_arguments, probe_arguments = MODES[mode]
    probe = Probe(model.trainable_variables, v, **probe_arguments)
    model.compile(optimizer=probe, loss="mse", **compile_arguments)
    model.fit(*data, batch_size=BATCH, shuffle=False, verbose=0)
    gradients, pair = probe.probed_gradients(), probe.pair()

    set_state(model.trainable_variables, v)
    set_state(model.non_trainable_variables, state)
    model.fit(*data, batch_size=BATCH, shuffle=False, verbose=0)
    losses = probe.losses()
    assert len(losses) == 2 * STEPS
    np.testing.assert_allclose(probe.probed_losses()[:STEPS], losses[STEPS:], rtol=5e-7)
    np.testing.assert_allclose(pair, losses[[-1, STEPS - 1]], rtol=5e-7)
    for gradient, expected in zip(gradients, probe.gradients(), strict=True):
        # XLA sums in another order on each processor: up to 2e-6 seen.
        assert relative_error(gradient, expected) < 5e-6


def test_tf_variables_in_a_hand_written_function() -> None:
    a, b = tf.Variable([1.0, 2.0]), tf.Variable(3.0)

    @tf.function
    def step() -> Any:
        objective = replayed(tf.reduce_sum(a**2) * b, [a, b])
        return objective([tf.constant([2.0, 1.0]), tf.constant(10.0)])

    assert step().numpy() == 50.0


def test_loss_that_is_a_bare_weight() -> None:
    a = tf.Variable(3.0)

    @tf.function
    def step() -> Any:
        objective = replayed(tf.convert_to_tensor(a), [a])
        weights = [tf.constant(5.0)]
        return objective(weights), objective.gradient(weights)

    loss, (gradient,) = step()
    assert (loss.numpy(), gradient.numpy()) == (5.0, 1.0)


def test_a_weight_read_twice_is_redirected_twice() -> None:
    a = tf.Variable(3.0)

    @tf.function
    def step() -> Any:
        loss = a.read_value() * tf.identity(a) + 1.0
        return replayed(loss, [a])([tf.constant(5.0)])

    assert step().numpy() == 26.0


def test_steps_unrolled_in_one_function_are_steps_one_by_one() -> None:
    def trained(unrolled: int) -> Array:
        variable = keras.Variable([0.5, -0.5])
        optimizer = LocalEntropy(0.1, ImportanceSampling(20), seed=0)
        optimizer.build([variable])

        @tf.function(autograph=False)
        def steps() -> None:
            for _ in range(unrolled):
                optimizer.scale_loss(tf.reduce_sum((variable.value - 1.0) ** 2))
                optimizer.apply([None], [variable])

        for _ in range(2 // unrolled):
            steps()
        return value_of(variable)

    np.testing.assert_array_equal(trained(unrolled=2), trained(unrolled=1))


@pytest.mark.parametrize("position", [0, 1])
def test_unused_weights_are_told_apart(position: int) -> None:
    used, unused = tf.Variable(3.0), tf.Variable(4.0)
    variables = [used, used]
    variables[position] = unused
    seen: list[Sequence[bool]] = []

    @tf.function
    def step() -> Any:
        objective = replayed(used**2, variables)
        seen.append(objective.is_used)
        return objective([tf.constant(5.0)])

    assert step().numpy() == 25.0
    assert seen == [(position == 1, position == 0)]


def test_shape_of_a_weight_is_no_use_of_it() -> None:
    used, measured = tf.Variable(3.0), tf.Variable([1.0, 2.0])
    seen: list[Sequence[bool]] = []

    @tf.function
    def step() -> Any:
        size = tf.raw_ops.VariableShape(input=measured.handle)[0]
        objective = replayed(used * tf.cast(size, tf.float32), [used, measured])
        seen.append(objective.is_used)
        return objective([tf.constant(5.0)])

    assert step().numpy() == 10.0
    assert seen == [(True, False)]


def positive(a: tf.Tensor) -> tf.Tensor:
    return tf.boolean_mask(a, a > 0.0)


def up_to_the_largest(a: tf.Tensor) -> tf.Tensor:
    return a[: tf.argmax(a) + 1]


@pytest.mark.parametrize("keep", [positive, up_to_the_largest])
def test_shape_that_depends_on_the_weights_is_replayed(
    keep: Callable[[tf.Tensor], tf.Tensor],
) -> None:
    a = tf.Variable([1.0, -1.0, -1.0])

    @tf.function(autograph=False)
    def step() -> Any:
        kept = keep(a)
        loss = tf.reduce_sum(kept) * tf.cast(tf.size(kept), tf.float32)
        return replayed(loss, [a])([tf.constant([1.0, 2.0, -1.0])])

    assert step().numpy() == 6.0


def test_frozen_weights_keep_their_values() -> None:
    model = sequential((3,), dense(2), dense(1))()
    model.layers[0].trainable = False
    v = elsewhere(model.trainable_variables)
    probe = Probe(model.trainable_variables, v)
    model.compile(optimizer=probe, loss="mse")
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    model.train_on_batch(x, y)
    kernel, bias = map(value_of, model.layers[0].variables)
    expected = np.mean(((x @ kernel + bias) @ v[0] + v[1] - y) ** 2)
    np.testing.assert_allclose(probe.probed_losses(), [expected], rtol=1e-6)


@pytest.mark.feature("models", "LSTM, GRU, `TrainStep`, `jit_compile=True`", cases=["True"])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_loss_with_a_loop_is_evaluated_sample_by_sample(jit_compile: bool) -> None:
    def powers(weights: Weights) -> tf.Tensor:
        narrow, wide = weights
        shifted = tf.cast(narrow, tf.float64) + wide
        return tf.while_loop(
            lambda i, _: i < 3,
            lambda i, total: (i + 1, total + tf.reduce_sum(shifted ** tf.cast(i, tf.float64))),
            (tf.constant(0), tf.constant(0.0, tf.float64)),
            maximum_iterations=3,
        )[1]

    rng = np.random.default_rng(0)
    stacked = [tf.constant(rng.normal(size=(4, 2)), dtype) for dtype in ("float32", "float64")]

    @tf.function(jit_compile=jit_compile)
    def at_all(one_by_one: bool) -> Any:
        objective = LossFunction(powers, 2, vectorize=not one_by_one)
        return objective.vectorized(stacked), objective.vectorized_gradient(stacked)

    losses, gradients = at_all(one_by_one=True)
    assert losses.dtype == tf.float64
    shifted = tf.cast(stacked[0], tf.float64) + stacked[1]
    np.testing.assert_allclose(losses, tf.reduce_sum(1.0 + shifted + shifted**2, 1), rtol=1e-12)
    for found, weights, accuracy in zip(gradients, stacked, (1e-6, 1e-12), strict=True):
        assert found.dtype == weights.dtype
        np.testing.assert_allclose(found, 1.0 + 2.0 * shifted, rtol=accuracy)
    if not jit_compile:
        expected = at_all(one_by_one=False)
        tf.nest.map_structure(np.testing.assert_array_equal, (losses, gradients), expected)
