"""An optimizer that survives `pickle` and `copy.deepcopy` with its state."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf.objective import Variable


class RestoredOptimizer(keras.optimizers.Optimizer):
    """An optimizer whose saved state waits for the weights that it belongs to.

    `pickle` and `copy.deepcopy` restore an optimizer before it is built. What exists then
    (iteration, learning rate, tau) has its value at once, the rest at `build`. Keras itself drops
    the state with a warning.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._waiting: tuple[Any, ...] = ()

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Restores the state, as far as its variables exist."""
        values = [store[str(index)][()] for index in range(len(store))]
        known = len(values) if self.built else len(self.variables)
        self._waiting = tuple(values[known:])
        super().load_own_variables(dict(zip(map(str, range(known)), values, strict=False)))

    def save_own_variables(self, store: Any) -> None:
        """Writes the state, also what still waits for `build`."""
        super().save_own_variables(store)
        for index, value in enumerate(self._waiting, start=len(self.variables)):
            store[str(index)] = value

    def restore_waiting(self, variables: Sequence[Variable]) -> None:
        """Gives new variables the values that waited for them, if any did.

        Args:
            variables: those that `build` made, in their order.

        Raises:
            ValueError: their number or a shape is another than in the saved optimizer.
        """
        values, self._waiting = self._waiting, ()
        if not values:
            return
        found, expected = [v.shape for v in variables], [value.shape for value in values]
        if found != expected:
            raise ValueError(
                "The optimizer was restored from one that was built for other weights. Build it "
                "for weights of the same shapes. Received variables of the shapes "
                f"{found}, where the saved ones have {expected}"
            )
        # `fit` builds while it traces, where an assignment would be lost.
        with tf.init_scope():
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
