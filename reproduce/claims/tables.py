"""Claims 2, 5 and 10: what the paper has numbers of, Tables 1 and 2 and Section 6.1."""

import math
from collections.abc import Callable, Sequence

from reproduce import paper
from reproduce.claims.bounds import CHANCE, FACTOR, REPEATS, REPORTED
from reproduce.claims.cases import COLUMNS, METHODS, NAMES, table1
from reproduce.claims.claim import Claim, Contrast, about
from reproduce.claims.evidence import Control, Evidence, chance, with_curves
from reproduce.claims.measures import Curve, Curves, MissingError, at
from reproduce.claims.parts import Fact, Part
from reproduce.claims.stability import learns
from reproduce.experiments import section61, table2
from reproduce.protocols import Case, GradientDescent

ROUNDING = 0.005
"""Table 1 has two digits."""

_SHARED = ("R8 normal", "R8 uniform", "R13 tanh", "R14 replacement", "R15 standardised")
_BEARING = {
    "is": ("R2 sum", *_SHARED),
    "sgld": ("R6 chain from the weights", "R9 j runs on", *_SHARED),
    "sgld-linear": ("R6 chain from the weights", "R9 j runs on", *_SHARED),
    "hr": ("R5 growing", *_SHARED),
}
"""The readings that touch each row, by their names in `make readings`."""


# Claim 2: Table 1, row by row, and row less SGD's row, since the paper's rows share one start.


def _row(row: str) -> Claim:
    own, published = table1(row), paper.TABLE1[row.partition("-")[0]]
    parts = [
        Contrast(f"accuracy at {k}", at(k), own, published=published[k], rounding=ROUNDING)
        for k in COLUMNS
    ]
    statement = f"Table 1, row {NAMES[row]}: the paper's run could be one more of ours"
    return _predicted(f"table1.{row}", statement, row, parts)


def _contrast(row: str) -> Claim:
    published, sgd = paper.TABLE1[row.partition("-")[0]], paper.TABLE1["sgd"]
    parts = [
        Contrast(
            f"{NAMES[row]} less SGD at {update}",
            at(update),
            table1(row),
            table1("sgd"),
            published=round(published[update] - sgd[update], 2),
            rounding=2 * ROUNDING,
        )
        for update in COLUMNS
    ]
    statement = f"Table 1, {NAMES[row]} less SGD: the paper's difference could be one more of ours"
    return _predicted(f"table1.{row}-less-sgd", statement, row, parts)


def _predicted(key: str, statement: str, row: str, parts: Sequence[Contrast]) -> Claim:
    return about(
        key,
        2,
        statement,
        "Table 1",
        parts,
        learns(table1(row)),
        controls={
            "a paper's row at chance": _held_against(row, lambda published: CHANCE),
            "a paper's row flat at its end": _held_against(row, lambda published: published[500]),
        },
        seeds=20,
        bears=_BEARING.get(row, _SHARED),
    )


def _held_against(row: str, level: Callable[[Curve], float]) -> Control:
    """Ours moved as if the paper's row were flat: what ours must contradict to contradict at all.

    A row that fails to do so has intervals too wide to say anything.
    """
    published = paper.TABLE1[row.partition("-")[0]]

    @with_curves
    def stand_in(evidence: Evidence, case: Case) -> Curves:
        flat = level(published)
        return {
            seed: {
                update: value + published.get(update, flat) - flat
                for update, value in curve.items()
            }
            for seed, curve in evidence.curves(case).items()
        }

    return stand_in


TABLE1 = (*map(_row, ("sgd", *METHODS)), *map(_contrast, METHODS))


# Claim 5: Table 2, as logarithms of ratios, repetition by repetition.


_PAPERS = Evidence(
    timed=[
        table2.TimedRow(method, "plain", {0: seconds}, None, 0)
        for method, seconds in paper.TABLE2.items()
    ]
)


def _logarithms(evidence: Evidence, method: str, other: str) -> tuple[float, ...]:
    ours, theirs = evidence.seconds(method), evidence.seconds(other)
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        raise MissingError
    return tuple(math.log10(ours[one] / theirs[one]) for one in shared)


def _repeats(evidence: Evidence) -> list[Fact]:
    seconds = evidence.seconds("sgd").values()
    name = f"SGD's seconds repeat within a factor of {REPEATS:g}"
    return [Fact(name, max(seconds) <= REPEATS * min(seconds))]


def _as_fast_as_sgd(evidence: Evidence, own: Sequence[Case]) -> Evidence:
    return evidence.instead(dict.fromkeys(("is", "sgld", "hr"), evidence.seconds("sgd")))


def _timed(key: str, statement: str, bounds: dict[tuple[str, str], tuple[float, float]]) -> Claim:
    """Compares seconds: pairs of methods, and the ends of the ratio; by its logarithm."""

    def rule(evidence: Evidence) -> list[Part]:
        return [
            Part(
                f"log10 of {ours}'s over {theirs}'s seconds",
                _logarithms(evidence, ours, theirs),
                *map(math.log10, ends),
            )
            for (ours, theirs), ends in bounds.items()
        ]

    return Claim(
        key,
        5,
        statement,
        "Table 2",
        rule,
        gate=_repeats,
        later_controls={"every method as fast as SGD": _as_fast_as_sgd},
        published=_PAPERS,
        slack=0.0,
        seeds=table2.PROTOCOL.repetitions,
    )


def _ratio(method: str) -> Claim:
    published = paper.TABLE2[method] / paper.TABLE2["sgd"]
    return _timed(
        f"table2.{method}",
        f"{NAMES[method].partition(' ')[0]} takes {published:,.0f} times SGD's seconds, within a "
        f"factor of {FACTOR:g} (plain kernels)",
        {(method, "sgd"): (published / FACTOR, published * FACTOR)},
    )


TABLE2 = (
    _timed(
        "table2.thousand",
        "SGD is about 10^3 times faster per weight update, 10^2.5 to 10^3.5 (plain kernels)",
        {(method, "sgd"): (10**2.5, 10**3.5) for method in ("is", "sgld", "hr")},
    ),
    *map(_ratio, ("is", "sgld", "hr")),
    _timed(
        "table2.half",
        f"HR takes about half of the seconds of IS and of SGLD, within a factor of {REPEATS:g} "
        "(plain kernels)",
        {("hr", other): (0.5 / REPEATS, 0.5 * REPEATS) for other in ("is", "sgld")},
    ),
)


# Claim 10: Section 6.1.


_SMALL, _HIDDEN = (
    next(one for one in section61.PROTOCOL.panels.values() if one.training.network == network)
    for network in ("small_dense", "hidden_dense")
)
_RATE = GradientDescent(0.01)  # Section 6.2's


_REACHED, _BEST = (paper.SECTION_6_1[network] for network in ("small_dense", "hidden_dense"))
_LAST = at(_SMALL.training.updates)

SECTION61 = (
    about(
        "section61.small",
        10,
        "the small network reaches 0.912 in 5 epochs of SGD, at learning rate 0.01",
        "Section 6.1",
        [
            Contrast(
                "accuracy on all test images after 5 epochs",
                _LAST,
                Case(_SMALL.training, _RATE),
                low=_REACHED - REPORTED,
                high=_REACHED + REPORTED,
            )
        ],
        learns(Case(_SMALL.training, _RATE)),
        controls={"a chance curve": chance},
    ),
    about(
        "section61.hidden",
        10,
        "the larger one reaches 0.989 at best: 5 epochs can refute it, not prove it",
        "Section 6.1",
        [
            Contrast(f"accuracy on all test images after 5 epochs, {name}", _LAST, case, high=_BEST)
            for name, case in _HIDDEN.cases().items()
        ],
        [
            Contrast(f"the same, {name}", _LAST, case, low=_REACHED)
            for name, case in _HIDDEN.cases().items()
        ],
        controls={"a chance curve": chance},
        is_contradictable_only=True,
    ),
)
