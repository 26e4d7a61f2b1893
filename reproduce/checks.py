"""What the values of a protocol must satisfy; each error names argument, rule and value."""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable
from importlib.util import find_spec
from typing import Any

LARGEST_SEED = 2**32 - 1


def must(is_kept: bool, name: str, value: object, rule: str) -> None:
    """Raises `ValueError` unless a rule is kept, which the message says."""
    if not is_kept:
        raise ValueError(f"`{name}` must be {rule}. Received: {name}={value!r}")


def positive_integer(name: str, value: object) -> None:
    """Raises `ValueError` unless `value` is an integer of at least 1."""
    must(_is_integer(value, 1), name, value, "a positive integer")


def integer_of_at_least(name: str, value: object, least: int) -> None:
    """Raises `ValueError` unless `value` is an integer of at least `least`."""
    must(_is_integer(value, least), name, value, f"an integer of at least {least}")


def positive_number(name: str, value: object) -> None:
    """Raises `ValueError` unless `value` is a finite number above 0."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    must(is_real and 0 < value < math.inf, name, value, "positive and finite")  # type: ignore[operator]


def boolean(name: str, value: object) -> None:
    """Raises `ValueError` unless `value` is True or False."""
    must(isinstance(value, bool), name, value, "True or False")


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


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raises `ValueError` unless `value` is among the `known` names."""
    names = tuple(known)
    must(value in names, name, value, f"one of {', '.join(names)}")


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


def _is_integer(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
