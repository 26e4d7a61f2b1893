"""Intervals and tests against SciPy and by hand."""

import numpy as np
import pytest
from scipy import stats

from examples.map.statistics import difference, holm, rank_correlation

OURS = [0.91, 0.93, 0.92, 0.95]
THEIRS = [0.90, 0.93, 0.90, 0.91]


def test_the_interval_and_the_test_are_the_paired_t_tests() -> None:
    found, expected = difference(OURS, THEIRS, 0.01), stats.ttest_rel(OURS, THEIRS)
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p == pytest.approx(expected.pvalue)
    assert found.mean == pytest.approx(0.0175)


@pytest.mark.parametrize("bound", [0.01, 0.03])
def test_equality_is_by_two_one_sided_tests(bound: float) -> None:
    values = np.subtract(OURS, THEIRS)
    below = stats.ttest_1samp(values, bound, alternative="less").pvalue
    above = stats.ttest_1samp(values, -bound, alternative="greater").pvalue
    assert difference(OURS, THEIRS, bound).p_equal == pytest.approx(max(below, above))


def test_without_spread_the_mean_decides() -> None:
    same, apart = difference([1.0, 1.0], [1.0, 1.0], 0.1), difference([1.0, 1.0], [0.0, 0.0], 0.1)
    assert (same.p, same.p_equal, apart.p, apart.p_equal) == (1.0, 0.0, 0.0, 1.0)


def test_holm_by_hand() -> None:
    # 0.012 <= 0.05 / 4, 0.016 <= 0.05 / 3, 0.03 > 0.05 / 2: the last one is not looked at.
    assert holm({"a": 0.03, "b": 0.012, "c": 0.04, "d": 0.016}) == {
        "a": False,
        "b": True,
        "c": False,
        "d": True,
    }
    assert holm({}) == {}


def test_rank_correlation() -> None:
    found = rank_correlation([1.0, 2.0, 3.0, np.nan], [2.0, 4.0, 5.0, 0.0])
    assert found == pytest.approx(1.0)
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]) is None
