"""An optimizer's state, saved by name, that can be read before the optimizer is built."""

import abc
import types
import warnings
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

_FORMAT = "format"
_OF_FIRST_FORM = "layout"
_EXIST_BEFORE_BUILD = frozenset({"tau", "inner_learning_rate"})


class SavedByName(keras.optimizers.Optimizer):
    """Keras's optimizer with a state of names, whose rest waits for `build` where it is read early.

    `pickle`, `copy.deepcopy` and `load_weights` restore an optimizer before it is built. What
    exists then has its value at once, the rest at `build`; Keras's own optimizers drop it.
    """

    _pending: Mapping[str, Any] = types.MappingProxyType({})

    @property
    @abc.abstractmethod
    def state(self) -> dict[str, keras.Variable]:
        """What the next update needs and exists so far, by name."""

    @property
    @abc.abstractmethod
    def format(self) -> str:
        """Version of the format and whose state it is: others are not loaded."""

    def save_own_variables(self, store: Any) -> None:
        """Writes the state by name, also what still waits for `build`."""
        values = {name: variable.numpy() for name, variable in self.state.items()}
        for name, value in {**self._pending, **values}.items():
            store[name] = value
        store[_FORMAT] = np.frombuffer(self.format.encode(), "uint8")

    def load_own_variables(self, store: Any) -> None:
        """Restores the state; that of another optimizer is skipped with a warning."""
        saved = {name: store[name][()] for name in list(store.keys())}
        wrong = self._why_not(saved)
        if wrong:
            warnings.warn(
                f"Skipping variable loading for optimizer '{self.name}', which needs the state of "
                f"`{self.format}`. Received: {wrong}",
                stacklevel=2,
            )
            return
        del saved[_FORMAT]
        self._restore(saved)

    def _why_not(self, saved: Mapping[str, Any]) -> str:
        """Returns what is wrong with a saved state, nothing if it can be loaded."""
        if _FORMAT not in saved:
            first = "a state of lerh_tf's first form, which later ones don't read"
            return first if _OF_FIRST_FORM in saved else "a state of another optimizer"
        found = bytes(saved[_FORMAT]).decode()
        if found != self.format:
            return f"the state of `{found}`"
        expected = {*self.state, _FORMAT}
        missing, beyond = expected - saved.keys(), saved.keys() - expected
        if missing or (beyond if self.built else beyond & _EXIST_BEFORE_BUILD):
            return f"a state without {sorted(missing)} and with {sorted(beyond)}"
        return ""

    def _restore(self, values: Mapping[str, Any]) -> None:
        """Gives each variable its value; those without one wait for `build`."""
        state = self.state
        # `fit` may build while it traces, where an assignment would be lost.
        with tf.init_scope():
            for name in state.keys() & values.keys():
                state[name].assign(values[name])
        # No dictionary: Keras would wrap it and track what it holds.
        self._pending = types.MappingProxyType(
            {name: value for name, value in values.items() if name not in state}
        )

    def _restore_pending(self) -> None:
        """Gives the variables that `build` has made the values that were read before it.

        Raises:
            ValueError: their names or shapes are others than in the saved state.
        """
        if not self._pending:
            return
        found = {
            name: tuple(self.state[name].shape) for name in self._pending if name in self.state
        }
        saved = {name: np.shape(value) for name, value in self._pending.items()}
        if found != saved:
            raise ValueError(
                "The optimizer was restored from one that was built for other weights. Build it "
                "for weights of the same shapes, or compile with a new one. Received variables of "
                f"the shapes {found}, where the saved ones have {saved}"
            )
        self._restore(self._pending)
