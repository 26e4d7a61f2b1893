"""How weight updates are timed: by Table 2, the peers' races and the estimators' costs alike.

Systems take turns, each makes some weight updates in a row, with nothing else running. The first
of a turn stands apart: it compiles, or finds the caches as another system left them. The median of
the others is the turn's. A system's number is the mean of its turns, in a race their median.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Turn:
    """Weight updates of one system, made in a row.

    Args:
        seconds: Of each, in order.
    """

    seconds: Sequence[float]

    @property
    def first(self) -> float:
        """Seconds of the first."""
        return self.seconds[0]

    @property
    def median(self) -> float:
        """Seconds of an update after the first, of which there is at least one."""
        return median(self.seconds[1:])
