"""What the page shows of the findings, as words and numbers that a template only places."""

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from reproduce.claims import TOPICS, Topic
from reproduce.claims.claim import BEYOND, FAILS, HOLDS, MISSING, UNCONTRADICTED, VERDICTS, Finding
from reproduce.claims.parts import AnyPart, Fact, Part, Prediction

PENDING = "pending"
"""The verdict of a claim whose fresh seeds are not all there."""

SHOWN = (*VERDICTS[:-1], PENDING)

_WIDTH = 220.0
_MARGIN = 0.08


@dataclass(frozen=True)
class Bar:
    """An interval beside the range that it must lie in, in pixels of a drawing.

    Args:
        mean: Where the mean, or the published number, stands.
        low: The interval's left end.
        high: Its right end.
        allowed: Where the range begins, and how wide it is.
    """

    mean: float
    low: float
    high: float
    allowed: tuple[float, float]
    width: float = _WIDTH


@dataclass(frozen=True)
class PartView:
    """A part of a rule.

    Args:
        rule: In words.
        effect: The mean and its interval, in words.
        bar: The same as a drawing; None where there is no interval.
    """

    rule: str
    effect: str
    bar: Bar | None


@dataclass(frozen=True)
class ClaimView:
    """A claim and what came of it.

    Args:
        finding: All of it.
        verdict: The final one, or that it is pending.
        so_far: What the records there are say where it is pending.
        effect: The part that decides, in one line.
        parts: All parts.
        gate: The gate's.
        rested: On which seeds and records it rests.
        paper: What the paper's own numbers say, empty where it has none.
        bears: What could explain a disagreement, and whether it was run.
    """

    finding: Finding
    verdict: str
    so_far: str
    effect: str
    parts: Sequence[PartView]
    gate: Sequence[PartView]
    rested: str
    paper: str
    bears: str


@dataclass(frozen=True)
class TopicView:
    """The claims of a topic.

    Args:
        number: As the project counts them.
        topic: What they are about.
        claims: The claims.
        counts: How many came to each verdict of `SHOWN`, and how many pending ones so far.
    """

    number: int
    topic: Topic
    claims: Sequence[ClaimView]
    counts: Sequence[tuple[int, int]]


def topics(findings: Sequence[Finding], run: Container[str]) -> list[TopicView]:
    """Returns the topics in order.

    Args:
        findings: What the records say of every claim.
        run: The readings that have records.
    """
    return [
        _topic(number, [_claim(one, run) for one in findings if one.claim.topic == number])
        for number in TOPICS
    ]


def _topic(number: int, claims: Sequence[ClaimView]) -> TopicView:
    counts = Counter(one.verdict for one in claims)
    so_far = Counter(one.so_far for one in claims)
    shown = [(counts[verdict], so_far[verdict]) for verdict in SHOWN]
    return TopicView(number, TOPICS[number], claims, shown)


def conclusion(shown: Sequence[TopicView]) -> list[str]:
    """Returns in plain words what the page says, a sentence each."""
    claims = [claim for topic in shown for claim in topic.claims]
    counts = Counter(claim.verdict for claim in claims)
    settled = len(claims) - counts[PENDING]
    said = [
        f"{len(claims)} statements were put to a test: the paper's sentences, part by part and "
        f"under both readings of SGLD's noise, and some beyond it. {settled} are settled"
        + (f" ({_listed(counts, SHOWN[:-1])})." if settled else ".")
    ]
    if counts[PENDING]:
        so_far = Counter(claim.so_far for claim in claims if claim.verdict == PENDING)
        said.append(
            f"{counts[PENDING]} are pending: their verdicts rest on fresh seeds, 5 to 24 or 5 to "
            "14, that are not all run yet. What the seeds there are say, among them those that "
            "were looked at while rules were made, is provisional, and in parentheses below "
            f"({_listed(so_far, VERDICTS)})."
        )
    said += _by_topics(shown)
    own = [claim.finding.claim.statement for claim in claims if claim.finding.paper is False]
    if own:
        said.append("The paper's own numbers break its sentence here: " + "; ".join(own) + ".")
    return said


def _by_topics(shown: Sequence[TopicView]) -> list[str]:
    """Which topics the settled verdicts bear out, statements beyond the paper apart."""
    groups: dict[str, list[str]] = {"all": [], "some": [], "none": []}
    for topic in shown:
        claims = [claim for claim in topic.claims if claim.verdict != PENDING]
        claims = [one for one in claims if not one.finding.claim.statement.startswith(BEYOND)]
        counts = Counter(claim.verdict for claim in claims)
        kept = counts[HOLDS] + counts[UNCONTRADICTED]
        name = "all" if kept == len(claims) else "some" if kept else "none"
        said = f"{kept} of {len(claims)}" if kept else _listed(counts, SHOWN)
        if claims:
            groups[name].append(f"{topic.topic.title} ({said})")
    told = "; ".join(f"{name} on {', '.join(titles)}" for name, titles in groups.items() if titles)
    return [f"Of the paper's statements hold, or are not contradicted, {told}."] if told else []


def _listed(counts: Counter[str], verdicts: Sequence[str]) -> str:
    return ", ".join(f"{one}: {counts[one]}" for one in verdicts if counts[one])


def _claim(finding: Finding, run: Container[str]) -> ClaimView:
    among = sum(isinstance(part, Part) for part in finding.parts)
    parts = [part_view(part, among) for part in finding.parts]
    weakest = max(range(len(parts)), key=lambda at: _margin(finding.parts[at]), default=None)
    verdict = finding.verdict if finding.is_final else PENDING
    rounding = ", rounding granted" if finding.claim.slack else ""
    paper = {
        True: f"its own numbers keep this rule{rounding}",
        False: "its own numbers break this rule",
    }
    return ClaimView(
        finding,
        verdict,
        "" if finding.is_final else finding.verdict,
        "" if weakest is None else f"{parts[weakest].rule}: {parts[weakest].effect}",
        parts,
        [part_view(part, 1) for part in finding.gate],
        _rested(finding),
        "" if finding.paper is None else paper[finding.paper],
        _bearing(finding, run),
    )


def _bearing(finding: Finding, run: Container[str]) -> str:
    if finding.verdict != FAILS:
        return ""
    return ", ".join(one if one in run else f"{one} (not run)" for one in finding.claim.bears)


def _margin(part: AnyPart) -> float:
    """How far a part is from being shown: the largest decides what is told first."""
    return part.kept() - part.broken()


def _rested(finding: Finding) -> str:
    if finding.verdict == MISSING:
        return "no records"
    if not finding.seeds:
        return f"exact, from {finding.source}"
    if finding.claim.topic == 5:
        return f"{finding.seeds} of {finding.claim.seeds} repetitions, from {finding.source}"
    kind = "fresh seeds" if finding.is_fresh else "seeds that were looked at before"
    return f"{finding.seeds} {kind} of {finding.claim.seeds} planned, from {finding.source}"


def part_view(part: AnyPart, among: int) -> PartView:
    """Returns a part in words and as a drawing, its interval Bonferroni's among several."""
    if isinstance(part, Fact):
        measured = f" ({part.measured})" if part.measured else ""
        return PartView(part.rule, ("true" if part.is_true else "not true") + measured, None)
    if part.seeds < 2:
        return PartView(part.rule, f"{part.value:.3f} (one run)", None)
    low, high = part.interval(max(among, 1))
    said = f"{part.value:.3f} [{low:.3f}, {high:.3f}]"
    if isinstance(part, Prediction):
        said = f"ours {said}, half-width {(high - low) / 2:.3f}; paper {part.published:g}"
    return PartView(part.rule, said, _bar(part, low, high))


def _bar(part: Part, low: float, high: float) -> Bar:
    if isinstance(part, Prediction):
        ends, mark = (low, high), part.published
    else:
        ends, mark = (part.low, part.high), part.value
    finite = [one for one in (low, high, mark, *ends) if math.isfinite(one)]
    left, right = min(finite), max(finite)
    margin = _MARGIN * (right - left) or 1.0
    left, right = left - margin, right + margin

    def place(value: float) -> float:
        share = (min(max(value, left), right) - left) / (right - left)
        return round(share * _WIDTH, 1)

    begin, end = map(place, ends)
    return Bar(place(mark), place(low), place(high), (begin, round(end - begin, 1)))
