"""Numbers that a claim about training curves rests on; each is a mean over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import StatisticsError, correlation, mean, stdev

Curve = Mapping[int, float]
"""Held-out accuracy by weight update."""

Curves = Mapping[int, Curve]
"""Curves by seed."""

LAST = 50
"""The end of training is its last so many updates."""


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

    def __format__(self, form: str) -> str:
        form = form or ".3f"
        spread = "" if self.error is None else f" ± {self.error:{form}}"
        return f"{self.value:{form}}{spread}"


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


def drop_after(first: int) -> Callable[[Curve], float]:
    """Returns the measure `drop` of the curve from an update on."""
    return lambda curve: drop({update: a for update, a in curve.items() if update >= first})


def share_of_rises(curve: Curve) -> float:
    """Returns the share of measurements at which accuracy had not fallen since the one before."""
    return mean(float(after >= before) for before, after in pairwise(_ordered(curve)))


def linearity(curve: Curve) -> float:
    """Returns R^2 of a straight line through the curve; of a constant one, 0."""
    try:
        return correlation(list(map(float, sorted(curve))), _ordered(curve)) ** 2
    except StatisticsError:
        return 0.0


def largest_gap(ours: Curves, theirs: Curves) -> float:
    """Returns the largest difference of the mean curves, at any update that both have.

    Raises:
        MissingError: No seed is in both.
    """
    first, second = map(_mean_curve, shared([ours, theirs]))
    return max(abs(first[update] - second[update]) for update in first.keys() & second.keys())


def _ordered(curve: Curve) -> list[float]:
    return [curve[update] for update in sorted(curve)]


def _mean_curve(curves: Curves) -> dict[int, float]:
    updates = set.intersection(*(set(curve) for curve in curves.values()))
    return {update: mean(curve[update] for curve in curves.values()) for update in updates}
