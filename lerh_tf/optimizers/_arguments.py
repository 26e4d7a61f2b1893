"""Checks of the optimizers' arguments."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf

from lerh_tf._checks import finite_float, integer_at_least, positive_float
from lerh_tf.kernels.base import Kernel
from lerh_tf.loss.objective import Objective, Variable
from lerh_tf.optimizers._update import is_valid_tau

SEEDS = 2**32

_VARIABLE = (keras.Variable, tf.Variable)

CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")
_POSITIVE = (*CLIPPING, "loss_scale_factor")
_FINITE = ("weight_decay", "ema_momentum")
_INTEGERS = {"gradient_accumulation_steps": 2, "ema_overwrite_frequency": 1}


def chosen_kernel(argument: str, choice: Any, kernels: Mapping[str, type[Kernel]]) -> Kernel:
    """Returns a kernel given as such or by name.

    Args:
        argument: the name of the optimizer's argument, for the message.
        choice: what the caller passed.
        kernels: the kernels allowed, by name.

    Raises:
        ValueError: `choice` is no instance of one of `kernels` and none of the names.
    """
    if isinstance(choice, tuple(kernels.values())):
        return cast(Kernel, choice)
    if isinstance(choice, str) and choice in kernels:
        return kernels[choice]()
    allowed = " or ".join(f'`{kernel.__name__}` ("{name}")' for name, kernel in kernels.items())
    raise ValueError(f"`{argument}` must be {allowed}. Received: {argument}={choice!r}")


def checked_seed(seed: Any) -> int:
    """Returns `seed`, an integer in [0, 2**32); raises `ValueError` for anything else."""
    return integer_at_least("seed", seed, 0, below=SEEDS)


def checked_subspace(subspace: Any) -> str | bool:
    """Returns `subspace`, "auto" or False; raises `ValueError` for anything else."""
    if subspace is not False and not (isinstance(subspace, str) and subspace == "auto"):
        raise ValueError(f'`subspace` must be "auto" or False. Received: subspace={subspace!r}')
    return cast("str | bool", subspace)


def positive_tau(tau: Any) -> float:
    """Returns a tau that is no schedule as a float; raises `ValueError` for anything else."""
    if callable(tau):
        raise ValueError(
            "`tau` must be a positive, finite number or, given to the constructor, a "
            "`keras.optimizers.schedules.LearningRateSchedule` such as `lerh_tf.Scoping`. "
            f"Received: tau={tau!r}"
        )
    return positive_float("tau", tau)


def on_the_host(value: Any) -> Any:
    """Returns a single number that a tensor, variable or array holds, anything else as it is."""
    if isinstance(value, keras.Variable) or (
        tf.is_tensor(value) and not tf.is_symbolic_tensor(value)
    ):
        value = value.numpy()
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def as_tensor(value: Any) -> Any:
    """Returns arrays and numbers as tensors, which are not traced anew for each value."""
    return value if value is None or tf.is_tensor(value) else tf.convert_to_tensor(value)


def as_float(learning_rate: Any) -> Any:
    """Returns numbers as the float that Keras asks for, anything else as it is.

    Raises:
        ValueError: `learning_rate` is a number and not finite.
    """
    is_number = isinstance(learning_rate, Real) and not isinstance(learning_rate, bool)
    return finite_float("learning_rate", learning_rate) if is_number else learning_rate


def settable_rate(learning_rate: Any) -> Any:
    """Returns what a learning rate is to be set to: numbers checked, anything else as it is.

    Raises:
        ValueError: `learning_rate` is no finite number, no schedule and no other callable.
    """
    if callable(learning_rate) or tf.is_symbolic_tensor(learning_rate):
        return learning_rate
    return finite_float("learning_rate", on_the_host(learning_rate))


def check_keras_arguments(arguments: Mapping[str, Any]) -> None:
    """Refuses numbers with which Keras itself would make the weights NaN.

    Args:
        arguments: of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: a number is not finite or out of its range, or two ways to clip are set.
    """
    for names, check in ((_POSITIVE, positive_float), (_FINITE, finite_float)):
        for name in names:
            if arguments.get(name) is not None:
                check(name, arguments[name])
    momentum = arguments.get("ema_momentum")
    if momentum is not None and not 0.0 <= momentum <= 1.0:
        raise ValueError(
            f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={momentum}"
        )
    for name, least in _INTEGERS.items():
        if arguments.get(name) is not None:
            integer_at_least(name, arguments[name], least)
    clipping = {n: arguments[n] for n in CLIPPING if arguments.get(n) is not None}
    if len(clipping) > 1:
        raise ValueError(
            "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
            + ", ".join(f"{name}={value}" for name, value in clipping.items())
        )


def check_closure(closure: Any) -> None:
    """Raises `TypeError` where `closure` can't be called."""
    if not callable(closure):
        raise TypeError(
            "`closure` must be a function that computes the minibatch loss from the variables as "
            f"they are. Received: closure={closure!r}"
        )


def check_returned(loss: Any) -> None:
    """Raises `TypeError` where a closure returned no tensor and no `Objective`."""
    if not tf.is_tensor(loss) and not isinstance(loss, Objective):
        raise TypeError(
            "`closure` must return the scalar minibatch loss alone, a tensor, or an `Objective`. "
            f"Received: {loss!r}"
        )


def check_size(objective: Objective, variables: Sequence[Variable]) -> None:
    """Raises `ValueError` where an objective is a function of another number of weights."""
    if len(objective.is_used) != len(variables):
        raise ValueError(
            "`variables` must be those that the objective is a function of. Received: "
            f"{len(variables)} variables, where the objective has {len(objective.is_used)}"
        )


def checked_variables(variables: Any) -> list[Variable]:
    """Returns the weights to move as a list.

    Raises:
        TypeError: `variables` is no list of variables.
        ValueError: it is empty, has one variable twice, or one that is not trainable.
    """
    is_list = isinstance(variables, Iterable) and not isinstance(variables, _VARIABLE)
    found = list(variables) if is_list else []
    if not is_list or not all(isinstance(v, _VARIABLE) for v in found):
        raise TypeError(f"`variables` must be a list of variables. Received: variables={variables}")
    if not found:
        raise ValueError("`variables` must hold at least one variable. Received: variables=[]")
    if len(set(map(id, found))) < len(found):
        raise ValueError(
            f"`variables` must not hold a variable twice. Received: variables={_names(found)}"
        )
    frozen = [v for v in found if not v.trainable]
    if frozen:
        raise ValueError(
            "`variables` must be trainable: pass `model.trainable_variables`. "
            f"Received: variables={_names(frozen)}"
        )
    return found


def check_dtypes(variables: Sequence[Variable]) -> None:
    """Raises `ValueError` where a weight can't be moved by a small step."""
    wrong = [v for v in variables if not tf.as_dtype(v.dtype).is_floating]
    if wrong:
        raise ValueError(
            "`variables` must be of a floating dtype: make others with `trainable=False`, or "
            f"leave them out. Received: variables={_names(wrong)}"
        )


def _names(variables: Sequence[Variable]) -> list[str]:
    return [f"{v.name} ({tf.as_dtype(v.dtype).name})" for v in variables]


class TiedToTau:
    """A learning rate that is the optimizer's tau whenever Keras asks for it.

    It is zero where tau is not positive and finite: no part of an update is to move anything then.

    Args:
        optimizer: has an attribute `tau`.
    """

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer

    def __call__(self) -> Any:
        tau = tf.convert_to_tensor(self._optimizer.tau)
        return tf.where(is_valid_tau(tau), tau, tf.zeros_like(tau))

    def get_config(self) -> dict[str, Any]:
        """Nothing to keep: `GaussianApproximation.get_config` writes None for it."""
        return {}
