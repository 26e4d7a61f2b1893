"""Numbers that a claim about training curves rests on; each is a mean over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import StatisticsError, correlation, mean, stdev

from scipy.special import stdtrit

Curve = Mapping[int, float]
"""Held-out accuracy by weight update."""

Curves = Mapping[int, Curve]
"""Curves by seed."""

Kept = bool | None
"""Whether a rule is kept; None: the seeds are too few or too far apart to say."""

LAST = 50
"""The end of training is its last so many updates."""

CONFIDENCE = 0.95
"""Of the intervals that decide."""


class MissingError(Exception):
    """There is no record of what a claim is about."""


@dataclass(frozen=True)
class Number:
    """A mean over seeds.

    Args:
        value: The mean.
        error: Its standard error; None of one seed.
        seeds: How many.
    """

    value: float
    error: float | None
    seeds: int

    def above(self, bound: float) -> Kept:
        """Whether the number lies above a bound, by its whole interval."""
        low, high = self._interval()
        return _decided(low > bound, high <= bound)

    def below(self, bound: float) -> Kept:
        """Whether the number lies below a bound, by its whole interval."""
        low, high = self._interval()
        return _decided(high < bound, low >= bound)

    def at_most(self, bound: float) -> Kept:
        """Whether the number is at most a bound, by its whole interval."""
        low, high = self._interval()
        return _decided(high <= bound, low > bound)

    def within(self, bound: float) -> Kept:
        """Whether the number is at most a bound away from 0, by its whole interval."""
        low, high = self._interval()
        return _decided(-bound <= low and high <= bound, low > bound or high < -bound)

    def _interval(self) -> tuple[float, float]:
        # Student's, as the spread is estimated from the same few seeds; one seed has none.
        if not self.error:
            return self.value, self.value
        reach = float(stdtrit(self.seeds - 1, (1 + CONFIDENCE) / 2)) * self.error
        return self.value - reach, self.value + reach

    def __format__(self, form: str) -> str:
        form = form or ".3f"
        spread = "" if self.error is None else f" ± {self.error:{form}}"
        return f"{self.value:{form}}{spread}"


def _decided(kept: bool, broken: bool) -> Kept:
    return True if kept else False if broken else None


def every(*parts: Kept) -> Kept:
    """Whether all parts of a rule are kept; a broken one decides, whatever is open."""
    return _decided(all(part is True for part in parts), any(part is False for part in parts))


def over_seeds(values: Sequence[float]) -> Number:
    """Returns the mean of one value per seed."""
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return Number(mean(values), error, len(values))


def each(measure: Callable[[Curve], float], curves: Curves) -> Number:
    """Returns a measure's mean over the curves."""
    return over_seeds([measure(curve) for curve in curves.values()])


def difference(measure: Callable[[Curve], float], ours: Curves, theirs: Curves) -> Number:
    """Returns how much a measure of ours exceeds theirs, seed by seed: both start alike.

    Raises:
        MissingError: No seed is in both.
    """
    ours, theirs = shared([ours, theirs])
    return over_seeds([measure(ours[seed]) - measure(theirs[seed]) for seed in ours])


def shared(runs: Sequence[Curves]) -> list[Curves]:
    """Returns the curves of those seeds that all have: other seeds start and see otherwise.

    Raises:
        MissingError: There is none.
    """
    seeds = [seed for seed in runs[0] if all(seed in one for one in runs)]
    if not seeds:
        raise MissingError
    return [{seed: one[seed] for seed in seeds} for one in runs]


def final(curve: Curve) -> float:
    """Returns the mean accuracy over the last `LAST` updates."""
    end = max(curve)
    return mean(accuracy for update, accuracy in curve.items() if update > end - LAST)


def within(first: int, last: int) -> Callable[[Curve], float]:
    """Returns the measure of the mean accuracy from one update to another."""
    return lambda curve: mean(a for update, a in curve.items() if first <= update <= last)


def at(update: int) -> Callable[[Curve], float]:
    """Returns the measure of the accuracy at an update."""
    return lambda curve: curve[update]


def drop(curve: Curve) -> float:
    """Returns the mean fall of accuracy from one measurement to the next, rises counted as 0."""
    return mean(max(0.0, before - after) for before, after in pairwise(_ordered(curve)))


def since(first: int, measure: Callable[[Curve], float]) -> Callable[[Curve], float]:
    """Returns a measure of the curve from an update on."""
    return lambda curve: measure({update: a for update, a in curve.items() if update >= first})


def largest_fall(curve: Curve) -> float:
    """Returns how far accuracy fell below its best so far, at most."""
    best = accumulate(_ordered(curve), max)
    return max(high - now for high, now in zip(best, _ordered(curve), strict=True))


def share_of_rises(curve: Curve) -> float:
    """Returns the share of measurements at which accuracy had not fallen since the one before."""
    return mean(float(after >= before) for before, after in pairwise(_ordered(curve)))


def linearity(curve: Curve) -> float:
    """Returns R^2 of a straight line through the curve; of a constant one, 0."""
    try:
        return correlation(list(map(float, sorted(curve))), _ordered(curve)) ** 2
    except StatisticsError:
        return 0.0


def largest_gap(ours: Curves, theirs: Curves) -> Number:
    """Returns how much ours exceeds theirs at the update where their means are furthest apart.

    Raises:
        MissingError: No seed is in both.
    """
    updates = sorted(next(iter(ours.values())))
    gaps = [difference(at(update), ours, theirs) for update in updates]
    return max(gaps, key=lambda gap: abs(gap.value))


def _ordered(curve: Curve) -> list[float]:
    return [curve[update] for update in sorted(curve)]
