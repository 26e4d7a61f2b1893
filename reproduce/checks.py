"""What the values of a protocol must satisfy; each error names argument, rule and value."""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable
from importlib.util import find_spec
from typing import Any

LARGEST_SEED = 2**32 - 1


def positive_integer(name: str, value: object) -> None:
    """Raises `ValueError` unless `value` is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")


def positive_number(name: str, value: object) -> None:
    """Raises `ValueError` unless `value` is a finite number above 0."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not (real and math.isfinite(value) and value > 0):  # type: ignore[arg-type, operator]
        raise ValueError(f"`{name}` must be positive and finite. Received: {name}={value!r}")


def integer_of_at_least(name: str, value: object, least: int) -> None:
    """Raises `ValueError` unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"`{name}` must be an integer of at least {least}. Received: {name}={value!r}"
        )


def at_most(name: str, value: int, most: int) -> None:
    """Raises `ValueError` unless `value` is at most `most`."""
    if value > most:
        raise ValueError(f"`{name}` must be at most {most:,}. Received: {name}={value}")


def boolean(name: str, value: object) -> None:
    """Raises `ValueError` unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False. Received: {name}={value!r}")


_RULES: dict[Any, Callable[[str, object], None]] = {
    float: positive_number,
    int: positive_integer,
    bool: boolean,
}


def numbers(part: Any, but: Collection[str] = ()) -> None:
    """Raises `ValueError` unless a dataclass's numbers keep the rule of their type.

    A float is positive and finite, an integer positive, a boolean True or False.

    Args:
        part: The dataclass.
        but: Fields that have rules of their own, or none.
    """
    for field in dataclasses.fields(part):
        rule = _RULES.get(field.type)
        if rule is not None and field.name not in but:
            rule(field.name, getattr(part, field.name))


def robbins_monro_exponent(name: str, value: float) -> None:
    """Raises `ValueError` unless `value` is in (1/2, 1]."""
    if not 0.5 < value <= 1.0:
        raise ValueError(f"`{name}` must be in (1/2, 1]. Received: {name}={value!r}")


def decay(name: str, value: float) -> None:
    """Raises `ValueError` unless `value` is finite and above -1."""
    if not -1.0 < value < math.inf:
        raise ValueError(f"`{name}` must be finite and above -1. Received: {name}={value!r}")


def share(value: float) -> None:
    """Raises `ValueError` unless `value` is in (0, 1]."""
    if not 0.0 < value <= 1.0:
        raise ValueError(f"`share` must be in (0, 1]. Received: share={value!r}")


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raises `ValueError` unless `value` is among the `known` names."""
    names = tuple(known)
    if value not in names:
        raise ValueError(f"`{name}` must be one of {', '.join(names)}. Received: {name}={value!r}")


def distinct(name: str, values: Iterable[object]) -> None:
    """Raises `ValueError` unless there is at least one value and none occurs twice."""
    received = tuple(values)
    if not received or len(set(received)) < len(received):
        shown = " ".join(map(str, received)) or "nothing"
        raise ValueError(f"`{name}` must be one or more distinct values. Received: {shown}")


def seeds(values: Iterable[int]) -> None:
    """Raises `ValueError` unless the values are distinct integers in [0, 2**32)."""
    received = tuple(values)
    distinct("seeds", received)
    for value in received:
        if not 0 <= value <= LARGEST_SEED:
            raise ValueError(f"`seeds` must lie in [0, {LARGEST_SEED}]. Received: seeds={value}")


def scheduler(value: str | None) -> None:
    """Raises `ValueError` unless `value` is None or the address of a scheduler we can talk to."""
    if value is None:
        return
    if re.fullmatch(r"tcp://[^/\s]+:\d+", value) is None:
        raise ValueError(f"`scheduler` must be tcp://host:port. Received: scheduler={value!r}")
    if find_spec("distributed") is None:
        raise ValueError("`scheduler` needs Dask: install this package with its extra `cluster`")
