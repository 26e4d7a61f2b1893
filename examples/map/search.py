"""The random search by which every method is tuned: the same draws for what methods share."""

from collections.abc import Mapping
from dataclasses import dataclass

from examples.map.randomness import generator

Settings = Mapping[str, float]
"""A method's hyper-parameters by name."""

_SEED = 0


@dataclass(frozen=True)
class LogUniform:
    """A positive number whose logarithm is uniform.

    Args:
        low: The smallest.
        high: The largest.
    """

    low: float
    high: float

    def at(self, u: float) -> float:
        """Returns the quantile of u, to four digits."""
        return float(f"{self.low * (self.high / self.low) ** u:.4g}")


@dataclass(frozen=True)
class Choice:
    """One of some numbers, each as likely.

    Args:
        values: The numbers.
    """

    values: tuple[float, ...]

    def at(self, u: float) -> float:
        """Returns the quantile of u in [0, 1)."""
        return self.values[int(u * len(self.values))]


Space = Mapping[str, LogUniform | Choice]
"""Where a method's hyper-parameters are searched, by name."""


def trials(space: Space, count: int) -> list[Settings]:
    """Returns the settings of a stratified random search.

    Of a hyper-parameter the `count` trials have one quantile each in the intervals of length
    1 / count, at random in it and in random order. Both depend on its name alone, so that two
    methods with a hyper-parameter of one name and range try the same values of it.

    Args:
        space: Where to search.
        count: Number of trials.

    References:
        McKay, Beckman and Conover (1979), A comparison of three methods for selecting values of
        input variables in the analysis of output from a computer code.
    """
    quantiles = {name: _stratified(name, count) for name in space}
    return [
        {name: values.at(quantiles[name][number]) for name, values in space.items()}
        for number in range(count)
    ]


def _stratified(name: str, count: int) -> list[float]:
    draws = generator(name, _SEED)
    places = draws.permutation(count) + draws.random(count)
    return [float(place) / count for place in places]
