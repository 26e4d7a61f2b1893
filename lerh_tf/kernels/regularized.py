"""Both regularized losses at the weights, estimated from a sample of the Gaussian."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from lerh_tf.kernels.base import displaced, fold_blocks, scaled, widest_dtype
from lerh_tf.loss.objective import Objective
from lerh_tf.noise import DIAGNOSTICS_BLOCK, Noise, block_size

_EVALUATIONS_PER_SAMPLE = 32  # about 3 % of the work


class RegularizedLosses(NamedTuple):
    """Estimates from the same losses f(x + sqrt(tau) z^j), j = 1, ..., n.

    Attributes:
        local_entropy: of F_tau(x), -log (1 / n sum_j exp(-f)); samples without a finite loss
            count as exp(-f) = 0.
        heat_regularization: of F^H_tau(x), 1 / n sum_j f.
    """

    local_entropy: tf.Tensor
    heat_regularization: tf.Tensor


def regularized_losses(
    objective: Objective,
    anchor: Sequence[tf.Tensor],
    tau: tf.Tensor,
    noise: Noise,
    evaluations: int,
) -> RegularizedLosses:
    """Estimates F_tau and F^H_tau at the weights, from a Gaussian sample drawn for this alone.

    The sample has one point for every 32 evaluations of f or its gradient that the kernel makes,
    and at least one, so that it costs little whatever the kernel's settings.

    Args:
        objective: f on the current minibatch.
        anchor: the current weights x, one tensor per variable.
        tau: variance of the Gaussian (paper's tau), scalar tensor.
        noise: source of standard normal noise.
        evaluations: how often the kernel evaluates f or its gradient.

    Returns:
        The estimates, scalar tensors in at least float32.

    References:
        The definitions of F_tau and F^H_tau, Sections 2.1 and 2.2.
    """
    dtype = widest_dtype([x.dtype for x in anchor])
    samples = max(1, evaluations // _EVALUATIONS_PER_SAMPLE)
    size = tf.minimum(block_size(anchor, objective.footprint), samples)

    def add_block(
        block: tf.Tensor, count: tf.Tensor, state: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        log_sum, total = state
        z = noise(DIAGNOSTICS_BLOCK + block, size)
        losses = tf.cast(objective.vectorized(displaced(anchor, scaled(tau, z))), dtype)
        counts = tf.range(size) < count
        log_terms = tf.where(counts & tf.math.is_finite(losses), -losses, -float("inf"))
        return (
            tf.reduce_logsumexp(tf.concat([[log_sum], log_terms], 0)),
            total + tf.reduce_sum(tf.where(counts, losses, 0.0)),
        )

    start = (tf.constant(-float("inf"), dtype), tf.zeros([], dtype))
    log_sum, total = fold_blocks(add_block, samples, size, start)
    count = tf.cast(samples, dtype)
    return RegularizedLosses(tf.math.log(count) - log_sum, total / count)
