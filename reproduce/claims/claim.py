"""A claim, the rule that decides it, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import Kept, MissingError

HOLDS, FAILS, OPEN, MISSING = "holds", "does not hold", "undecided", "not measured yet"
VERDICTS = (HOLDS, FAILS, OPEN, MISSING)


class Judgement(NamedTuple):
    """What was measured, in words, and whether the rule is kept."""

    measured: str
    kept: Kept


@dataclass(frozen=True)
class Claim:
    """A statement of the text, or a part of one.

    Args:
        number: As the project counts the claims.
        statement: In words of our own.
        place: Where in the paper.
        rule: What decides, in words, thresholds included.
        judge: The rule.
        reading: What explains a disagreement.
    """

    number: int
    statement: str
    place: str
    rule: str
    judge: Callable[[Evidence], Judgement]
    reading: str = ""


class Finding(NamedTuple):
    """A claim and its verdict.

    Args:
        claim: The claim.
        measured: What was measured, in words.
        verdict: One of the four above.
        records: The name of where the records lie that decided.
    """

    claim: Claim
    measured: str
    verdict: str
    records: str = "-"


def decide(claim: Claim, evidence: Evidence) -> Finding:
    """Applies a claim's rule; a record that is missing leaves it open."""
    try:
        measured, kept = claim.judge(evidence)
    except MissingError:
        return Finding(claim, "-", MISSING)
    return Finding(claim, measured, {True: HOLDS, False: FAILS, None: OPEN}[kept])
