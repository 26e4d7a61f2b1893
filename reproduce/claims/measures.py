"""Numbers of training curves: each takes a curve to a number, no place is taken from the data."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import StatisticsError, correlation, mean

Curve = Mapping[int, float]
"""Held-out accuracy by weight update."""

Curves = Mapping[int, Curve]
"""Curves by seed."""

Measure = Callable[[Curve], float]

END = 50
"""The end of training, and of a part of it, is its last so many updates."""

STEADY = (200, 500)
"""The updates over which stability is judged: what comes before is the rise."""


class MissingError(Exception):
    """There is no record of what a claim is about."""


def each(measure: Measure, curves: Curves) -> tuple[float, ...]:
    """Returns a measure of every curve, seed by seed."""
    return tuple(measure(curves[seed]) for seed in sorted(curves))


def difference(measure: Measure, ours: Curves, theirs: Curves) -> tuple[float, ...]:
    """Returns how much a measure of ours exceeds theirs, seed by seed: both start alike.

    Raises:
        MissingError: No seed is in both.
    """
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        raise MissingError
    return tuple(measure(ours[seed]) - measure(theirs[seed]) for seed in seeds)


def over(first: int, last: int) -> Measure:
    """Returns the measure of the mean accuracy from one update to another."""
    return lambda curve: mean(_part(curve, first, last).values())


def at(update: int) -> Measure:
    """Returns the measure of the accuracy at an update."""
    return lambda curve: curve[update]


def final(curve: Curve) -> float:
    """Returns the mean accuracy over the last updates."""
    return ending(max(curve))(curve)


def ending(update: int) -> Measure:
    """Returns the measure of the mean accuracy over the updates that end at one."""
    return over(update - END + 1, update)


def gain(first: int, last: int) -> Measure:
    """Returns the measure of the rise from one update to another."""
    return lambda curve: curve[last] - curve[first]


def roughness(first: int, last: int) -> Measure:
    """Returns the measure of the root mean square of second differences: 0 on straight lines."""

    def measure(curve: Curve) -> float:
        steps = [after - before for before, after in pairwise(_ordered(curve, first, last))]
        return mean((after - before) ** 2 for before, after in pairwise(steps)) ** 0.5

    return measure


def falls(first: int, last: int) -> Measure:
    """Returns the measure of the mean fall between measurements, rises counted as 0."""
    return lambda curve: mean(
        max(0.0, before - after) for before, after in pairwise(_ordered(curve, first, last))
    )


def linearity(curve: Curve) -> float:
    """Returns R^2 of a straight line through the curve; of a constant one, 0."""
    try:
        return correlation(list(map(float, sorted(curve))), _ordered(curve, 0, max(curve))) ** 2
    except StatisticsError:
        return 0.0


def _part(curve: Curve, first: int, last: int) -> Curve:
    return {update: value for update, value in curve.items() if first <= update <= last}


def _ordered(curve: Curve, first: int, last: int) -> list[float]:
    part = _part(curve, first, last)
    return [part[update] for update in sorted(part)]
