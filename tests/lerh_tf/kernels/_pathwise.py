"""One noise for a kernel on whole weights and for the same kernel in coordinates.

The plain kernel gets n. The reduced one gets Q^T n, and for the complement what its recursion on
(I - Q Q^T) n, run step by step in NumPy, amounts to: the two draws that give that mean and that
last state. Nothing here uses the closed form of the library.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling
from lerh_tf.exact.reductions import Reduction
from lerh_tf.exact.subspace import Subspace
from lerh_tf.kernels.base import Kernel
from lerh_tf.kernels.reduced import NoiseFor
from lerh_tf.noise import Noise

Array = npt.NDArray[np.float64]


def responses(eps: Array, deviations: Array, tau: float) -> tuple[Array, Array]:
    """Algorithm 3 where f is flat, one dimension, driven by one unit at a time.

    Returns:
        By how much the weighted mean, and the last state, answer to y^1, n_1, ..., n_{J-1}.
    """
    y = np.eye(len(eps))[0]
    total = eps[0] * y
    for j in range(len(eps) - 1):
        y = (1 - eps[j] / (2 * tau)) * y
        y[j + 1] += deviations[j]
        total = total + eps[j + 1] * y
    return total / eps.sum(), y


def step_sizes_of(kernel: SGLD, update: int = 0) -> tuple[Array, Array]:
    """eps_j and the standard deviations of eta_j."""
    j = np.arange(1, kernel.samples + 1) + (0 if kernel.restart else kernel.samples * update)
    with tf.init_scope():
        eps = np.array([float(kernel.step_sizes(int(j_i))) for j_i in j])
    return eps, np.sqrt(eps) if kernel.noise == "langevin" else eps


class Blocks:
    """Noise that the caller draws.

    Args:
        z: per variable, shape [blocks, samples per block, *shape].
    """

    def __init__(self, z: Sequence[tf.Tensor]):
        self._z = z

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        return [z[block][:samples] for z in self._z]


class _Seen:
    """Q^T n."""

    def __init__(self, z: Sequence[tf.Tensor], reductions: Sequence[Reduction | None]):
        self._blocks = Blocks(z)
        self._reductions = reductions

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        return [
            z if r is None else reduced(r, z)
            for r, z in zip(self._reductions, self._blocks(block, samples), strict=True)
        ]


class _Unseen:
    """The draws that stand for the complement's recursion on n."""

    def __init__(self, draws: Sequence[Sequence[tf.Tensor]]):
        self._draws = draws

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        return [tf.stack(list(draws)[:samples]) for draws in self._draws]


def reduced(reduction: Reduction, stacked: tf.Tensor) -> tf.Tensor:
    """The coordinates of weights stacked along a leading axis."""
    coordinates = tf.map_fn(reduction.reduce, stacked)
    return tf.ensure_shape(coordinates, [None, None, *stacked.shape[2:]])


def injected(
    kernel: Kernel,
    subspace: Subspace,
    anchor: Sequence[tf.Tensor],
    tau: float,
    z: Sequence[tf.Tensor],
) -> NoiseFor:
    """The noise of `estimate_in_subspace` that follows the plain kernel on `Blocks(z)`.

    Args:
        kernel: the estimator.
        subspace: the loss in coordinates.
        anchor: the weights x.
        tau: variance of the Gaussian.
        z: per variable, shape [blocks, samples per block, *shape].
    """
    whole = [n for n, r in zip(z, subspace.reductions, strict=True) if r is not None]
    flat = [tf.reshape(n, [-1, *n.shape[2:]]) for n in whole]
    draws: list[list[tf.Tensor]] = []
    if isinstance(kernel, SGLD):
        draws = [_chain_draws(kernel, tau, n) for n in flat]
    if isinstance(kernel, ImportanceSampling):
        weights = _weights(kernel, subspace, anchor, tau, z)
        draws = [[_mean_draw(weights, n[: kernel.samples])] for n in flat]
    sources: Iterator[Noise] = iter([_Seen(z, subspace.reductions), _Unseen(draws)])
    return lambda tensors: next(sources)


def _chain_draws(kernel: SGLD, tau: float, n: tf.Tensor) -> list[tf.Tensor]:
    mean, last = responses(*step_sizes_of(kernel), tau)
    mean, last = mean[1:], last[1:]
    first = mean / np.linalg.norm(mean)
    rest = last - (last @ first) * first
    n = n[: kernel.samples - 1]
    # Of two states, one move apart, mean and last state need one draw only.
    length = float(np.linalg.norm(rest))
    second = rest / length if length > 0.0 else rest
    return [_combined(c, n) for c in (first, second)]


def _combined(coefficients: Array, n: tf.Tensor) -> tf.Tensor:
    return tf.tensordot(tf.constant(coefficients, n.dtype), n, 1)


def _weights(
    kernel: ImportanceSampling,
    subspace: Subspace,
    anchor: Sequence[tf.Tensor],
    tau: float,
    z: Sequence[tf.Tensor],
) -> tf.Tensor:
    """The normalised weights of Algorithm 4: they depend on the coordinates alone."""
    samples = []
    for x, n, r in zip(anchor, z, subspace.reductions, strict=True):
        flat = tf.reshape(n, [-1, *n.shape[2:]])[: kernel.samples]
        positions = tf.cast(x, n.dtype) + tf.cast(np.sqrt(tau), n.dtype) * flat
        samples.append(positions if r is None else reduced(r, positions))
    dtype = samples[0].dtype
    losses = tf.map_fn(
        lambda w: tf.cast(subspace.objective(w), dtype), samples, fn_output_signature=dtype
    )
    return tf.nn.softmax(-kernel.loss_multiplier * losses)


def _mean_draw(weights: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    return tf.tensordot(tf.cast(weights, n.dtype), n, 1) / tf.cast(tf.norm(weights), n.dtype)


def noise_like(
    variables: Sequence[Any], updates: int, blocks: int, size: int, dtype: str = "float32"
) -> list[Any]:
    """Standard normal numbers, per variable of shape [updates, blocks, size, *shape]."""
    rng = np.random.default_rng(5)
    return [rng.standard_normal((updates, blocks, size, *v.shape)).astype(dtype) for v in variables]
