"""Claims 3 and 11: stability and monotone held-out accuracy, held against SGD's own (Table 1)."""

from reproduce.claims.bounds import COMPARABLE, LEARNS, WOBBLE
from reproduce.claims.cases import METHODS, NAMES, NOISES, table1
from reproduce.claims.claim import Claim, Contrast, about
from reproduce.claims.evidence import TRIVIAL, other_seeds
from reproduce.claims.measures import STEADY, Curve, Measure, falls, final, gain, roughness
from reproduce.protocols import Case

_EARLY, _LATE = (200, 350), (350, 500)
"""The halves of `STEADY`."""

SGD = table1("sgd")
CONTROLS = {**TRIVIAL, "SGD under other seeds": other_seeds(SGD)}
"""Of what is held against SGD."""


def learns(*cases: Case) -> list[Contrast]:
    """The gate of what trains at all."""
    return [
        Contrast(f"accuracy at the end, {case.name}", final, case, low=LEARNS) for case in cases
    ]


def gains(row: str) -> Contrast:
    """The gate of what goes on rising."""
    title = f"{NAMES[row]}'s gain from 100 to 500"
    return Contrast(title, gain(100, 500), table1(row), low=COMPARABLE)


def _comparable(row: str) -> list[Contrast]:
    """The gate of what is held against SGD: it ends near SGD and gains as much on the way."""
    title, bounds = NAMES[row], (-COMPARABLE, COMPARABLE)
    gained = f"{title}'s gain from 100 to 500 less SGD's"
    return [
        Contrast(f"{title} less SGD at the end", final, table1(row), SGD, *bounds),
        Contrast(gained, gain(100, 500), table1(row), SGD, *bounds),
    ]


def _calming(curve: Curve) -> float:
    return roughness(*_LATE)(curve) - roughness(*_EARLY)(curve)


def _against_sgd(key: str, topic: int, place: str, row: str, words: str, measure: Measure) -> Claim:
    """Less of a measure than SGD has, seed by seed."""
    statement, name = words.split("; ")
    return about(
        f"{key}.{row}",
        topic,
        f"{statement}: {NAMES[row]}",
        place,
        [Contrast(f"{name} from 200 to 500 less SGD's", measure, table1(row), SGD, high=0.0)],
        _comparable(row),
        controls=CONTROLS,
        seeds=20,
    )


STABILITY = (
    about(
        "stable.sgd",
        3,
        "SGD behaves in a stable way, towards the end above all",
        "Section 6.2",
        [
            Contrast(
                "SGD's second differences from 200 to 500", roughness(*STEADY), SGD, high=WOBBLE
            ),
            Contrast("those from 350 to 500 less those from 200 to 350", _calming, SGD, high=0.0),
        ],
        [*learns(SGD), gains("sgd")],
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
