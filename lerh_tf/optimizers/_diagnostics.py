"""What a weight update tells of itself."""

from collections.abc import Callable, Mapping, Sequence

import keras
import tensorflow as tf

from lerh_tf.exact.subspace import Subspace
from lerh_tf.kernels.base import Estimate, Kernel, dot, size_of
from lerh_tf.loss.compilation import is_compilable
from lerh_tf.loss.objective import Objective, native

_COMMON = ("step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized")


class Diagnostics:
    """One variable per diagnostic, of the last weight update.

    Args:
        kernel: the estimator of m, which has some of its own.
        add_variable: makes a scalar variable of the optimizer from its name.
    """

    def __init__(self, kernel: Kernel, add_variable: Callable[[str], keras.Variable]):
        names = (*_COMMON, *kernel.diagnostic_names)
        self._variables = {name: add_variable(name) for name in names}

    def store(self, values: Mapping[str, tf.Tensor | float]) -> None:
        """Stores an update's values."""
        for name, variable in self._variables.items():
            native(variable).assign(tf.cast(values[name], variable.dtype))

    def read(self) -> dict[str, float]:
        """Returns the values, on the host."""
        return {name: float(variable.numpy()) for name, variable in self._variables.items()}


def measured(
    estimate: Estimate,
    objective: Objective,
    subspace: Subspace | None,
    anchor: Sequence[tf.Tensor],
) -> dict[str, tf.Tensor | float]:
    """Returns the diagnostics of one weight update by name: the common and the kernel's own.

    Args:
        estimate: what the kernel found.
        objective: the minibatch loss.
        subspace: where it was sampled; None for all weights.
        anchor: the weights before the update, one tensor per used variable.
    """
    evaluated = objective if subspace is None else subspace.objective
    dimensions = size_of(anchor)
    return {
        "step_norm": tf.sqrt(dot(estimate.displacement, estimate.displacement)),
        "dimensions": dimensions,
        "sampled_dimensions": dimensions if subspace is None else subspace.size,
        "compiled": float(is_compilable(evaluated)),
        "vectorized": float(evaluated.is_vectorized),
        **estimate.diagnostics,
    }
