"""Paired differences of scores: intervals, tests, and Holm's correction over the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr, t

from examples.map.protocol import LEVEL

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences.

    Args:
        mean: Of the differences.
        low: Lower end of the t interval at 95 %.
        high: Its upper end.
        p: Of the two-sided t test against 0.
        p_equal: The larger one of two one-sided t tests against the bound.
        pairs: How many.
    """

    mean: float
    low: float
    high: float
    p: float
    p_equal: float
    pairs: int


def difference(ours: Sequence[float], theirs: Sequence[float], bound: float) -> Difference:
    """Returns ours - theirs, pair by pair.

    Args:
        ours: Scores.
        theirs: Scores with the same seeds, in the same order, at least 2.
        bound: Means that are closer to 0 are equal for practice.

    References:
        Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach
        for assessing the equivalence of average bioavailability.
    """
    values = np.subtract(ours, theirs)
    n = len(values)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(n)
    reach = float(t.ppf(1.0 - LEVEL / 2.0, n - 1)) * error
    if error == 0.0:
        p, p_equal = float(mean == 0.0), float(abs(mean) >= bound)
    else:
        p = float(2.0 * t.sf(abs(mean) / error, n - 1))
        p_equal = float(t.sf((bound - abs(mean)) / error, n - 1))
    return Difference(mean, mean - reach, mean + reach, p, p_equal, n)


def holm(p: Mapping[str, float]) -> dict[str, bool]:
    """Returns which tests reject, all of them together wrong at most at `LEVEL`.

    References:
        Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    from statsmodels.stats.multitest import multipletests

    if not p:
        return {}
    rejected, *_ = multipletests(list(p.values()), alpha=LEVEL, method="holm")
    return {name: bool(each) for name, each in zip(p, rejected, strict=True)}


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Returns Spearman's correlation, None where there is none to be had."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if np.isfinite([a, b]).all()]
    if len(pairs) < 3 or any(len(set(values)) < 2 for values in zip(*pairs, strict=True)):
        return None
    return float(spearmanr([a for a, _ in pairs], [b for _, b in pairs]).statistic)
