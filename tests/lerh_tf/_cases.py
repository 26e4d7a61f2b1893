"""Small models that between them use every kind of layer the objective must replay."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

BATCH = 6


@dataclass(frozen=True)
class Case:
    """A model, a batch and the tolerances of comparing two graphs of it.

    Attributes:
        build: makes the model, not compiled, its own initial weights.
        data: x, y and, if any, sample weights.
        compile: arguments of `Model.compile` besides the optimizer.
        loss_tolerance: relative, a few times the unit round-off of the computation.
        gradient_tolerance: relative in the norm, per weight.
    """

    build: Callable[[], keras.Model]
    data: tuple[Any, ...]
    compile: dict[str, Any] = field(default_factory=lambda: {"loss": "mse"})
    loss_tolerance: float = 3e-7
    gradient_tolerance: float = 1e-6


def sequential(shape: tuple[int, ...], *stack: Callable[[], Any]) -> Callable[[], keras.Model]:
    return lambda: keras.Sequential([keras.Input(shape), *(make() for make in stack)])


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal((BATCH, *shape)).astype("float32")


def labels(classes: int, *shape: int) -> Any:
    return np.random.default_rng(1).integers(0, classes, (BATCH, *shape)).astype("int32")


def dense(units: int = 4, **arguments: Any) -> Callable[[], Any]:
    return lambda: layers.Dense(units, **arguments)


def embedded() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((5,), dtype="int32"),
            layers.Embedding(7, 3),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )


@keras.saving.register_keras_serializable("lerh_tf_tests")
class RawGather(layers.Layer):
    """Looks rows up in a `tf.Variable` by `tf.gather`, which reads it by its handle."""

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(shape=(7, 3), name="table")

    def call(self, indices: tf.Tensor) -> tf.Tensor:
        return tf.gather(self.table.value, indices)


def gathered() -> keras.Model:
    return keras.Sequential(
        [keras.Input((5,), dtype="int32"), RawGather(), layers.Flatten(), layers.Dense(2)]
    )


def attentive() -> keras.Model:
    x = keras.Input((4, 6))
    attention = layers.MultiHeadAttention(num_heads=2, key_dim=3, use_bias=False)
    return keras.Model(x, layers.Dense(2)(attention(x, x)))


def two_headed() -> keras.Model:
    x = keras.Input((5,))
    h = layers.Dense(4, activation="tanh")(x)
    return keras.Model(x, {"a": layers.Dense(3, name="a")(h), "b": layers.Dense(1, name="b")(h)})


CROSS_ENTROPY = {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
TANH = dense(activation="tanh")
MLP = sequential((5,), TANH, dense(3))

CASES: dict[str, Case] = {
    "mlp": Case(MLP, (normal(5), labels(3)), CROSS_ENTROPY),
    "l2-regularizer": Case(
        sequential((5,), dense(activation="tanh", kernel_regularizer="l2"), dense(3)),
        (normal(5), normal(3)),
    ),
    "activity-regularizer": Case(
        sequential((5,), dense(activation="tanh", activity_regularizer="l1"), dense(3)),
        (normal(5), normal(3)),
    ),
    "batch-normalization": Case(
        sequential((5,), dense(use_bias=False), layers.BatchNormalization, TANH, dense(3)),
        (normal(5), normal(3)),
    ),
    "dropout": Case(
        sequential((5,), TANH, lambda: layers.Dropout(0.5, seed=3), dense(3)),
        (normal(5), normal(3)),
    ),
    "conv2d": Case(
        sequential((5, 5, 1), lambda: layers.Conv2D(3, 3), layers.Flatten, dense(2)),
        (normal(5, 5, 1), normal(2)),
    ),
    "embedding": Case(embedded, (labels(7, 5), normal(2))),
    "raw-gather": Case(gathered, (labels(7, 5), normal(2))),
    "attention": Case(attentive, (normal(4, 6), normal(4, 2))),
    "layer-normalization": Case(
        sequential((5,), dense(), layers.LayerNormalization, TANH, dense(2)),
        (normal(5), normal(2)),
    ),
    "two-outputs": Case(
        two_headed,
        (normal(5), {"a": labels(3), "b": normal(1)}),
        {
            "loss": {"a": CROSS_ENTROPY["loss"], "b": "mse"},
            "loss_weights": {"a": 0.3, "b": 2.0},
        },
    ),
    "sample-weights": Case(
        MLP, (normal(5), labels(3), np.linspace(0.0, 2.0, BATCH, dtype="float32")), CROSS_ENTROPY
    ),
    "unrolled-lstm": Case(
        sequential((3, 2), lambda: layers.LSTM(2, unroll=True), dense(2)),
        (normal(3, 2), normal(2)),
    ),
    # Products of bfloat16 numbers carry 8 bits: its unit round-off is 2**-8.
    "mixed-bfloat16": Case(
        sequential((5,), dense(activation="tanh", dtype="mixed_bfloat16"), dense(3)),
        (normal(5), normal(3)),
        loss_tolerance=2**-8,
        gradient_tolerance=2**-6,
    ),
    "bfloat16": Case(
        sequential((5,), dense(activation="tanh", dtype="bfloat16"), dense(3, dtype="bfloat16")),
        (normal(5), normal(3)),
        loss_tolerance=2**-8,
        gradient_tolerance=2**-6,
    ),
}
