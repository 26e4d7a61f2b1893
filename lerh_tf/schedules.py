"""Schedules of the paper, as serializable subclasses of Keras's `LearningRateSchedule`."""

from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from lerh_tf._checks import boolean, finite_float, positive_float

Schedule: TypeAlias = keras.optimizers.schedules.LearningRateSchedule


def is_schedule(value: Any) -> bool:
    """Returns whether `value` is a Keras `LearningRateSchedule`."""
    return isinstance(value, keras.optimizers.schedules.LearningRateSchedule)


def checked_schedule(name: str, value: Any, example: str) -> Schedule:
    """Returns `value`, a Keras `LearningRateSchedule`.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.
        example: a schedule as the user writes it, for the message.

    Raises:
        ValueError: `value` is something else.
    """
    if not is_schedule(value):
        raise ValueError(
            f"`{name}` must be a `keras.optimizers.schedules.LearningRateSchedule` such as "
            f"`lerh_tf.{example}`. Received: {name}={value!r}"
        )
    return value


def positive_tau(tau: Any) -> float:
    """Returns a tau that is a number, or a tensor, variable or array of one, as a float.

    Raises:
        ValueError: `tau` is something else, or not positive and finite.
    """
    if callable(tau) and not isinstance(tau, (keras.Variable, tf.Variable)):
        raise ValueError(
            "`tau` must be a positive, finite number or, given to an optimizer's constructor, a "
            "`keras.optimizers.schedules.LearningRateSchedule` such as `lerh_tf.Scoping`. "
            f"Received: tau={tau!r}"
        )
    if isinstance(tau, keras.Variable) or (tf.is_tensor(tau) and not tf.is_symbolic_tensor(tau)):
        tau = tau.numpy()
    if isinstance(tau, np.ndarray) and tau.size == 1:
        tau = tau.item()
    return positive_float("tau", tau)


class _Value(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that equals those of its class with its arguments."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_config() == other.get_config()

    def __hash__(self) -> int:
        return hash((type(self), *self.get_config().values()))


@keras.saving.register_keras_serializable("lerh_tf")
class Scoping(_Value):
    """Scoping of tau: tau(k) = tau0 / (1 + tau1)^k, k = 0, 1, ...

    Args:
        tau0: tau at the first weight update, positive.
        tau1: rate of decay per weight update; above -1. Negative values let tau grow.

    Raises:
        ValueError: `tau0` is not positive and finite, or `tau1` not finite and above -1.

    References:
        Section 6.5.1, "Scoping of tau".
    """

    def __init__(self, tau0: float, tau1: float):
        self._tau0 = positive_float("tau0", tau0)
        self._tau1 = finite_float("tau1", tau1)
        if self._tau1 <= -1.0:
            raise ValueError(f"`tau1` must be above -1. Received: tau1={tau1}")

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns tau at weight update `step`, counted from 0."""
        k = tf.cast(step, tf.float64)
        return self._tau0 / (1.0 + self._tau1) ** k

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"tau0": self._tau0, "tau1": self._tau1}


@keras.saving.register_keras_serializable("lerh_tf")
class LangevinSteps(_Value):
    """Step sizes of the Langevin chain, the paper's temperatures: eps_j = 1 / (offset + j).

    j = 1, 2, ...

    Args:
        offset: a finite number above -1. Defaults to 1000, the paper's.

    Raises:
        ValueError: `offset` is not finite and above -1.

    References:
        Algorithm 3; caption of Figure 4 (offset 1000) and of Figure 5 (offset 2000).
    """

    def __init__(self, offset: float = 1000.0):
        self._offset = finite_float("offset", offset)
        if self._offset <= -1.0:
            raise ValueError(f"`offset` must be above -1. Received: offset={offset}")

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns eps_j for j = `step`, counted from 1."""
        return 1.0 / (self._offset + tf.cast(step, tf.float64))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"offset": self._offset}


@keras.saving.register_keras_serializable("lerh_tf")
class RobbinsMonroSteps(_Value):
    """Step sizes of Robbins-Monro: a_j = c j^(-alpha), or c j^alpha as printed, j = 1, 2, ...

    Args:
        c: factor, positive. Defaults to 0.1, the paper's.
        alpha: exponent in (1/2, 1]. Defaults to 0.7, the paper's.
        growing: False decays, which the method needs to converge; True grows as the text of
            Section 5.2 prints it. Defaults to False.
        largest: no step size is larger, positive; None for no bound. With c = alpha = 1 it keeps
            the first steps of an average short. Defaults to None.

    Raises:
        ValueError: `c` or `largest` is not positive and finite, `alpha` not in (1/2, 1], or
            `growing` no bool.

    References:
        Algorithm 5 and Section 5.2; Robbins and Monro (1951) for the decay.
    """

    def __init__(
        self,
        c: float = 0.1,
        alpha: float = 0.7,
        growing: bool = False,
        largest: float | None = None,
    ):
        self._c = positive_float("c", c)
        self._alpha = finite_float("alpha", alpha)
        if not 0.5 < self._alpha <= 1.0:
            raise ValueError(f"`alpha` must be in (1/2, 1]. Received: alpha={alpha}")
        self._growing = boolean("growing", growing)
        self._largest = None if largest is None else positive_float("largest", largest)

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns a_j for j = `step`, counted from 1."""
        exponent = self._alpha if self._growing else -self._alpha
        a = self._c * tf.cast(step, tf.float64) ** exponent
        return a if self._largest is None else tf.minimum(a, self._largest)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "c": self._c,
            "alpha": self._alpha,
            "growing": self._growing,
            "largest": self._largest,
        }
