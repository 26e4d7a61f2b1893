"""Optimizers that look at the loss of a stock train step instead of minimising it."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from lerh_tf.loss.replayed import CapturedLoss, ReplayedLoss

Array = npt.NDArray[Any]

STEPS = 8


class Recorder(keras.optimizers.Optimizer):
    """Records Keras's own loss and gradient of every train step, and moves nothing."""

    def __init__(self, variables: Sequence[keras.Variable]) -> None:
        super().__init__(learning_rate=1.0)
        self.build(variables)
        self._losses = self._add_losses("losses")
        self._gradients = self._add_gradients("gradient")

    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        self._put(self._losses, loss)
        return loss

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        self._keep(self._gradients, list(grads))
        self.assign_add(self._iterations, 1)

    def losses(self) -> Array:
        """Keras's loss at the current weights, one per train step so far."""
        return value_of(self._losses)[: int(self.iterations.numpy())]

    def gradients(self) -> list[Array]:
        """Keras's gradient at the current weights, at the last train step."""
        return state_of(self._gradients)

    def _add_losses(self, name: str) -> keras.Variable:
        return self.add_variable((STEPS,), dtype="float32", name=name)

    def _add_gradients(self, name: str) -> list[keras.Variable]:
        return [
            self.add_variable(v.shape, dtype="float32", name=name)
            for v in self._trainable_variables
        ]

    def _put(self, slots: keras.Variable, value: tf.Tensor) -> None:
        here = tf.range(STEPS, dtype=tf.int64) == tf.convert_to_tensor(self._iterations)
        self.assign(slots, tf.where(here, tf.cast(value, tf.float32), slots))

    def _keep(self, slots: Sequence[keras.Variable], gradients: Sequence[Any]) -> None:
        for slot, gradient in zip(slots, gradients, strict=True):
            self.assign(
                slot, tf.zeros(slot.shape) if gradient is None else tf.convert_to_tensor(gradient)
            )


class Probe(Recorder):
    """Records besides the objective and its gradient at given weights.

    Args:
        variables: the trainable weights.
        weights: where to evaluate, one array per variable.
        call: how an evaluation is called, for compiled inner functions.
        with_gradient: whether gradients are taken, by Keras and by the objective.
    """

    def __init__(
        self,
        variables: Sequence[keras.Variable],
        weights: Sequence[Array],
        call: Callable[..., Any] = lambda function, weights: function(weights),
        with_gradient: bool = True,
    ) -> None:
        super().__init__(variables)
        self._at = list(weights)
        self._call = call
        self._with_gradient = with_gradient
        self._probed_losses = self._add_losses("probed_losses")
        self._probed_gradients = self._add_gradients("probed_gradient")
        self._pair = self.add_variable((2,), dtype="float32", name="pair")

    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        self._captured = CapturedLoss(loss)
        loss = super().scale_loss(loss)
        return loss if self._with_gradient else tf.stop_gradient(loss)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        variables = list(trainable_variables)
        objective = ReplayedLoss.of_variables(self._captured, variables)
        used = objective.is_used
        at = [
            tf.constant(w, v.dtype) for w, v, u in zip(self._at, variables, used, strict=True) if u
        ]
        current = [tf.convert_to_tensor(v.value) for v, u in zip(variables, used, strict=True) if u]
        self._put(self._probed_losses, self._call(objective, at))
        stacked = [tf.stack(pair) for pair in zip(at, current, strict=True)]
        self.assign(self._pair, self._call(objective.vectorized, stacked))
        if self._with_gradient:
            gradients = iter(self._call(objective.gradient, at))
            self._keep(self._probed_gradients, [next(gradients) if u else None for u in used])
        super().apply(grads, variables)

    def probed_losses(self) -> Array:
        """The objective at the given weights, one per train step so far."""
        return value_of(self._probed_losses)[: int(self.iterations.numpy())]

    def probed_gradients(self) -> list[Array]:
        """The objective's gradient at the given weights, at the last train step."""
        return state_of(self._probed_gradients)

    def pair(self) -> Array:
        """The objective at the given and the current weights, evaluated at once."""
        return value_of(self._pair)


def value_of(variable: keras.Variable) -> Array:
    """A copy of the variable's value."""
    return np.array(variable.numpy())


def state_of(variables: Sequence[keras.Variable]) -> list[Array]:
    """Copies of the variables' values."""
    return [value_of(v) for v in variables]


def set_state(variables: Sequence[keras.Variable], values: Sequence[Array]) -> None:
    """Assigns every variable."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def elsewhere(variables: Sequence[keras.Variable], scale: float = 0.3) -> list[Array]:
    """Weights that differ from the current ones everywhere."""
    rng = np.random.default_rng(7)
    return [
        value_of(v).astype("float32") + scale * rng.standard_normal(v.shape).astype("float32")
        for v in variables
    ]


def relative_error(actual: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """|actual - expected| / |expected|, in float64."""
    a, e = np.asarray(actual, "float64"), np.asarray(expected, "float64")
    return float(np.linalg.norm(a - e) / np.linalg.norm(e))
