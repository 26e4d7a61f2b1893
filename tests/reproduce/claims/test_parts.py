"""The statistics against SciPy's own tests, a published example and simulated runs."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from reproduce.claims.parts import ALPHA, Fact, Part, Prediction, is_uncontradicted

VALUES = (0.31, 0.28, 0.35, 0.33, 0.30)


def test_p_values_are_those_of_scipys_one_sided_tests() -> None:
    greater = ttest_1samp(VALUES, 0.29, alternative="greater").pvalue
    less = ttest_1samp(VALUES, 0.34, alternative="less").pvalue
    assert Part("", VALUES, low=0.29).kept() == pytest.approx(greater)
    assert Part("", VALUES, low=0.29).broken() == pytest.approx(1 - greater)
    assert Part("", VALUES, high=0.34).kept() == pytest.approx(less)
    # Two one-sided tests: both must reject for equivalence, one suffices against it.
    both = Part("", VALUES, 0.29, 0.34)
    assert both.kept() == pytest.approx(max(greater, less))
    assert both.broken() == pytest.approx(min(1 - greater, 1 - less))


def test_interval_and_tests_agree_and_bonferroni_widens() -> None:
    expected = ttest_1samp(VALUES, 0.0).confidence_interval(1 - 2 * ALPHA)
    low, high = Part("", VALUES).interval(1)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert Part("", VALUES, low=low).kept() == pytest.approx(ALPHA)
    assert Part("", VALUES, high=low).broken() == pytest.approx(ALPHA)
    fifth = ttest_1samp(VALUES, 0.0).confidence_interval(1 - 2 * ALPHA / 5)
    assert Part("", VALUES).interval(5) == pytest.approx((fifth.low, fifth.high))


def test_one_seed_decides_nothing() -> None:
    for part in (Part("", (0.9,), low=0.1), Prediction("", (0.9,), published=0.1)):
        assert (part.kept(), part.broken(), part.interval(1)) == (1.0, 1.0, (-math.inf, math.inf))


def test_seeds_that_agree_to_the_bit_are_decided() -> None:
    assert Part("", (0.5, 0.5), low=0.49).kept() < 1e-9
    assert Part("", (0.5, 0.5), low=0.51).broken() < 1e-9
    assert Part("", (0.5, 0.5), low=0.5).kept() == pytest.approx(0.5)


def test_prediction_by_hand() -> None:
    # 20 runs of mean 0.5: s^2 = 20 * 0.01 / 19; t with 19 degrees of freedom is 2.861 at 99.5 %.
    values = (0.4, 0.6) * 10
    reach = 2.860935 * (0.2 / 19) ** 0.5 * (1 + 1 / 20) ** 0.5
    part = Prediction("", values, published=0.9, rounding=0.005)
    assert part.interval(5) == pytest.approx((0.5 - reach - 0.005, 0.5 + reach + 0.005), rel=1e-6)
    at_the_edge = Prediction("", values, published=0.5 + reach + 0.005, rounding=0.005)
    assert at_the_edge.broken() == pytest.approx(ALPHA / 5, rel=1e-4)
    assert part.broken() < ALPHA / 5
    assert Prediction("", values, published=0.504, rounding=0.005).broken() == pytest.approx(0.5)
    assert part.kept() == 1.0


def test_prediction_covers_one_more_run_as_often_as_it_says() -> None:
    # A confidence interval of the mean, the wrong one here, would cover 34 of 100 at 20 seeds.
    runs = np.random.default_rng(0).normal(size=(1000, 21))
    parts = [Prediction("", tuple(row[:20]), published=float(row[20])) for row in runs]
    missed = np.mean([part.broken() < ALPHA for part in parts])
    assert abs(missed - 2 * ALPHA) < 4 * (2 * ALPHA / 1000) ** 0.5


def test_fact_is_certain() -> None:
    assert (Fact("", True).kept(), Fact("", True).broken()) == (0.0, 1.0)
    assert (Fact("", False).kept(), Fact("", False).broken()) == (1.0, 0.0)


def test_any_part_is_broken_where_holms_procedure_rejects_one() -> None:
    # No more: each call of `multipletests` collects the garbage of the whole process.
    values = np.random.default_rng(0).normal(0.5, 0.4, size=(40, 3, 6))
    verdicts = []
    for parts in ([Part("", one, low=0.9) for one in three] for three in values):
        rejected, *_ = multipletests([part.broken() for part in parts], ALPHA, method="holm")
        verdicts.append(is_uncontradicted(parts))
        assert verdicts[-1] != rejected.any()
    assert 4 < sum(verdicts) < 36


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Part("gap", (0.0,), low=0.0), "gap above 0"),
        (Part("gap", (0.0,), high=-0.01), "gap below -0.01"),
        (Part("gap", (0.0,), -0.03, 0.03), "gap between -0.03 and 0.03"),
        (Prediction("row", (0.0,), published=0.75), "row: 0.75 could be one more of ours"),
    ],
)
def test_rule_in_words(part: Part, words: str) -> None:
    assert part.rule == words
