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
_OF_KERNEL = (
    "A sampler's or solver's arguments, such as `samples`, are its own constructor's: "
    '`sampler=ImportanceSampling(10, estimator="gradients")`.'
)


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
    outer: Any, learning_rate: Any, arguments: Mapping[str, Any]
) -> keras.optimizers.Optimizer:
    """Returns an SGD that moves to m where its learning rate is tau.

    Args:
        outer: our optimizer.
        learning_rate: number or schedule; None ties it to tau.
        arguments: further ones of `keras.optimizers.SGD`.

    Raises:
        ValueError: an argument is none of these.
    """
    unknown = {name: value for name, value in arguments.items() if name not in _OF_SGD}
    if unknown:
        raise ValueError(
            "Further arguments must be those of `keras.optimizers.SGD`, such as `momentum`; its "
            f"rate is `learning_rate`. {_OF_KERNEL} Received: {_listed(unknown)}"
        )
    if learning_rate is None:
        learning_rate = TiedToTau(outer)
    elif isinstance(learning_rate, Real) and not isinstance(learning_rate, bool):
        # Keras takes nothing but floats.
        learning_rate = finite_float("learning_rate", learning_rate)
    # A name, so that it takes no number from the user's own "sgd", "sgd_1".
    return keras.optimizers.SGD(learning_rate, name=f"{outer.name}_inner", **arguments)


def given_inner(
    optimizer: Any, learning_rate: Any, arguments: Mapping[str, Any], ours: type[Any]
) -> keras.optimizers.Optimizer:
    """Returns the optimizer that the user gave, as an instance or by Keras's name.

    Args:
        optimizer: the argument.
        learning_rate: must be None, as `arguments` must be empty: both are the inner one's.
        arguments: of Keras's optimizers.
        ours: the class of this package's optimizers.

    Raises:
        ValueError: further arguments were given, or `optimizer` is one that would wrap ours or
            is ours.
    """
    beside = (
        dict(arguments) if learning_rate is None else {"learning_rate": learning_rate, **arguments}
    )
    if beside:
        raise ValueError(
            f"With `optimizer` given, its own constructor takes Keras's arguments. {_OF_KERNEL} "
            f"Received: optimizer={optimizer!r} and {_listed(beside)}"
        )
    try:
        inner = keras.optimizers.get(optimizer)
    except ValueError:
        inner = None
    if inner is None or isinstance(inner, (keras.optimizers.LossScaleOptimizer, ours)):
        raise ValueError(
            "`optimizer` must be a Keras optimizer of gradients or its name, neither a "
            f"`LossScaleOptimizer` nor one of this package's. Received: optimizer={optimizer!r}"
        )
    return inner


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
