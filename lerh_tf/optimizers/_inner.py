"""The Keras optimizer inside ours, which moves the weights."""

import inspect
from collections.abc import Mapping
from numbers import Real
from typing import Any

import keras
import tensorflow as tf

from lerh_tf._checks import finite_float
from lerh_tf.optimizers._replicas import replicas

_OF_SGD = frozenset(inspect.signature(keras.optimizers.SGD).parameters) - {"kwargs"}


def is_valid_tau(tau: tf.Tensor) -> tf.Tensor:
    """Returns whether tau is positive and finite, as a scalar bool tensor."""
    return tf.math.is_finite(tau) & (tau > 0.0)


class TiedToTau:
    """A learning rate that is tau whenever Keras asks for it, so that the inner SGD moves to m.

    Where tau is not positive and finite, it is the latest that was among those of the parts that
    are accumulated, 0 if none was.

    Args:
        optimizer: has `taus_of_parts`.
    """

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer

    def __call__(self) -> tf.Tensor:
        rate: Any = 0.0
        for tau in map(tf.convert_to_tensor, self._optimizer.taus_of_parts()):
            rate = tf.where(is_valid_tau(tau), tau, rate)
        return rate

    def assign(self, learning_rate: Any) -> None:
        """Refuses what Keras would set a learning rate to."""
        raise TypeError(
            "The learning rate is tied to `tau` and can't be set on its own: set `tau`, or "
            "construct the optimizer with a `learning_rate` to set it later. "
            f"Received: learning_rate={learning_rate}"
        )

    def get_config(self) -> dict[str, Any]:
        """Nothing to keep: the optimizer's own configuration has None for it."""
        return {}


def summing_equal_shares(inner: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Returns the optimizer, which knows the sum over replicas: all hand over the same share.

    TensorFlow's sum would send them, and register a gradient function per graph, which keeps the
    graph for good: with inner loops in it, megabytes of each training.
    """

    def total(pairs: Any) -> Any:
        count = replicas()
        if count == 1:
            return pairs
        return [(None if share is None else share * count, v) for share, v in pairs]

    inner._all_reduce_sum_gradients = total
    return inner


def default_inner(
    outer: Any, learning_rate: Any, arguments: Mapping[str, Any], of_kernel: str
) -> keras.optimizers.Optimizer:
    """Returns an SGD that moves to m where its learning rate is tau.

    Args:
        outer: our optimizer.
        learning_rate: number or schedule; None ties it to tau.
        arguments: further ones of `keras.optimizers.SGD`.
        of_kernel: where the kernel's arguments go, for the message.

    Raises:
        ValueError: an argument is none of these.
    """
    unknown = {name: value for name, value in arguments.items() if name not in _OF_SGD}
    if unknown:
        raise ValueError(
            "Further arguments must be those of `keras.optimizers.SGD`, such as `momentum`; its "
            f"rate is `learning_rate`. {of_kernel} Received: {_listed(unknown)}"
        )
    if learning_rate is None:
        learning_rate = TiedToTau(outer)
    elif isinstance(learning_rate, Real) and not isinstance(learning_rate, bool):
        # Keras takes nothing but floats.
        learning_rate = finite_float("learning_rate", learning_rate)
    # A name, so that it takes no number from the user's own "sgd", "sgd_1".
    return keras.optimizers.SGD(learning_rate, name=f"{outer.name}_inner", **arguments)


def given_inner(
    optimizer: Any,
    learning_rate: Any,
    arguments: Mapping[str, Any],
    ours: type[Any],
    of_kernel: str,
) -> keras.optimizers.Optimizer:
    """Returns the optimizer that the user gave, as an instance or by Keras's name.

    Args:
        optimizer: the argument.
        learning_rate: must be None, as `arguments` must be empty: both are the inner one's.
        arguments: of Keras's optimizers.
        ours: the class of this package's optimizers.
        of_kernel: where the kernel's arguments go, for the message.

    Raises:
        ValueError: further arguments were given, or `optimizer` is one that would wrap ours or
            is ours.
    """
    inner = _interpreted(optimizer, ours)
    beside = (
        dict(arguments) if learning_rate is None else {"learning_rate": learning_rate, **arguments}
    )
    if beside:
        known = inspect.signature(type(inner)).parameters
        its = {name: value for name, value in beside.items() if name in known}
        example = f": `optimizer={_public(type(inner))}({_listed(its)})`" if its else ""
        others = "" if beside.keys() <= {*its, *_OF_SGD} else f" {of_kernel}"
        raise ValueError(
            f"With `optimizer` given, its own constructor takes Keras's arguments{example}."
            f"{others} Received: optimizer={optimizer!r} and {_listed(beside)}"
        )
    return inner


def _interpreted(optimizer: Any, ours: type[Any]) -> keras.optimizers.Optimizer:
    wrong = (keras.optimizers.LossScaleOptimizer, ours)
    hint = ""
    try:
        inner = keras.optimizers.get(optimizer)
        if not isinstance(inner, wrong):
            return inner
    except ValueError:
        if isinstance(optimizer, str):
            hint = " Keras knows none of this name."
        elif _is_optimizer(optimizer) and not issubclass(optimizer, wrong):
            hint = f" Make an instance: `{_public(optimizer)}(1e-3)`."
    raise ValueError(
        "`optimizer` must be a Keras optimizer of gradients such as `keras.optimizers.Adam(1e-3)`, "
        "or its name, and neither a `LossScaleOptimizer` nor one of this package's."
        f"{hint} Received: optimizer={optimizer!r}"
    )


def _is_optimizer(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, keras.optimizers.Optimizer)


def _public(optimizer: type[keras.optimizers.Optimizer]) -> str:
    name = optimizer.__name__
    return f"keras.optimizers.{name}" if hasattr(keras.optimizers, name) else name


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
