"""Kernels on losses of bare variables, with noise that the test injects."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from lerh_tf.kernels.base import Estimate
from lerh_tf.loss.replayed import CapturedLoss, ReplayedLoss
from lerh_tf.noise import Noise, block_size

Array = npt.NDArray[Any]
Loss = Callable[..., tf.Tensor]


class Result(NamedTuple):
    """`lerh_tf.kernels.base.Estimate` in NumPy."""

    displacement: list[Array]
    chain: list[Array]
    diagnostics: dict[str, float]
    is_valid: bool


class ArrayNoise:
    """Noise from arrays of shape [samples, *shape], one per variable; beyond them it is 0.5.

    In blocks as large as may be, or spread evenly.
    """

    def __init__(self, arrays: Sequence[Array], is_spread: bool = False) -> None:
        self._size = size_of_blocks([z.shape[1:] for z in arrays])
        if is_spread:
            samples = len(arrays[0])
            self._size = -(-samples // -(-samples // self._size))
        self._arrays = [
            np.concatenate([z, np.full((-len(z) % self._size, *z.shape[1:]), 0.5, z.dtype)])
            for z in arrays
        ]

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        start = tf.cast(block, tf.int32) * self._size
        return [
            tf.slice(z, [start] + [0] * (z.ndim - 1), [samples, *z.shape[1:]]) for z in self._arrays
        ]


def replayed(loss: tf.Tensor, variables: Sequence[tf.Variable]) -> ReplayedLoss:
    """The objective of a loss that has just been computed from the variables."""
    return ReplayedLoss.of_variables(CapturedLoss(loss), variables)


def size_of_blocks(shapes: Sequence[tuple[int, ...]]) -> int:
    """How many samples a block holds for weights of these shapes."""
    return int(block_size([tf.zeros(shape) for shape in shapes]))


def estimate(
    kernel: Callable[..., Estimate],
    loss: Loss,
    weights: Sequence[Array],
    tau: float,
    noise: Noise,
    jit_compile: bool = False,
) -> Result:
    """Runs a kernel on `loss(*weights)` in a graph, as a train step would."""
    variables = [tf.Variable(w) for w in weights]

    @tf.function(jit_compile=jit_compile, autograph=False)
    def run() -> Any:
        reads = [tf.convert_to_tensor(v) for v in variables]
        objective = replayed(loss(*reads), variables)
        scalar = tf.constant(tau, tf.float64 if weights[0].dtype == np.float64 else tf.float32)
        return kernel(objective, reads, scalar, noise)

    found = run()
    return Result(
        [d.numpy() for d in found.displacement],
        [c.numpy() for c in found.chain],
        {name: float(value) for name, value in found.diagnostics.items()},
        bool(found.is_valid),
    )


def flat(arrays: Sequence[Array]) -> Array:
    """All entries of all arrays, in float64."""
    return np.concatenate([np.ravel(a).astype("float64") for a in arrays])
