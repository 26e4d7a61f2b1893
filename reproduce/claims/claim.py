"""A claim, the rule that decides it with its gate and controls, and what comes of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reproduce.claims.evidence import EARLIER, FRESH, Blank, Control, Evidence
from reproduce.claims.measures import Measure, MissingError, difference, each
from reproduce.claims.parts import ALPHA, AnyPart, Fact, Part, Prediction, is_uncontradicted
from reproduce.protocols import Case

HOLDS, UNCONTRADICTED, FAILS = "holds", "not contradicted", "does not hold"
OPEN, UNINFORMATIVE, MISSING = "undecided", "uninformative", "not measured yet"
VERDICTS = (HOLDS, UNCONTRADICTED, FAILS, OPEN, UNINFORMATIVE, MISSING)

BEYOND = "beyond the paper: "
"""So begins a statement that is not the paper's."""

Rule = Callable[[Evidence], Sequence[AnyPart]]


@dataclass(frozen=True)
class Contrast:
    """A number of a case's curves, or how much it exceeds another case's, seed by seed.

    Args:
        name: What the number is.
        measure: Takes a curve to it.
        ours: The case that it is of.
        theirs: The case that it is held against; `None`: it stands for itself.
        low: The lower end of the range that its mean must lie in.
        high: The upper end.
        published: The paper's number, where it has one: could it be one more of ours? That decides
            then, the range does not.
        rounding: How far that may be from what was measured.
    """

    name: str
    measure: Measure
    ours: Case
    theirs: Case | None = None
    low: float = -math.inf
    high: float = math.inf
    published: float | None = None
    rounding: float = 0.0

    def on(self, evidence: Evidence) -> Part:
        """Returns what was measured."""
        values, published = self._values(evidence), self.published
        if published is not None:
            return Prediction(self.name, values, published=published, rounding=self.rounding)
        return Part(self.name, values, self.low, self.high)

    def _values(self, evidence: Evidence) -> tuple[float, ...]:
        if self.theirs is None:
            return each(self.measure, evidence.curves(self.ours))
        ours, theirs = evidence.curves(self.ours), evidence.curves(self.theirs)
        return difference(self.measure, ours, theirs)


def all_of(parts: Sequence[Contrast]) -> Rule:
    """Returns the rule that has these parts."""
    return lambda evidence: [part.on(evidence) for part in parts]


_NOTHING = all_of(())
"""The gate of what is exact."""


@dataclass(frozen=True)
class Claim:
    """A statement of the text, or a part of one.

    It holds where the gate and every part are shown, each by a test of its own. It does not where
    a part is shown to be broken, by Holm's p-values among the parts. Where the gate is not shown,
    or a control comes to the same verdict as the claim would need, nothing is learnt.

    Args:
        key: Its name in tables and links.
        topic: As the project counts the claims.
        statement: In words of our own.
        place: Where in the paper.
        rule: What must be true, in parts.
        gate: What must be true for the rule to mean anything.
        own: The cases that the statement is about.
        controls: What stands in for the records in turn, by name: none may keep gate and rule.
        later_controls: Those thought of after the records: they are told, and decide nothing.
        published: The paper's own numbers, where it has them; the rule is run on them first.
        slack: How far rounding may carry a number made of those.
        seeds: How many fresh seeds, or repetitions, decide; 0 where chance has no part.
        bears: The readings that could explain a disagreement, by their names in `make readings`.
        is_contradictable_only: Whether records could refute the statement and never show it.
    """

    key: str
    topic: int
    statement: str
    place: str
    rule: Rule
    gate: Rule = _NOTHING
    own: Sequence[Case] = ()
    controls: Mapping[str, Control] = field(default_factory=dict)
    later_controls: Mapping[str, Control] = field(default_factory=dict)
    published: Evidence | None = None
    slack: float = 0.01
    seeds: int = 10
    bears: Sequence[str] = ()
    is_contradictable_only: bool = False

    @property
    def words(self) -> list[str]:
        """The rule, part by part, in words."""
        return [part.rule for part in self.rule(Blank())]

    @property
    def gate_words(self) -> list[str]:
        """The gate likewise."""
        return [part.rule for part in self.gate(Blank())]


def about(
    key: str,
    topic: int,
    statement: str,
    place: str,
    parts: Sequence[Contrast],
    gate: Sequence[Contrast] = (),
    **more: Any,
) -> Claim:
    """Returns a claim about the cases whose numbers its parts are; arguments as `Claim`'s."""
    own = tuple(dict.fromkeys(part.ours for part in parts))
    return Claim(key, topic, statement, place, all_of(parts), all_of(gate), **{"own": own, **more})


@dataclass(frozen=True)
class Finding:
    """A claim and what the records say of it.

    Args:
        claim: The claim.
        verdict: One of `VERDICTS`.
        parts: What was measured.
        gate: What was measured of the gate.
        passed: Whether each control kept gate and rule, by name.
        passed_later: The same of those thought of after the records.
        paper: Whether the paper's own numbers keep the rule; None where it has none.
        seeds: How many seeds decided.
        is_fresh: Whether none of them was looked at while the rules were made.
        source: Where the records lie.
    """

    claim: Claim
    verdict: str
    parts: Sequence[AnyPart] = ()
    gate: Sequence[AnyPart] = ()
    passed: Mapping[str, bool] = field(default_factory=dict)
    passed_later: Mapping[str, bool] = field(default_factory=dict)
    paper: bool | None = None
    seeds: int = 0
    is_fresh: bool = False
    source: str = "-"

    @property
    def is_final(self) -> bool:
        """Whether as many fresh seeds decided as were planned: a look before that is no verdict."""
        return self.is_fresh and self.seeds >= self.claim.seeds


def decide(claim: Claim, among: Mapping[str, Evidence]) -> Finding:
    """Applies a claim's rule to the first records that decide it.

    Args:
        claim: The claim.
        among: Records by the name of where they lie. Fresh seeds go before earlier ones, then the
            first named before the others; those that are enough for a verdict before all.
    """
    planned = FRESH[: claim.seeds] if claim.seeds else FRESH
    found = [
        _judged(claim, evidence.of(seeds), name, seeds == planned)
        for seeds in ((planned, EARLIER) if claim.seeds else (planned,))
        for name, evidence in among.items()
    ]
    found = [one for one in found if one.verdict != MISSING]
    nothing = Finding(claim, MISSING, paper=_papers(claim))
    return next((one for one in found if one.is_final), found[0] if found else nothing)


def _judged(claim: Claim, evidence: Evidence, source: str, is_fresh: bool) -> Finding:
    paper = _papers(claim)
    try:
        parts, gate = claim.rule(evidence), claim.gate(evidence)
        passed, later = (
            {name: _passes(claim, evidence, one) for name, one in controls.items()}
            for controls in (claim.controls, claim.later_controls)
        )
    except MissingError:
        return Finding(claim, MISSING, paper=paper)
    seeds = min((one.seeds for one in (*parts, *gate) if isinstance(one, Part)), default=0)
    verdict = _verdict(parts)
    if verdict == HOLDS and claim.is_contradictable_only:
        verdict = UNCONTRADICTED
    if seeds != 1 and (not _is_shown(gate) or any(passed.values())):
        verdict = UNINFORMATIVE
    return Finding(claim, verdict, parts, gate, passed, later, paper, seeds, is_fresh, source)


def _verdict(parts: Sequence[AnyPart]) -> str:
    if not is_uncontradicted(parts):
        return FAILS
    predicted = [part for part in parts if isinstance(part, Prediction)]
    if predicted and all(part.seeds > 1 for part in predicted):
        return UNCONTRADICTED
    return HOLDS if _is_shown(parts) else OPEN


def _is_shown(parts: Sequence[AnyPart]) -> bool:
    return all(part.kept() < ALPHA for part in parts)


def _passes(claim: Claim, evidence: Evidence, control: Control) -> bool:
    """Whether a control keeps what the claim must keep."""
    stood_in = control(evidence, claim.own)
    return _is_shown(claim.gate(stood_in)) and _verdict(claim.rule(stood_in)) in (
        HOLDS,
        UNCONTRADICTED,
    )


def _papers(claim: Claim) -> bool | None:
    """Whether the paper's own numbers keep the rule, rounding granted: one run has no interval."""
    if claim.published is None:
        return None
    return all(
        part.is_true if isinstance(part, Fact) else part.is_kept_by_value(claim.slack)
        for part in claim.rule(claim.published)
    )
