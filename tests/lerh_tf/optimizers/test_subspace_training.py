"""`subspace="auto"` through every entry point, on models that train by Keras."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    RobbinsMonro,
    TrainStep,
)
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.optimizers import _update
from tests.lerh_tf._subspaces import FOUND, INDICES, ROWS, Array, dense, dense_model, normal
from tests.lerh_tf.kernels._pathwise import Blocks, injected, noise_like

TAU = 0.125
# Two batches and, at the end of the epoch, a ragged third one.
RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 9)).astype("float32")
Y = RNG.standard_normal((8, 2)).astype("float32")
TOKENS = RNG.integers(0, 20, (8, 4)).astype("int32")
TARGETS = RNG.standard_normal((8, 3)).astype("float32")
UPDATES = 3

Optimizer = LocalEntropy | HeatRegularization
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "sgld": lambda **a: LocalEntropy(TAU, SGLD(6, step_sizes=LangevinSteps(5.0)), seed=0, **a),
    "importance-sampling": lambda **a: LocalEntropy(TAU, ImportanceSampling(8), seed=0, **a),
    "robbins-monro": lambda **a: HeatRegularization(TAU, RobbinsMonro(3, 4), seed=0, **a),
}


class Explicit(TrainStep, keras.Model):
    """A functional model with the explicit entry point."""


def network(cls: type = keras.Model) -> keras.Model:
    """The model of the first case of `FOUND`."""
    model = FOUND["dense"].model()
    return cls(model.inputs, model.outputs)


def fit(optimizer: Optimizer, cls: type = keras.Model) -> list[Array]:
    model = network(cls)
    model.compile(optimizer, "mse")
    model.fit(X, Y, batch_size=ROWS, shuffle=False, verbose=0)
    return state(model, optimizer)


def train_step(optimizer: Optimizer) -> list[Array]:
    return fit(optimizer, Explicit)


def step(optimizer: Optimizer) -> list[Array]:
    model = network()
    optimizer.build(model.trainable_variables)
    signature = [tf.TensorSpec([None, 9]), tf.TensorSpec([None, 2])]

    @tf.function(input_signature=signature)
    def update(x: tf.Tensor, y: tf.Tensor) -> None:
        optimizer.step(
            lambda x, y: tf.reduce_mean((model(x) - y) ** 2), model.trainable_variables, x, y
        )

    for first in range(0, len(X), ROWS):
        update(X[first : first + ROWS], Y[first : first + ROWS])
    return state(model, optimizer)


def state(model: keras.Model, optimizer: Optimizer) -> list[Array]:
    """The weights and, where there is one, the end of the chain."""
    weights = model.trainable_variables
    chain = [v for v in optimizer.variables if v.name.endswith("_chain")]
    return [v.numpy() for v in (*weights, *chain)]


@pytest.fixture
def one_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives plain and reduced kernels one noise, `noise_of` the update and the variables."""

    def plain(seed: int, update: tf.Tensor, like: list[tf.Tensor]) -> Blocks:
        return Blocks(noise_of(update, like))

    def reduced(
        kernel: Any, subspace: Any, anchor: Any, tau: Any, _: Any, chain: Any, update: tf.Tensor
    ) -> Any:
        noise = injected(kernel, subspace, anchor, TAU, noise_of(update, anchor))
        return estimate_in_subspace(kernel, subspace, anchor, tau, noise, chain, update)

    def noise_of(update: tf.Tensor, like: list[tf.Tensor]) -> list[tf.Tensor]:
        return [tf.gather(tf.constant(z), update) for z in noise_like(like, UPDATES, 3, 8)]

    monkeypatch.setattr(_update, "PhiloxNoise", plain)
    monkeypatch.setattr(_update, "estimate_in_subspace", reduced)


@functools.cache
def plainly_trained(kernel: str) -> list[Array]:
    """The outcome without a subspace; call it with `one_noise` and `plain_loops`."""
    return fit(OPTIMIZERS[kernel](subspace=False))


def assert_close(actual: list[Array], expected: list[Array]) -> None:
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("built_optimizers", "one_noise", "plain_loops")
@pytest.mark.parametrize(
    ("entry", "kernel"),
    [
        (fit, "sgld"),
        (step, "sgld"),
        (train_step, "sgld"),
        (fit, "importance-sampling"),
        (step, "importance-sampling"),
        (fit, "robbins-monro"),
        (train_step, "robbins-monro"),
    ],
)
def test_reduced_training_follows_plain_training(entry: Any, kernel: str) -> None:
    optimizer = OPTIMIZERS[kernel]()
    assert_close(entry(optimizer), plainly_trained(kernel))
    # The last batch holds two rows.
    assert optimizer.diagnostics["sampled_dimensions"] == 2 * 4 + 4 + 8 + 2


@pytest.mark.usefixtures("built_optimizers", "one_noise", "plain_loops")
def test_every_part_of_the_noise_counts() -> None:
    # With a control variate the mean has another complement: plain training would not follow.
    optimizer = LocalEntropy(
        TAU, SGLD(6, step_sizes=LangevinSteps(5.0), control_variate=True), seed=0
    )
    kernel = fit(optimizer)[0]
    assert np.abs(kernel - plainly_trained("sgld")[0]).max() > 1e-2


DATA = {"dense": (X, Y), "embedding": (TOKENS, TARGETS)}


def fit_case(optimizer: Optimizer, name: str, rows: int = len(X), **arguments: Any) -> list[Array]:
    """Trains a model of `FOUND` for an epoch on the first so many rows."""
    model = FOUND[name].model()
    x, y = (array[:rows] for array in DATA[name])
    model.compile(optimizer, "mse", **arguments)
    model.fit(x, y, batch_size=ROWS, shuffle=False, verbose=0)
    return state(model, optimizer)


@pytest.mark.usefixtures("built_optimizers", "one_noise", "plain_loops")
@pytest.mark.parametrize("name", DATA)
def test_step_compiled_as_a_whole_follows_plain_training(name: str) -> None:
    # XLA has its own QR factorisation, sort and scatter.
    expected = fit_case(OPTIMIZERS["sgld"](subspace=False), name, 2 * ROWS)
    assert_close(fit_case(OPTIMIZERS["sgld"](), name, 2 * ROWS, jit_compile=True), expected)


@pytest.mark.parametrize(
    ("kernel", "name"), [("importance-sampling", "embedding"), ("robbins-monro", "dense")]
)
def test_step_compiled_as_a_whole_trains(kernel: str, name: str) -> None:
    optimizer = OPTIMIZERS[kernel]()
    # A whole batch and a ragged one.
    assert all(np.isfinite(w).all() for w in fit_case(optimizer, name, 5, jit_compile=True))
    assert 0 < optimizer.diagnostics["sampled_dimensions"] < optimizer.diagnostics["dimensions"]


@pytest.mark.usefixtures("built_optimizers", "plain_loops")
def test_steps_per_execution_change_nothing() -> None:
    one, two = OPTIMIZERS["sgld"](), OPTIMIZERS["sgld"]()
    expected = fit_case(one, "dense")
    assert_close(fit_case(two, "dense", steps_per_execution=2), expected)
    assert one.diagnostics == pytest.approx(two.diagnostics, rel=1e-4)


# What plain kernels sample, and what the diagnostics say about it.


def l2_regularized() -> keras.Model:
    return dense_model(9, kernel_regularizer="l2")


def used_twice() -> keras.Model:
    a, b = keras.Input((9,)), keras.Input((9,))
    shared = layers.Dense(4, activation="tanh")
    return keras.Model([a, b], layers.Dense(2)(layers.Concatenate()([shared(a), shared(b)])))


class TiedOutput(layers.Layer):
    """Multiplies by the transposed table of an embedding."""

    def __init__(self, embedding: layers.Embedding):
        super().__init__()
        self.embedding = embedding

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, keras.ops.transpose(self.embedding.embeddings))


def tied_embedding() -> keras.Model:
    i = keras.Input((4,), dtype="int32")
    embedding = layers.Embedding(20, 2)
    return keras.Model(i, TiedOutput(embedding)(embedding(i)))


def normalised() -> keras.Model:
    x = keras.Input((9,))
    return keras.Model(x, dense(layers.BatchNormalization()(x)))


def batch_of_static_size() -> keras.Model:
    x = keras.Input((3,), batch_size=ROWS)
    return keras.Model(x, layers.Dense(2)(dense(x)))


PLAIN: dict[str, tuple[Callable[[], keras.Model], list[Array], int]] = {
    "l2-regularized": (l2_regularized, [normal(9)], 50),
    "used-twice": (used_twice, [normal(9), normal(9, seed=1)], 36 + 4 + 16 + 2),
    "tied-embedding": (tied_embedding, [INDICES], 40),
    "inputs-depend-on-weights": (normalised, [normal(9)], 18 + 36 + 4),
    "as-many-rows-as-dimensions": (batch_of_static_size, [normal(3)], 12 + 4 + 8 + 2),
}


def dimensions_after_fit(
    model: keras.Model, x: Sequence[Array], **arguments: Any
) -> tuple[int, int]:
    """Trains for one update: the number of dimensions sampled, and of all."""
    optimizer = LocalEntropy(1e-3, SGLD(2), seed=0, **arguments)
    model.compile(optimizer, "mse")
    before = [v.numpy() for v in model.trainable_variables]
    y = np.zeros((ROWS, *model.output_shape[1:]), "float32")
    model.fit(x[0] if len(x) == 1 else x, y, batch_size=ROWS, verbose=0)
    for v, old in zip(model.trainable_variables, before, strict=True):
        assert (v.numpy() != old).all()
    found = optimizer.diagnostics
    return int(found["sampled_dimensions"]), int(found["dimensions"])


@pytest.mark.usefixtures("built_optimizers", "plain_loops")
@pytest.mark.parametrize("name", PLAIN)
def test_other_models_are_sampled_whole(name: str) -> None:
    build, x, dimensions = PLAIN[name]
    assert dimensions_after_fit(build(), x) == (dimensions, dimensions)


@pytest.mark.usefixtures("built_optimizers", "plain_loops")
def test_frozen_layer_is_no_weight_and_makes_inputs_of_the_next() -> None:
    model = dense_model(9)
    model.layers[1].trainable = False
    assert dimensions_after_fit(model, [normal(9)]) == (ROWS * 2 + 2, 4 * 2 + 2)


@pytest.mark.usefixtures("built_optimizers", "plain_loops")
def test_subspace_can_be_turned_off() -> None:
    case = FOUND["dense"]
    assert dimensions_after_fit(case.model(), case.x, subspace=False) == (50, 50)


@pytest.mark.usefixtures("built_optimizers", "plain_loops")
def test_decoupled_weight_decay_leaves_the_loss_as_it_is() -> None:
    case = FOUND["dense"]
    assert dimensions_after_fit(case.model(), case.x, weight_decay=0.01) == (26, 50)


@pytest.mark.usefixtures("built_optimizers", "plain_loops")
def test_other_inputs_of_a_model_are_reduced_beside_a_regularized_one() -> None:
    a, b = keras.Input((9,)), keras.Input((11,))
    h = layers.Concatenate()([dense(a, 3, kernel_regularizer="l2"), dense(b, 2)])
    model = keras.Model([a, b], layers.Dense(1)(h))
    assert dimensions_after_fit(model, [normal(9), normal(11)]) == (27 + 3 + 6 + 2 + 6, 60)
