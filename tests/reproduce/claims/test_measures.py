"""Measures of curves on curves small enough to count."""

import pytest

from reproduce.claims.measures import (
    MissingError,
    at,
    difference,
    each,
    ending,
    falls,
    final,
    gain,
    linearity,
    over,
    roughness,
)

CURVE = {0: 0.1, 10: 0.5, 20: 0.4, 30: 0.3, 40: 0.6, 50: 0.55}


def test_measures_by_hand() -> None:
    assert at(20)(CURVE) == 0.4
    assert over(10, 30)(CURVE) == pytest.approx(0.4)
    assert gain(10, 40)(CURVE) == pytest.approx(0.1)
    assert final(CURVE) == pytest.approx((0.5 + 0.4 + 0.3 + 0.6 + 0.55) / 5)
    assert ending(40)({0: 0.9, **CURVE, -10: 0.9}) == pytest.approx(
        (0.1 + 0.5 + 0.4 + 0.3 + 0.6) / 5
    )
    assert falls(0, 50)(CURVE) == pytest.approx((0.1 + 0.1 + 0.05) / 5)
    assert falls(30, 50)(CURVE) == pytest.approx(0.05 / 2)
    # Steps 0.4 -0.1 -0.1 0.3 -0.05, their differences -0.5 0 0.4 -0.35.
    squares = (0.25 + 0.0 + 0.16 + 0.1225) / 4
    assert roughness(0, 50)(CURVE) == pytest.approx(squares**0.5)


def test_straight_line_is_not_rough_and_wholly_linear() -> None:
    line = {update: 0.1 + 0.01 * update for update in range(0, 60, 10)}
    assert roughness(0, 50)(line) == pytest.approx(0.0, abs=1e-15)
    assert linearity(line) == pytest.approx(1.0)
    assert linearity(CURVE) < 0.9
    assert linearity(dict.fromkeys(CURVE, 0.3)) == 0.0


def test_methods_are_compared_seed_by_seed_on_the_seeds_that_both_have() -> None:
    few, many = {0: {0: 0.2}, 2: {0: 0.1}}, {2: {0: 0.9}, 1: {0: 0.5}, 0: {0: 0.3}}
    assert difference(at(0), many, few) == pytest.approx((0.1, 0.8))
    assert each(at(0), many) == (0.3, 0.5, 0.9)
    with pytest.raises(MissingError):
        difference(at(0), few, {1: {0: 0.9}})
