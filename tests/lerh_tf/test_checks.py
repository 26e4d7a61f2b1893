"""Argument checks: what passes, what does not, and what the message says."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lerh_tf._checks import finite_float, integer_at_least, one_of, positive_float


@pytest.mark.parametrize("value", [1, 0.5, 1e-37, 3e38, np.float32(2.0), np.int64(3), Fraction(1)])
def test_positive_numbers_pass_as_floats(value: Any) -> None:
    checked = positive_float("tau", value)
    assert checked == value
    assert type(checked) is float


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-1, "-1"),
        (-0.0, "-0.0"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
        # Neither survives in float32, the dtype it is kept in.
        (1e-60, "1e-60"),
        (1e60, r"1e\+60"),
    ],
)
def test_numbers_that_are_not_positive_and_finite(value: float, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^`tau` must be positive and finite.*: tau={shown}$"):
        positive_float("tau", value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a", "'a'"), (True, "True"), (None, "None"), ([1.0], r"\[1.0\]"), (1j, "1j")],
)
def test_what_is_no_number(value: Any, shown: str) -> None:
    rule = "must be a positive, finite number"
    with pytest.raises(ValueError, match=f"^`tau` {rule}. Received: tau={shown}$"):
        positive_float("tau", value)
    with pytest.raises(ValueError, match=f"^`c` must be a finite number. Received: c={shown}$"):
        finite_float("c", value)


@pytest.mark.parametrize("value", [0, -2.5, 3e38])
def test_finite_numbers_pass(value: float) -> None:
    assert finite_float("c", value) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e39, 10**400])
def test_numbers_that_are_not_finite(value: float) -> None:
    shown = re.escape(str(value))
    with pytest.raises(ValueError, match=f"^`c` must be a finite number.*: c={shown}$"):
        finite_float("c", value)


def test_integers_too_large_for_a_float_are_not_finite() -> None:
    with pytest.raises(ValueError, match=r"^`tau` must be positive and finite.*: tau=10000"):
        positive_float("tau", 10**400)


@pytest.mark.parametrize(("value", "minimum"), [(1, 1), (0, 0), (5, 2), (np.int32(3), 3)])
def test_integers_pass_as_ints(value: Any, minimum: int) -> None:
    checked = integer_at_least("samples", value, minimum)
    assert checked == value
    assert type(checked) is int


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, True, "3", None, float("nan")])
def test_what_is_no_positive_integer(value: Any) -> None:
    rule = "must be a positive integer"
    with pytest.raises(ValueError, match=f"^`samples` {rule}. Received: samples={value!r}$"):
        integer_at_least("samples", value, 1)


def test_the_message_names_the_minimum() -> None:
    rule = "must be an integer of at least 2"
    with pytest.raises(ValueError, match=f"^`samples` {rule}. Received: samples=1$"):
        integer_at_least("samples", 1, 2)


@pytest.mark.parametrize("value", [2**31, 2**70, 10**400])
def test_integers_that_no_tensor_counts(value: int) -> None:
    assert integer_at_least("samples", 2**31 - 1, 1) == 2**31 - 1
    with pytest.raises(ValueError, match=rf"^`samples` must be below 2\*\*31.*: samples={value}$"):
        integer_at_least("samples", value, 1)


def test_one_of() -> None:
    assert one_of("noise", "linear", ["langevin", "linear"]) == "linear"
    with pytest.raises(ValueError, match=r'^`noise` must be one of "langevin", "linear"'):
        one_of("noise", 3, ["langevin", "linear"])
    with pytest.raises(ValueError, match=r"Received: noise=array\(\['linear', 'linear'\]"):
        one_of("noise", np.array(["linear", "linear"]), ["langevin", "linear"])
