"""Argument checks whose messages name the argument, the rule and what was received."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

SEEDS = 2**32


def positive_float(name: str, value: Any) -> float:
    """Returns `value` as a float that is positive and finite, also in float32.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.

    Raises:
        ValueError: `value` is no number, not finite, or not positive in float32.
    """
    number = _real(value)
    if number is None:
        raise ValueError(f"`{name}` must be a positive, finite number. Received: {name}={value!r}")
    single = _in_float32(number)
    if not (math.isfinite(single) and single > 0.0):
        raise ValueError(f"`{name}` must be positive and finite. Received: {name}={value}")
    return number


def finite_float(name: str, value: Any) -> float:
    """Returns `value` as a float that is finite, also in float32.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.

    Raises:
        ValueError: `value` is no number or not finite in float32.
    """
    number = _real(value)
    if number is None or not math.isfinite(_in_float32(number)):
        raise ValueError(f"`{name}` must be a finite number. Received: {name}={value!r}")
    return number


def integer_at_least(name: str, value: Any, minimum: int, below: int = 2**31) -> int:
    """Returns `value` as an int that is at least `minimum`.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.
        minimum: the smallest value allowed.
        below: the smallest value that is too large, a power of 2.

    Raises:
        ValueError: `value` is no integer, is below `minimum`, or is not below `below`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        rule = "a positive integer" if minimum == 1 else f"an integer of at least {minimum}"
        raise ValueError(f"`{name}` must be {rule}. Received: {name}={value!r}")
    number = int(value)
    if number >= below:
        power = below.bit_length() - 1
        raise ValueError(f"`{name}` must be below 2**{power}. Received: {name}={value}")
    return number


def checked_seed(seed: Any) -> int:
    """Returns `seed`, an integer in [0, SEEDS); raises a ValueError for anything else."""
    return integer_at_least("seed", seed, 0, below=SEEDS)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Returns `value`, one of `choices`.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.
        choices: what is allowed.

    Raises:
        ValueError: `value` is something else.
    """
    if not isinstance(value, str) or value not in choices:
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


def auto_or_bool(name: str, value: Any) -> str | bool:
    """Returns `value`, "auto" or a bool.

    Args:
        name: the argument's name, for the message.
        value: what the caller passed.

    Raises:
        ValueError: `value` is something else.
    """
    if isinstance(value, bool) or (isinstance(value, str) and value == "auto"):
        return value
    raise ValueError(f'`{name}` must be "auto", True or False. Received: {name}={value!r}')


def _real(value: Any) -> float | None:
    """Returns a real number as a float, infinite where it is too large; None for all else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _in_float32(number: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(number))
