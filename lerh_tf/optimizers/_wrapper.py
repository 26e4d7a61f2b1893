"""A Keras optimizer around another one: what is set, read and saved through it."""

import abc
import types
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lerh_tf.optimizers._chain import name_of
from lerh_tf.optimizers._inner import TiedToTau

_FORMAT = "format"
_OF_FIRST_FORM = "layout"
_EXIST_BEFORE_BUILD = frozenset({"iteration", "tau", "inner_iteration", "inner_learning_rate"})


def _of_inner(name: str) -> Any:
    """Returns a property that reads and sets the inner optimizer's attribute."""

    def write(outer: Any, value: Any) -> None:
        # Keras's constructor sets its defaults before there is an inner optimizer.
        if "inner_optimizer" in vars(outer):
            setattr(outer.inner_optimizer, name, value)

    return property(lambda outer: getattr(outer.inner_optimizer, name), write)


class Wrapper(keras.optimizers.Optimizer):
    """A Keras optimizer whose weights, learning rate and further arguments are another one's.

    The state of both is saved by name, once. `pickle`, `copy.deepcopy` and `load_weights` restore
    an optimizer before it is built: what exists then has its value at once, the rest at `build`;
    Keras's own optimizers drop it.

    Attributes:
        inner_optimizer: the optimizer inside.
    """

    inner_optimizer: keras.optimizers.Optimizer
    _pending: Mapping[str, Any] = types.MappingProxyType({})

    def __init__(self, name: str | None):
        # A function, so that Keras makes no variable for a rate of our own.
        super().__init__(learning_rate=lambda: self.learning_rate, name=name)

    weight_decay = _of_inner("weight_decay")
    clipnorm = _of_inner("clipnorm")
    clipvalue = _of_inner("clipvalue")
    global_clipnorm = _of_inner("global_clipnorm")
    use_ema = _of_inner("use_ema")
    ema_momentum = _of_inner("ema_momentum")
    ema_overwrite_frequency = _of_inner("ema_overwrite_frequency")
    loss_scale_factor = _of_inner("loss_scale_factor")
    gradient_accumulation_steps = _of_inner("gradient_accumulation_steps")

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute; refuses what would be without effect."""
        inner = vars(self).get("inner_optimizer")
        is_inner_s = not (name.startswith("_") or hasattr(self, name)) and hasattr(inner, name)
        if inner is not None and (is_inner_s or name == "inner_optimizer"):
            raise AttributeError(
                f"`{name}` can't be set here: set attributes of `inner_optimizer` on it, or make "
                f"another optimizer. Received: {name}={value!r}"
            )
        super().__setattr__(name, value)

    def exclude_from_weight_decay(self, var_list: Any = None, var_names: Any = None) -> None:
        """See `keras.optimizers.Optimizer`: decay is the inner optimizer's."""
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    @property
    def learning_rate(self) -> Any:
        """The inner optimizer's; by default tau, which alone can then be set."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        if self._is_tied:
            # Raises, also where it is a schedule, with which Keras would replace the tied rate.
            self.inner_optimizer._learning_rate.assign(learning_rate)
        self.inner_optimizer.learning_rate = learning_rate

    @property
    def _is_tied(self) -> bool:
        """Whether the learning rate is tau."""
        return isinstance(self.inner_optimizer._learning_rate, TiedToTau)

    @property
    def variables(self) -> list[keras.Variable]:
        """The optimizer's own variables and the inner one's."""
        return self._variables + self.inner_optimizer.variables

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the variables' values, in the order of `variables`."""
        own = len(self._variables)
        super().set_weights(weights[:own])
        self.inner_optimizer.set_weights(weights[own:])

    def __dir__(self) -> list[str]:
        """Leaves the inner optimizer out: Keras would save its state a second time, by itself."""
        return [name for name in super().__dir__() if name != "inner_optimizer"]

    @property
    @abc.abstractmethod
    def state(self) -> dict[str, keras.Variable]:
        """What the next update needs and exists so far, by name."""

    def _state_of_inner(self) -> dict[str, keras.Variable]:
        """Returns the inner optimizer's variables by name.

        A slot of a weight is named by its position and Keras's name of the slot, such as
        "momentum": the weights' own names change with the process.
        """
        weights = [name_of(weight) for weight in self.inner_optimizer._trainable_variables]

        def name(index: int, variable: keras.Variable) -> str:
            if variable.name in ("iteration", "learning_rate"):
                return f"inner_{variable.name}"
            slots = [variable.name[len(w) :] for w in weights if variable.name.startswith(f"{w}_")]
            return f"inner_{index}{min(slots, key=len, default='')}"

        return {name(*each): each[1] for each in enumerate(self.inner_optimizer.variables)}

    @property
    @abc.abstractmethod
    def format(self) -> str:
        """Version of the format and whose state it is; others are not loaded."""

    def save_own_variables(self, store: Any) -> None:
        """Writes the state by name, also what `build` will restore."""
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
        """Gives each variable its value; those not yet made get theirs in `build`."""
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
            name: tuple(variable.shape)
            for name, variable in self.state.items()
            if name not in _EXIST_BEFORE_BUILD
        }
        saved = {name: np.shape(value) for name, value in self._pending.items()}
        if found != saved:
            raise ValueError(
                "The optimizer was restored from one that was built for other weights or with "
                "other settings. Build it for weights of the same shapes, or compile with a new "
                f"one. Received variables of the shapes {found}, where the saved ones have {saved}"
            )
        self._restore(self._pending)
