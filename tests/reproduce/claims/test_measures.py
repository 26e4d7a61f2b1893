"""Measures of curves on curves small enough to count, and the intervals that decide."""

import pytest

from reproduce.claims.measures import (
    Kept,
    Number,
    drop,
    every,
    largest_fall,
    largest_gap,
    over_seeds,
    share_of_rises,
    since,
)

CURVE = {0: 0.1, 10: 0.5, 20: 0.4, 30: 0.3, 40: 0.6, 50: 0.55}


def test_falls_are_counted_from_the_best_so_far_or_from_the_one_before() -> None:
    assert largest_fall(CURVE) == pytest.approx(0.2)
    assert drop(CURVE) == pytest.approx((0.1 + 0.1 + 0.05) / 5)
    assert share_of_rises(CURVE) == pytest.approx(2 / 5)
    assert since(30, largest_fall)(CURVE) == pytest.approx(0.05)


def test_largest_gap_is_where_the_means_are_furthest_apart() -> None:
    ours = {0: {0: 0.1, 10: 0.5}, 1: {0: 0.2, 10: 0.3}}
    theirs = {0: {0: 0.1, 10: 0.7}, 1: {0: 0.1, 10: 0.7}}
    gap = largest_gap(ours, theirs)
    assert gap.value == pytest.approx(-0.3)
    assert gap.error == pytest.approx(0.1)


def test_interval_is_students() -> None:
    # t with 4 degrees of freedom reaches 2.776 at 97.5 %.
    number = Number(1.0, 0.1, 5)
    assert number.above(0.72) is True
    assert number.above(0.73) is None
    assert number.above(1.28) is False
    assert number.below(1.28) is True
    assert number.below(1.27) is None
    assert number.below(0.72) is False
    assert number.at_most(1.28) is True
    assert number.within(1.28) is True
    assert number.within(1.27) is None
    assert number.within(0.72) is False


def test_one_seed_is_decided_by_its_value() -> None:
    number = over_seeds([0.5])
    assert (number.above(0.4), number.below(0.6), number.at_most(0.5)) == (True, True, True)
    assert (number.above(0.5), number.below(0.5), number.at_most(0.4)) == (False, False, False)
    assert f"{number}" == "0.500"


def test_seeds_that_agree_to_the_bit_are_no_spread() -> None:
    assert over_seeds([0.5, 0.5]).above(0.49) is True


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [((True, True), True), ((True, None), None), ((None, False), False), ((), True)],
)
def test_broken_part_decides(parts: tuple[Kept, ...], verdict: Kept) -> None:
    assert every(*parts) is verdict
