"""Claims 3 and 11: stability and monotone held-out accuracy, held against SGD's own (Table 1)."""

from reproduce.claims.bounds import COMPARABLE, LEARNS, WOBBLE
from reproduce.claims.cases import METHODS, NAMES, NOISES, table1
from reproduce.claims.claim import Claim
from reproduce.claims.evidence import TRIVIAL, Evidence, other_seeds
from reproduce.claims.measures import (
    STEADY,
    Measure,
    difference,
    each,
    falls,
    final,
    gain,
    roughness,
)
from reproduce.claims.parts import Part
from reproduce.protocols import Case

_EARLY, _LATE = (200, 350), (350, 500)
"""The halves of `STEADY`."""

SGD = table1("sgd")
OTHER_SGD = {"SGD under other seeds": other_seeds(SGD)}


def gap(evidence: Evidence, measure: Measure, row: str, other: str = "sgd") -> tuple[float, ...]:
    """Returns how much a measure of a row of Table 1 exceeds another's, seed by seed."""
    ours, theirs = evidence.curves(table1(row)), evidence.curves(table1(other))
    return difference(measure, ours, theirs)


def learns(evidence: Evidence, *cases: Case) -> list[Part]:
    """The gate of what trains at all."""
    return [
        Part("mean accuracy at the end", each(final, evidence.curves(case)), low=LEARNS)
        for case in cases
    ]


def gains(evidence: Evidence, row: str) -> list[Part]:
    """The gate of what goes on rising."""
    values = each(gain(100, 500), evidence.curves(table1(row)))
    return [Part(f"{NAMES[row]}'s gain from 100 to 500", values, low=COMPARABLE)]


def _comparable(evidence: Evidence, row: str) -> list[Part]:
    """The gate of what is held against SGD: it ends near SGD and gains as much on the way."""
    bounds, title = (-COMPARABLE, COMPARABLE), NAMES[row]
    return [
        Part(f"{title} less SGD at the end", gap(evidence, final, row), *bounds),
        Part(
            f"{title}'s gain from 100 to 500 less SGD's",
            gap(evidence, gain(100, 500), row),
            *bounds,
        ),
    ]


def _sgd_is_stable(evidence: Evidence) -> list[Part]:
    curves = evidence.curves(SGD)
    calmer = each(lambda curve: roughness(*_LATE)(curve) - roughness(*_EARLY)(curve), curves)
    rough = each(roughness(*STEADY), curves)
    return [
        Part("SGD's second differences from 200 to 500", rough, high=WOBBLE),
        Part("those from 350 to 500 less those from 200 to 350", calmer, high=0.0),
    ]


def _against_sgd(key: str, topic: int, place: str, row: str, words: str, measure: Measure) -> Claim:
    """Less of a measure than SGD has, seed by seed."""
    statement, name = words.split("; ")

    def rule(evidence: Evidence) -> list[Part]:
        return [Part(f"{name} from 200 to 500 less SGD's", gap(evidence, measure, row), high=0.0)]

    return Claim(
        f"{key}.{row}",
        topic,
        f"{statement}: {NAMES[row]}",
        place,
        rule,
        gate=lambda evidence: _comparable(evidence, row),
        own=[table1(row)],
        controls={**TRIVIAL, **OTHER_SGD},
        seeds=20,
    )


STABILITY = (
    Claim(
        "stable.sgd",
        3,
        "SGD behaves in a stable way, towards the end above all",
        "Section 6.2",
        _sgd_is_stable,
        gate=lambda evidence: [*learns(evidence, SGD), *gains(evidence, "sgd")],
        own=[SGD],
        controls=TRIVIAL,
        seeds=20,
    ),
    *(
        _against_sgd(
            "stabler",
            3,
            "Section 6.2",
            row,
            "SGLD is more stable than SGD; second differences",
            roughness(*STEADY),
        )
        for row in NOISES
    ),
)
MONOTONICITY = tuple(
    _against_sgd(
        "monotone",
        11,
        "Section 6",
        row,
        "the monotone decrease of the regularized loss shows as held-out accuracy that falls less "
        "than SGD's; mean fall",
        falls(*STEADY),
    )
    for row in METHODS
)
