"""A statement of the paper's theory that one number decides."""

from collections.abc import Sequence
from dataclasses import dataclass

HOLDS, FAILS = "holds", "FAILS"
AS_PRINTED = "not as printed"
MISSING = "missing"

ROUNDING = 1e-10


@dataclass(frozen=True)
class Statement:
    """A statement that one number decides.

    Args:
        part: The runs that measure it.
        statement: In words.
        place: Where in the paper.
        measure: The measure's name in those runs.
        at_most: The largest of the measured numbers decides, which must be at most this.
        above: Instead the smallest decides, which must be above this.
        otherwise: The verdict where the bound is not kept.
    """

    part: str
    statement: str
    place: str
    measure: str
    at_most: float = ROUNDING
    above: float | None = None
    otherwise: str = FAILS

    def number(self, values: Sequence[float]) -> float:
        """Returns the number that decides."""
        return max(values) if self.above is None else min(values)

    def judge(self, values: Sequence[float]) -> str:
        """Returns the verdict on the measured numbers; none means missing runs."""
        if not values:
            return MISSING
        number = self.number(values)
        kept = number <= self.at_most if self.above is None else number > self.above
        return HOLDS if kept else self.otherwise

    @property
    def rule(self) -> str:
        """The bound in signs."""
        return f"≤ {self.at_most:.3g}" if self.above is None else f"> {self.above:.3g}"
