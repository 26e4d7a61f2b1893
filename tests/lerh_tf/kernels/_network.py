"""A tiny network, its loss in TensorFlow and its gradient by hand in NumPy, and injected noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.loss.objective import LossFunction, Weights
from tests.lerh_tf.kernels._paper import Array

_RNG = np.random.default_rng(11)
X = _RNG.standard_normal((5, 2))
Y = _RNG.standard_normal(5)
SHAPES = ((2, 3), (3,), (3,))
SIZE = 12
ANCHOR = 0.5 * _RNG.standard_normal(SIZE)
ELSEWHERE = ANCHOR + 0.1 * _RNG.standard_normal(SIZE)


def loss(weights: Weights) -> tf.Tensor:
    """Half the mean squared error of tanh(X A + b) c."""
    A, b, c = (tf.convert_to_tensor(w) for w in weights)
    h = tf.tanh(tf.constant(X, A.dtype) @ A + b)
    return 0.5 * tf.reduce_mean((tf.linalg.matvec(h, c) - tf.constant(Y, A.dtype)) ** 2)


def gradient(v: Array) -> Array:
    """The gradient of `loss` at the flat weights v."""
    A, b, c = split(v)
    h = np.tanh(X @ A + b)
    delta = (h @ c - Y) / len(Y)
    back = delta[:, None] * c * (1 - h**2)
    return np.concatenate([(X.T @ back).ravel(), back.sum(0), h.T @ delta])


def split(v: Array) -> list[Array]:
    """Flat weights, [..., 12], as one array per variable."""
    parts = np.split(v, np.cumsum([np.prod(shape) for shape in SHAPES])[:-1], axis=-1)
    return [p.reshape(*v.shape[:-1], *shape) for p, shape in zip(parts, SHAPES, strict=True)]


def flat(tensors: Sequence[Any]) -> Array:
    """One array per variable as flat weights in float64."""
    return np.concatenate([np.asarray(t, np.float64).ravel() for t in tensors])


class InjectedNoise:
    """The caller's numbers as a `Noise`.

    Args:
        z: per variable, shape [blocks, samples per block, *shape].
        dtype: the dtype to hand them out in.
    """

    def __init__(self, z: Sequence[Array], dtype: str = "float64"):
        self._z = [tf.constant(part, dtype) for part in z]

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        return [z[block][:samples] for z in self._z]


class SeededNoise:
    """Noise drawn from (seed, block, variable), in float64.

    Args:
        seed: any integer.
        shapes: the variables' shapes.
    """

    def __init__(self, seed: int, *shapes: Sequence[int]):
        self._seed = seed
        self._shapes = shapes

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        def draw(index: int, shape: Sequence[int]) -> tf.Tensor:
            seed = tf.stack([tf.constant(self._seed * 1000 + index, tf.int64), block])
            return tf.random.stateless_normal(
                tf.concat([[samples], tf.constant(shape, tf.int32)], 0), seed, dtype=tf.float64
            )

        return [draw(index, shape) for index, shape in enumerate(self._shapes)]


def estimate(
    kernel: Kernel,
    tau: float,
    z: Array,
    dtype: str,
    start: Array | None = None,
    update: int = 0,
) -> Estimate:
    """What the kernel, compiled, finds for the network from `ANCHOR` with the noise z."""

    @tf.function(autograph=False)
    def compiled(update: tf.Tensor) -> Estimate:
        anchor = tensors(ANCHOR, dtype)
        chain = anchor if start is None else tensors(start, dtype)
        noise = InjectedNoise(split(z), dtype)
        objective = LossFunction(loss, len(anchor))
        return kernel(objective, anchor, tf.constant(tau, dtype), noise, chain, update)

    return compiled(tf.constant(update, tf.int64))


def tensors(v: Array, dtype: str) -> list[tf.Tensor]:
    """Flat weights as one tensor per variable."""
    return [tf.constant(part, dtype) for part in split(v)]


TOLERANCES = {"float32": 1e-5, "float64": 1e-12}


def relative_error(actual: Sequence[Any], expected: Array) -> float:
    """|actual - expected| / |expected| over all weights together."""
    return float(np.linalg.norm(flat(actual) - expected) / np.linalg.norm(expected))
