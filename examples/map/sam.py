"""Sharpness-aware minimisation as a kernel: the gradient at the end of a step uphill."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

import lerh_tf
from lerh_tf.loss.compilation import compiled


@keras.saving.register_keras_serializable("examples")
@dataclass(frozen=True)
class SAM(lerh_tf.Kernel):
    """Hands on grad f(x + rho grad f(x) / |grad f(x)|), the norm over all weights.

    As m = x - tau times that, so that the optimizer's g = (x - m) / tau is it, whatever tau is.

    Args:
        rho: Length of the step uphill, positive.

    References:
        Foret, Kleiner, Mobahi and Neyshabur (2021), Sharpness-aware minimization for efficiently
        improving generalization, Algorithm 1.
    """

    rho: float = 0.05

    def __call__(
        self,
        objective: lerh_tf.Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: lerh_tf.Noise,
        chain: Sequence[tf.Tensor] = (),
        update: Any = 0,
    ) -> lerh_tf.Estimate:
        """See `Kernel`."""

        def ascended_gradient(anchor: Any) -> Any:
            uphill = objective.gradient(anchor)
            factor = tf.math.divide_no_nan(self.rho, tf.linalg.global_norm(uphill))
            return objective.gradient([x + factor * g for x, g in zip(anchor, uphill, strict=True)])

        gradient = compiled(ascended_gradient, objective)(list(anchor))
        displacement = [-tf.cast(tau, g.dtype) * g for g in gradient]
        is_valid = tf.math.is_finite(tf.linalg.global_norm(displacement))
        return lerh_tf.Estimate(displacement, [], {}, is_valid)
