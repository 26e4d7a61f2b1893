"""Argument checks whose messages name the argument, the rule and what was received."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def positive_float(name: str, value: Any) -> float:
    """Returns `value` as a float that is positive and finite, also in float32.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.

    Raises:
        ValueError: `value` is no number, not finite, or not positive in float32.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"`{name}` must be a positive, finite number. Received: {name}={value!r}")
    with np.errstate(over="ignore", under="ignore"):
        single = float(np.float32(float(value)))
    if not (math.isfinite(single) and single > 0.0):
        raise ValueError(f"`{name}` must be positive and finite. Received: {name}={value}")
    return float(value)


def finite_float(name: str, value: Any) -> float:
    """Returns `value` as a float that is finite.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.

    Raises:
        ValueError: `value` is no number or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number. Received: {name}={value!r}")
    return float(value)


def integer_at_least(name: str, value: Any, minimum: int) -> int:
    """Returns `value` as an int that is at least `minimum`.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.
        minimum: the smallest value allowed.

    Raises:
        ValueError: `value` is no integer or is below `minimum`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        rule = "a positive integer" if minimum == 1 else f"an integer of at least {minimum}"
        raise ValueError(f"`{name}` must be {rule}. Received: {name}={value!r}")
    return int(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Returns `value`, one of `choices`.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.
        choices: what is allowed.

    Raises:
        ValueError: `value` is something else.
    """
    if value not in choices:
        allowed = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"`{name}` must be one of {allowed}. Received: {name}={value!r}")
    return str(value)


def boolean(name: str, value: Any) -> bool:
    """Returns `value`, a bool.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.

    Raises:
        ValueError: `value` is something else, however truthy.
    """
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False. Received: {name}={value!r}")
    return value
