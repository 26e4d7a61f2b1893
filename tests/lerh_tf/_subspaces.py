"""Small models with an input layer, and their losses whole and in coordinates of a subspace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras import layers

from lerh_tf.exact.subspace import Subspace, find_subspace
from lerh_tf.loss.objective import native
from lerh_tf.loss.replayed import ReplayedLoss
from tests.lerh_tf._kernels import replayed

Array = npt.NDArray[Any]
Loss = Callable[..., tf.Tensor]

ROWS = 3


@dataclass(frozen=True)
class Case:
    """A model and its inputs.

    Attributes:
        build: makes the model.
        x: minibatches of `ROWS` rows, one array per input.
        dimensions: the number of weights.
        sampled: in how many dimensions of them or of their subspace noise is drawn.
    """

    build: Callable[[], keras.Model]
    x: Sequence[Array]
    dimensions: int
    sampled: int
    policy: str = field(default="float32")

    def model(self) -> keras.Model:
        """The model, the same initial weights at each call."""
        keras.utils.set_random_seed(0)
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self.policy)
        try:
            return self.build()
        finally:
            keras.config.set_dtype_policy(before)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((ROWS, *shape)).astype("float32")


def dense(x: Any, units: int = 4, **arguments: Any) -> Any:
    return layers.Dense(units, activation="tanh", **arguments)(x)


def dense_model(*shape: int, **arguments: Any) -> keras.Model:
    x = keras.Input(shape)
    return keras.Model(x, layers.Dense(2)(dense(x, **arguments)))


def flattened() -> keras.Model:
    x = keras.Input((3, 4))
    return keras.Model(x, dense(layers.Flatten()(x)))


def einsum() -> keras.Model:
    x = keras.Input((2, 9))
    layer = layers.EinsumDense("abc,cd->abd", (None, 4), activation="tanh", bias_axes="d")
    return keras.Model(x, layer(x))


def attentive() -> keras.Model:
    x = keras.Input((2, 15))
    return keras.Model(x, layers.MultiHeadAttention(num_heads=2, key_dim=3)(x, x))


def embedded() -> keras.Model:
    i = keras.Input((4,), dtype="int32")
    x = layers.Flatten()(layers.Embedding(20, 2, embeddings_initializer="normal")(i))
    return keras.Model(i, dense(x, 3))


def two_branches() -> keras.Model:
    a, b = keras.Input((9,)), keras.Input((11,))
    h = layers.Concatenate()([dense(a, 3), dense(b, 2)])
    return keras.Model([a, b], layers.Dense(1)(h))


def shared_inputs() -> keras.Model:
    x = keras.Input((9,))
    h = layers.Concatenate()([dense(x, 3), dense(x, 2)])
    return keras.Model(x, layers.Dense(1)(h))


def dropped_inputs() -> keras.Model:
    x = keras.Input((9,))
    return keras.Model(x, dense(layers.Dropout(0.5, seed=1)(x)))


# Five different rows of the table.
INDICES = np.array([[3, 7, 3, 0], [19, 7, 7, 3], [0, 0, 12, 12]], "int32")
REPEATED = np.array([normal(9)[0], 2.0 * normal(9)[0], normal(9)[1]])

FOUND: dict[str, Case] = {
    "dense": Case(lambda: dense_model(9), [normal(9)], 50, 26),
    "dense-rank-3": Case(lambda: dense_model(2, 9), [normal(2, 9)], 50, 38),
    "dense-rank-4": Case(lambda: dense_model(1, 2, 9), [normal(1, 2, 9)], 50, 38),
    "einsum-dense": Case(einsum, [normal(2, 9)], 40, 28),
    "attention": Case(attentive, [normal(2, 15)], 393, 231),
    "flatten": Case(flattened, [normal(3, 4)], 52, 16),
    "embedding": Case(embedded, [INDICES], 67, 37),
    "mixed-bfloat16": Case(lambda: dense_model(9), [normal(9)], 50, 26, "mixed_bfloat16"),
    "bfloat16": Case(lambda: dense_model(9), [normal(9)], 50, 26, "bfloat16"),
    "float64": Case(lambda: dense_model(9), [normal(9)], 50, 26, "float64"),
    "float64-embedding": Case(embedded, [INDICES], 67, 37, "float64"),
    "two-branches": Case(two_branches, [normal(9), normal(11)], 60, 26),
    "shared-inputs": Case(shared_inputs, [normal(9)], 56, 26),
    "dropped-inputs": Case(dropped_inputs, [normal(9)], 40, 16),
    "repeated-rows": Case(lambda: dense_model(9), [REPEATED], 50, 26),
    "all-zero": Case(lambda: dense_model(9), [np.zeros((ROWS, 9), "float32")], 50, 26),
    "all-zero-float64": Case(lambda: dense_model(9), [np.zeros((ROWS, 9))], 50, 26, "float64"),
}


def loss_of(model: keras.Model) -> Loss:
    """The minibatch loss of a model, computed from its variables as they are."""

    def loss(*x: tf.Tensor) -> tf.Tensor:
        y = model(list(x) if len(x) > 1 else x[0], training=True)
        return tf.reduce_mean((y - tf.constant(0.5, y.dtype)) ** 2)

    return loss


def signature(inputs: Sequence[Array], dtype: tf.DType) -> list[tf.TensorSpec]:
    """Batches of any size; floats in the dtype of the model's inputs."""
    return [
        tf.TensorSpec([None, *x.shape[1:]], dtype if x.dtype.kind == "f" else x.dtype)
        for x in inputs
    ]


def examine(
    loss: Loss,
    variables: Sequence[Any],
    inputs: Sequence[Array],
    look: Callable[[ReplayedLoss, Subspace | None, list[tf.Tensor]], Any],
    input_signature: Sequence[tf.TensorSpec] | None = None,
    jit_compile: bool = False,
) -> Any:
    """What `look` makes of a loss, the subspace found and the values of the used weights."""

    @tf.function(autograph=False, input_signature=input_signature, jit_compile=jit_compile)
    def run(*inputs: tf.Tensor) -> Any:
        objective = replayed(loss(*inputs), variables)
        used = [native(v) for v, u in zip(variables, objective.is_used, strict=True) if u]
        reads = [tf.convert_to_tensor(v) for v in used]
        return look(objective, find_subspace(objective, [v.shape for v in used]), reads)

    return tf.nest.map_structure(lambda t: t.numpy(), run(*inputs))


def examine_case(case: Case, look: Any, jit_compile: bool = False) -> Any:
    """`examine` for the loss of a case, batch size unknown while tracing."""
    model = case.model()
    dtype = tf.float64 if case.policy == "float64" else tf.float32
    spec = signature(case.x, dtype)
    inputs = [x.astype(s.dtype.as_numpy_dtype) for x, s in zip(case.x, spec, strict=True)]
    return examine(
        loss_of(model), model.trainable_variables, inputs, look, spec, jit_compile=jit_compile
    )
