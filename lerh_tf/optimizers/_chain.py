"""The Markov chain's last state, from one weight update to the next."""

from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from lerh_tf.loss.objective import Variable, native
from lerh_tf.noise import working_dtype

# From shape, dtype and name to a new variable of the optimizer.
AddVariable = Callable[[Sequence[int], str, str], keras.Variable]


class Chain:
    """A flag per weight, has its chain started, and one position per weight.

    Args:
        variables: the weights.
        add_variable: makes a variable of the optimizer, zero at first.
    """

    def __init__(self, variables: Sequence[Variable], add_variable: AddVariable):
        self._started = add_variable((len(variables),), "float32", "chain_started")
        self._positions = [
            add_variable(v.shape, working_dtype(v.dtype).name, f"{name_of(v)}_chain")
            for v in variables
        ]

    def state(self) -> Iterator[tuple[str, keras.Variable]]:
        """Yields the variables by the names that they are saved under."""
        yield "chain_started", self._started
        for index, position in enumerate(self._positions):
            yield f"chain_{index}", position

    def start(self, anchor: Sequence[tf.Tensor], indices: Sequence[int]) -> list[tf.Tensor]:
        """Returns the last state of the chain, or the weights if there is none yet.

        Args:
            anchor: the weights, one tensor per used variable.
            indices: their positions among all variables.
        """
        started = tf.convert_to_tensor(self._started) > 0.0
        positions = [self._positions[index] for index in indices]
        # A value assigned in `build` would be lost where `fit` builds while tracing.
        return [
            tf.where(started[index], position, tf.cast(x, position.dtype))
            for index, position, x in zip(indices, positions, anchor, strict=True)
        ]

    def keep(
        self, states: Sequence[tf.Tensor], indices: Sequence[int], is_valid: tf.Tensor
    ) -> None:
        """Stores the last state of an update.

        Args:
            states: one position per used variable.
            indices: their positions among all variables.
            is_valid: scalar bool tensor; where it is False the chain stays as it was.
        """
        has_run = np.zeros(len(self._positions), "float32")
        has_run[list(indices)] = 1.0
        started = tf.maximum(self._started, has_run * tf.cast(is_valid, tf.float32))
        native(self._started).assign(started)
        for index, state in zip(indices, states, strict=True):
            position = native(self._positions[index])
            position.assign(tf.where(is_valid, state, position))


def name_of(variable: Variable) -> str:
    """Returns a name for what belongs to a weight, as Keras makes those of its own slots."""
    return getattr(variable, "path", variable.name).replace("/", "_").replace(":", "_")
