"""Claims 6 and 7: after SGD, and numbers of samples (Sections 6.3 and 6.4)."""

from itertools import pairwise

from reproduce.claims.bounds import COMPARABLE, LEVEL
from reproduce.claims.cases import METHODS, NAMES, NOISES, after_sgd, sampled
from reproduce.claims.claim import Claim, Contrast, about
from reproduce.claims.evidence import TRIVIAL, chance, constant, other_seeds, shifted
from reproduce.claims.measures import STEADY, Curve, Measure, at, ending, final, over, roughness
from reproduce.claims.stability import learns
from reproduce.experiments import figure5

_SWITCH = figure5.TRAINING.sgd_updates
_SGD, _HR = after_sgd("sgd"), after_sgd("hr")


# Claim 6: after SGD.


def _ends(row: str, other: str, **bounds: float) -> list[Contrast]:
    name = f"{NAMES[row]} less {NAMES[other]} at the end"
    return [Contrast(name, final, after_sgd(row), after_sgd(other), **bounds)]


def _near_sgd(row: str) -> list[Contrast]:
    return _ends(row, "sgd", low=-COMPARABLE, high=COMPARABLE)


def _better_than_hr(row: str) -> Claim:
    return about(
        f"after.{row}-over-hr",
        6,
        f"after SGD, {NAMES[row]} does better than HR",
        "Section 6.3",
        _ends(row, "hr", low=0.0),
        _near_sgd("hr"),
        controls={"a chance curve": chance, "HR under other seeds": other_seeds(_HR)},
        bears=("R2 sum and R5 growing, Figure 5",) if row == "is" else (),
    )


def _change(curve: Curve) -> float:
    return final(curve) - ending(_SWITCH)(curve)


def _gain_by_sgd(curve: Curve) -> float:
    return ending(_SWITCH)(curve) - curve[0]


def _not_above_sgd(row: str) -> Claim:
    return about(
        f"after.{row}-and-sgd",
        6,
        f"after SGD, {NAMES[row]} does not clearly beat going on with SGD",
        "Section 6.3",
        _ends(row, "sgd", high=LEVEL),
        _near_sgd(row),
        controls={"a chance curve": chance, "a clear winner": shifted(_SGD, 2 * LEVEL)},
    )


AFTER_SGD = (
    *(_better_than_hr(row) for row in METHODS if row != "hr"),
    about(
        "after.hr-stays",
        6,
        "HR stays where SGD left it",
        "Section 6.3",
        [Contrast("HR at the end less SGD before the switch", _change, _HR, None, -LEVEL, LEVEL)],
        [Contrast("SGD's gain before the switch", _gain_by_sgd, _HR, low=COMPARABLE)],
        controls={"a chance curve": chance, "a constant curve": constant},
    ),
    *map(_not_above_sgd, METHODS),
)


# Claim 7: samples.


_COUNTS = (10, 100, 1000)

Change = tuple[str, Measure, dict[str, float]]
"""A measure, its name and the range of its difference."""


def _with_more(
    row: str, statement: str, *changes: Change, counts: tuple[int, ...], bears: tuple[str, ...] = ()
) -> Claim:
    """What changes from each number of samples to the next."""
    cases = {count: sampled(row, count) for count in counts}
    fewest, *others = counts
    return about(
        f"samples.{row}",
        7,
        statement,
        "Section 6.4",
        [
            Contrast(
                f"{name}, {many} samples less {few}", measure, cases[many], cases[few], **bounds
            )
            for few, many in pairwise(counts)
            for name, measure, bounds in changes
        ],
        [
            *learns(*cases.values()),
            *(
                Contrast(
                    f"{many} samples less {fewest} before the first update",
                    at(0),
                    cases[many],
                    cases[fewest],
                    -LEVEL,
                    LEVEL,
                )
                for many in others
            ),
        ],
        controls={**TRIVIAL, "the fewest samples under other seeds": other_seeds(cases[fewest])},
        bears=bears,
    )


_FASTER: Change = ("mean accuracy over training", over(0, 500), {"low": 0.0})
_SLOWER: Change = ("mean accuracy over training", over(0, 500), {"high": 0.0})
_HIGHER: Change = ("accuracy at the end", final, {"low": 0.0})
_CALMER: Change = ("second differences from 200 to 500", roughness(*STEADY), {"high": 0.0})

SAMPLES = (
    _with_more(
        "is", "IS gets faster and less noisy with more samples", _FASTER, _CALMER, counts=_COUNTS
    ),
    *(
        _with_more(
            row,
            f"{NAMES[row]} gains in speed and final accuracy from 10 to 100 samples",
            _FASTER,
            _HIGHER,
            counts=_COUNTS[:2],
        )
        for row in NOISES
    ),
    _with_more(
        "hr",
        "HR gets slower and less oscillating with longer chains (M = J = 3, 10, 31)",
        _SLOWER,
        _CALMER,
        counts=_COUNTS,
        bears=("R5 growing, Figure 6",),
    ),
)
