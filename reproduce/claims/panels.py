"""Claims 6 and 7: after SGD, and numbers of samples (Sections 6.3 and 6.4)."""

import math
from itertools import pairwise

from reproduce.claims.bounds import COMPARABLE, LEVEL
from reproduce.claims.cases import METHODS, NAMES, NOISES, after_sgd, sampled
from reproduce.claims.claim import Claim
from reproduce.claims.evidence import TRIVIAL, Evidence, chance, constant, other_seeds, shifted
from reproduce.claims.measures import (
    STEADY,
    Measure,
    at,
    difference,
    each,
    ending,
    final,
    over,
    roughness,
)
from reproduce.claims.parts import Part
from reproduce.claims.stability import learns
from reproduce.experiments import figure5

_SWITCH = figure5.TRAINING.sgd_updates
_SGD, _HR = after_sgd("sgd"), after_sgd("hr")


# Claim 6: after SGD.


def _better_than_hr(row: str) -> Claim:
    def rule(evidence: Evidence) -> list[Part]:
        gap = difference(final, evidence.curves(after_sgd(row)), evidence.curves(_HR))
        return [Part(f"{NAMES[row]} less HR at the end", gap, low=0.0)]

    return Claim(
        f"after.{row}-over-hr",
        6,
        f"after SGD, {NAMES[row]} does better than HR",
        "Section 6.3",
        rule,
        gate=lambda evidence: _near_sgd(evidence, "hr"),
        own=[after_sgd(row)],
        controls={"a chance curve": chance, "HR under other seeds": other_seeds(_HR)},
    )


def _near_sgd(evidence: Evidence, row: str) -> list[Part]:
    gap = difference(final, evidence.curves(after_sgd(row)), evidence.curves(_SGD))
    return [Part(f"{NAMES[row]} less SGD at the end", gap, -COMPARABLE, COMPARABLE)]


def _hr_stays(evidence: Evidence) -> list[Part]:
    changes = each(lambda curve: final(curve) - ending(_SWITCH)(curve), evidence.curves(_HR))
    return [Part("HR at the end less SGD before the switch", changes, -LEVEL, LEVEL)]


def _sgd_had_learnt(evidence: Evidence) -> list[Part]:
    gains = each(lambda curve: ending(_SWITCH)(curve) - curve[0], evidence.curves(_HR))
    return [Part("SGD's gain before the switch", gains, low=COMPARABLE)]


def _not_above_sgd(row: str) -> Claim:
    def rule(evidence: Evidence) -> list[Part]:
        gap = difference(final, evidence.curves(after_sgd(row)), evidence.curves(_SGD))
        return [Part(f"{NAMES[row]} less SGD at the end", gap, high=LEVEL)]

    return Claim(
        f"after.{row}-and-sgd",
        6,
        f"after SGD, {NAMES[row]} does not clearly beat going on with SGD",
        "Section 6.3",
        rule,
        gate=lambda evidence: _near_sgd(evidence, row),
        own=[after_sgd(row)],
        controls={"a chance curve": chance, "a clear winner": shifted(_SGD, 2 * LEVEL)},
    )


AFTER_SGD = (
    *(_better_than_hr(row) for row in METHODS if row != "hr"),
    Claim(
        "after.hr-stays",
        6,
        "HR stays where SGD left it",
        "Section 6.3",
        _hr_stays,
        gate=_sgd_had_learnt,
        own=[_HR],
        controls={"a chance curve": chance, "a constant curve": constant},
    ),
    *map(_not_above_sgd, METHODS),
)


# Claim 7: samples.


_COUNTS = (10, 100, 1000)
_WHOLE = over(0, 500)


def _with_more(
    key: str,
    row: str,
    statement: str,
    rises: tuple[tuple[str, Measure, int], ...],
    counts: tuple[int, ...],
) -> Claim:
    """What changes from each number of samples to the next.

    Args:
        key: The claim's.
        row: The method.
        statement: The text's.
        rises: Measures by name; 1: must rise, -1: must fall.
        counts: The numbers of samples.
    """

    def rule(evidence: Evidence) -> list[Part]:
        runs = {count: evidence.curves(sampled(row, count)) for count in counts}
        return [
            Part(
                f"{name}, {many} samples less {few}",
                difference(measure, runs[many], runs[few]),
                *((0.0, math.inf) if sign > 0 else (-math.inf, 0.0)),
            )
            for few, many in pairwise(counts)
            for name, measure, sign in rises
        ]

    return Claim(
        f"samples.{key}",
        7,
        statement,
        "Section 6.4",
        rule,
        gate=lambda evidence: [
            *learns(evidence, *(sampled(row, count) for count in counts)),
            *_start_alike(evidence, row, counts),
        ],
        own=[sampled(row, count) for count in counts[1:]],
        controls={**TRIVIAL, "the fewest samples": other_seeds(sampled(row, counts[0]))},
    )


def _start_alike(evidence: Evidence, row: str, counts: tuple[int, ...]) -> list[Part]:
    few = evidence.curves(sampled(row, counts[0]))
    return [
        Part(
            f"{many} samples less {counts[0]} before the first update",
            difference(at(0), evidence.curves(sampled(row, many)), few),
            -LEVEL,
            LEVEL,
        )
        for many in counts[1:]
    ]


_FASTER = ("mean accuracy over training", _WHOLE, 1)
_SLOWER = ("mean accuracy over training", _WHOLE, -1)
_CALMER = ("second differences from 200 to 500", roughness(*STEADY), -1)

SAMPLES = (
    _with_more(
        "is",
        "is",
        "IS gets faster and less noisy with more samples",
        (_FASTER, _CALMER),
        _COUNTS,
    ),
    *(
        _with_more(
            row,
            row,
            f"{NAMES[row]} gains in speed and final accuracy from 10 to 100 samples",
            (_FASTER, ("accuracy at the end", final, 1)),
            _COUNTS[:2],
        )
        for row in NOISES
    ),
    _with_more(
        "hr",
        "hr",
        "HR gets slower and less oscillating with longer chains (M = J = 3, 10, 31)",
        (_SLOWER, _CALMER),
        _COUNTS,
    ),
)
