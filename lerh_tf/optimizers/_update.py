"""One weight update in tensors: how m is found and how the weights reach it."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from lerh_tf.exact.subspace import Subspace
from lerh_tf.kernels.base import Estimate, Kernel, widest_dtype
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.loss.objective import Objective
from lerh_tf.noise import PhiloxNoise
from lerh_tf.optimizers._replicas import noise_position, replicas


class Update(NamedTuple):
    """What one weight update has found, before any variable moves.

    Attributes:
        gradients: g per variable, None for those that the loss does not depend on.
        chain: the chain's last state, one position per used variable; empty for none.
        diagnostics: scalars by name.
        fails: per cause of failure, whether the update fails for it.
        leaves: whether the gradients would bring infinity or NaN, other than from the kernel.
    """

    gradients: list[tf.Tensor | None]
    chain: list[tf.Tensor]
    diagnostics: dict[str, tf.Tensor | float]
    fails: list[tf.Tensor]
    leaves: tf.Tensor


class Draw(NamedTuple):
    """What an estimate of m depends on beside the loss and the weights.

    Attributes:
        kernel: the estimator of m.
        seed: of the noise.
        update: scalar integer tensor, the raw count of weight updates.
        tau: scalar tensor.
    """

    kernel: Kernel
    seed: int
    update: tf.Tensor
    tau: tf.Tensor

    def estimate(
        self,
        objective: Objective,
        subspace: Subspace | None,
        anchor: Sequence[tf.Tensor],
        start: Sequence[tf.Tensor],
    ) -> Estimate:
        """Returns the estimate of m.

        Args:
            objective: the minibatch loss.
            subspace: where to sample; None for all weights.
            anchor: the weights x, one tensor per used variable.
            start: where the chain starts, one position per used variable; empty for none.
        """
        tau = tf.cast(self.tau, widest_dtype([x.dtype for x in anchor]))
        if subspace is None:
            noise = self._noise(anchor)
            return self.kernel(objective, anchor, tau, noise, start, self.update)
        return estimate_in_subspace(
            self.kernel, subspace, anchor, tau, self._noise, start, self.update
        )

    def _noise(self, like: Sequence[tf.Tensor]) -> PhiloxNoise:
        return PhiloxNoise(self.seed, noise_position(self.update), like)


def is_valid_tau(tau: tf.Tensor) -> tf.Tensor:
    """Returns whether tau is positive and finite, as a scalar bool tensor."""
    return tf.math.is_finite(tau) & (tau > 0.0)


class Step(NamedTuple):
    """x -= rate g with g = (x - m) / tau, as Keras makes it.

    Attributes:
        tau: scalar tensor.
        loss_scale: what Keras believes the loss was multiplied by, and divides g by.
    """

    tau: tf.Tensor
    loss_scale: float

    @property
    def has_valid_tau(self) -> tf.Tensor:
        """Whether tau is positive and finite."""
        return is_valid_tau(self.tau)

    def gradients(self, estimate: Estimate, anchor: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns g per used variable, of each replica its share of the mean."""
        tau = tf.where(self.has_valid_tau, self.tau, tf.ones_like(self.tau))
        scale = -self.loss_scale / replicas()
        return [
            tf.cast(scale * d / tf.cast(tau, d.dtype), x.dtype)
            for d, x in zip(estimate.displacement, anchor, strict=True)
        ]
