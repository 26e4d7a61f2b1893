"""A statement of the paper's theory that one number decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

HOLDS, FAILS = "holds", "FAILS"
AS_PRINTED = "not as printed"
MISSING = "missing"

ROUNDING = 1e-10


@dataclass(frozen=True)
class Statement:
    """A statement that one number decides.

    Args:
        statement: In words.
        place: Where in the paper.
        part: The runs that measure it.
        measure: The measure's name there.
        worst: Which of the measured numbers decides: the largest, which must be at most `bound`,
            or the smallest, which must be above it.
        bound: The bound.
        otherwise: The verdict where the bound is not kept.
    """

    statement: str
    place: str
    part: str
    measure: str
    worst: Literal["largest", "smallest"]
    bound: float = ROUNDING
    otherwise: str = FAILS

    def number(self, values: Sequence[float]) -> float:
        """Returns the number that decides."""
        return max(values) if self.worst == "largest" else min(values)

    def judge(self, values: Sequence[float]) -> str:
        """Returns the verdict on the measured numbers; none means missing runs."""
        if not values:
            return MISSING
        number = self.number(values)
        kept = number <= self.bound if self.worst == "largest" else number > self.bound
        return HOLDS if kept else self.otherwise

    @property
    def rule(self) -> str:
        """The bound in signs."""
        return f"{'≤' if self.worst == 'largest' else '>'} {self.bound:.3g}"
