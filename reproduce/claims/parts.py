"""The parts of a rule: what was measured, what must be true of it, and how sure that is.

Every part gives two one-sided p-values, against the rule being broken and against its being kept,
and the interval that shows the same. SciPy's t distribution does the statistics.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t as student

ALPHA = 0.025
"""Level of every one-sided test, and to either side of an interval."""

_FINEST = 1e-12
"""Seeds that agree to the bit have no smaller spread than rounding."""


@dataclass(frozen=True)
class Part:
    """The mean over seeds of one number, which must lie in a range.

    Two one-sided t-tests decide. A range with two ends is an equivalence, one with a single end
    superiority or non-inferiority. One seed decides nothing.

    Args:
        name: What the number is.
        values: One per seed.
        low: The range's lower end.
        high: The range's upper end.
    """

    name: str
    values: Sequence[float]
    low: float = -math.inf
    high: float = math.inf

    @property
    def seeds(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def value(self) -> float:
        """The mean."""
        return mean(self.values)

    @property
    def rule(self) -> str:
        """What must be true, in words."""
        if math.isinf(self.high):
            return f"{self.name} above {self.low:g}"
        if math.isinf(self.low):
            return f"{self.name} below {self.high:g}"
        return f"{self.name} between {self.low:g} and {self.high:g}"

    def kept(self) -> float:
        """Returns the p-value against the mean lying outside of the range."""
        if self.seeds < 2:
            return 1.0
        return max(
            float(student.cdf(self.low, *self._law())), float(student.sf(self.high, *self._law()))
        )

    def broken(self) -> float:
        """Returns the p-value against the mean lying within the range."""
        if self.seeds < 2:
            return 1.0
        return min(
            float(student.sf(self.low, *self._law())), float(student.cdf(self.high, *self._law()))
        )

    def interval(self, among: int) -> tuple[float, float]:
        """Returns the confidence interval, Bonferroni's where it is one `among` several."""
        if self.seeds < 2:
            return -math.inf, math.inf
        low, high = student.interval(1 - 2 * ALPHA / among, *self._law())
        return float(low), float(high)

    def is_kept_by_value(self, slack: float) -> bool:
        """Whether the mean itself lies in the range, or outside by no more than rounding."""
        return self.low - slack <= self.value <= self.high + slack

    def _law(self) -> tuple[int, float, float]:
        """Degrees of freedom, location and scale of Student's distribution."""
        scale = max(stdev(self.values) * self._widening(), _FINEST)
        return self.seeds - 1, self.value, scale

    def _widening(self) -> float:
        return self.seeds**-0.5


@dataclass(frozen=True)
class Prediction(Part):
    """Whether a published number could be one more of our runs: a prediction interval.

    It can contradict, never confirm: a wide interval holds much.

    Args:
        name: What the number is.
        values: Ours, one per seed.
        published: The paper's single run's.
        rounding: How far it may be from what was measured.
    """

    published: float = math.nan
    rounding: float = 0.0

    @property
    def rule(self) -> str:
        """What must be true, in words."""
        return f"{self.name}: {self.published:g} could be one more of ours"

    def kept(self) -> float:
        """Returns 1: nothing is shown by a number that lies inside."""
        return 1.0

    def broken(self) -> float:
        """Returns the one-sided p-value of a run as far away as the published one, or further."""
        if self.seeds < 2:
            return 1.0
        away = max(abs(self.published - self.value) - self.rounding, 0.0)
        return float(student.sf(self.value + away, *self._law()))

    def interval(self, among: int) -> tuple[float, float]:
        """Returns the prediction interval, rounding added, Bonferroni's among several."""
        low, high = super().interval(among)
        return low - self.rounding, high + self.rounding

    def _widening(self) -> float:
        return (1 + 1 / self.seeds) ** 0.5


@dataclass(frozen=True)
class Fact:
    """What is computed exactly, to a stated bound; chance has no part in it.

    Args:
        name: What it is.
        is_true: Whether it is.
        measured: The number that says so, in words.
    """

    name: str
    is_true: bool
    measured: str = ""

    @property
    def rule(self) -> str:
        """What must be true, in words."""
        return self.name

    def kept(self) -> float:
        """Returns 0 if it is true, else 1."""
        return float(not self.is_true)

    def broken(self) -> float:
        """Returns 1 if it is true, else 0."""
        return float(self.is_true)


AnyPart = Part | Fact


def is_uncontradicted(parts: Sequence[AnyPart]) -> bool:
    """Whether no part is shown to be broken, by Holm's p-values among them.

    References:
        S. Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    # The least of Holm's p-values is the least p-value times how many there are.
    return len(parts) * min(part.broken() for part in parts) >= ALPHA
