"""Claims 4, 13 and 14: speed and gain of the methods from random weights (Table 1's runs)."""

from collections.abc import Callable, Mapping
from statistics import mean

from reproduce.claims.bounds import CONSTANT, DEGENERATE, LEVEL, NEAR, NOISY
from reproduce.claims.cases import COLUMNS, METHODS, NAMES, NOISES, published, table1
from reproduce.claims.claim import BEYOND, Claim, Contrast, Rule, about, all_of
from reproduce.claims.evidence import (
    TRIVIAL,
    Control,
    Evidence,
    Reported,
    chance,
    shifted,
    with_diagnostic,
)
from reproduce.claims.measures import Curve, Measure, at, final, gain, over
from reproduce.claims.parts import Part
from reproduce.claims.stability import CONTROLS, SGD, gains, learns

# Claim 4: speed.


_BEARING = {
    "is": ("R2 sum", "R8 normal", "R8 uniform"),
    "hr": ("R5 growing", "R8 normal", "R8 uniform"),
}
"""The readings that touch a row's speed, by their names in `make readings`."""


def _slower(row: str, noise: str) -> Claim:
    others, parts = ("sgd", noise), []
    for other in others:
        title, rows = f"{NAMES[row]} less {NAMES[other]}", (table1(row), table1(other))
        parts += [
            Contrast(f"{title} at 100", at(100), *rows, high=0.0),
            Contrast(f"{title}, gain from 100 to 500", gain(100, 500), *rows, low=0.0),
        ]
    return about(
        f"slower.{row}.{noise}",
        4,
        f"{NAMES[row]} trains more slowly than SGD and {NAMES[noise]}, most of all at the start",
        "Section 6.2",
        parts,
        learns(table1(row)),
        controls=CONTROLS,
        published=published(row, *others),
        seeds=20,
        bears=_BEARING[row],
    )


def _off_half(sign: int) -> Measure:
    """How much more than allowed the first half of a gain is above (1) or below (-1) a half."""

    def measure(curve: Curve) -> float:
        whole = gain(100, 500)(curve)
        return sign * (gain(100, 300)(curve) - 0.5 * whole) - CONSTANT * whole

    return measure


def _on_a_par(row: str) -> Claim:
    title, own = f"{NAMES[row]} less SGD", table1(row)
    return about(
        f"par.{row}",
        4,
        f"progress per update is on a par with SGD's, or exceeds it: {NAMES[row]}",
        "Section 6.2",
        [Contrast(f"{title} at {one}", at(one), own, SGD, low=-NEAR) for one in COLUMNS],
        [Contrast(f"{title} before the first update", at(0), own, SGD, -LEVEL, LEVEL)],
        controls=TRIVIAL,
        published=published(row, "sgd"),
        seeds=20,
    )


_IS, _HR = table1("is"), table1("hr")
_SHARE = f"{CONSTANT:g} of the gain from 100 to 500"

SPEED = (
    *(_slower(row, noise) for row in ("is", "hr") for noise in NOISES),
    about(
        "start.is",
        4,
        "IS starts poorly, behind HR too",
        "Section 6.2",
        [Contrast("IS less HR at 100", at(100), _IS, _HR, high=0.0)],
        learns(_IS, _HR),
        controls=CONTROLS,
        published=published("is", "hr"),
        seeds=20,
        bears=_BEARING["is"],
    ),
    about(
        "constant-rate.is",
        4,
        "IS improves at a nearly constant rate",
        "Section 6.2",
        [
            Contrast(
                f"IS's gain from 100 to 300 {side} half of that to 500, less {_SHARE}",
                _off_half(sign),
                _IS,
                high=0.0,
            )
            for side, sign in (("above", 1), ("below", -1))
        ],
        [gains("is")],
        controls=CONTROLS,
        published=published("is"),
        seeds=20,
        bears=_BEARING["is"],
    ),
    *map(_on_a_par, METHODS),
)


# Claim 13: the abstract's conclusion.


def _does_not_outperform(row: str) -> Claim:
    title, own, whole = f"{NAMES[row]} less SGD", table1(row), over(100, 500)
    return about(
        f"outperform.{row}",
        13,
        f"regularized methods do not clearly outperform SGD: {NAMES[row]}",
        "Introduction",
        [
            Contrast(f"{title} at the end", final, own, SGD, high=LEVEL),
            Contrast(f"{title} on average from 100 to 500", whole, own, SGD, high=LEVEL),
        ],
        learns(own),
        controls={"a chance curve": chance, "a clear winner": shifted(SGD, 2 * LEVEL)},
        published=published(row, "sgd"),
        seeds=20,
    )


CONCLUSION = tuple(map(_does_not_outperform, METHODS))


# Claim 14: the curse of dimension, by what a weight update reports of itself.

_SAMPLES = 1000  # Section 6.2
_SIZE, _ERROR, _SEEN = "effective_sample_size", "standard_error", "sampled_dimensions"


def _collapses(evidence: Evidence) -> list[Part]:
    reported = evidence.diagnostics(_IS, _SIZE)
    shares = [mean(values) / _SAMPLES for values in reported.values()]
    return [Part("effective sample size over samples", shares, high=DEGENERATE)]


def _is_noisy(evidence: Evidence) -> list[Part]:
    errors = evidence.diagnostics(_IS, _ERROR)
    steps = evidence.diagnostics(_IS, "step_norm")
    ratios = [
        mean(error / step for error, step in zip(errors[seed], steps[seed], strict=True))
        for seed in errors
    ]
    return [Part("standard error of the mean over the step taken", ratios, low=NOISY)]


def _is_mostly_unseen(evidence: Evidence) -> list[Part]:
    seen = evidence.diagnostics(_IS, _SEEN)
    all_ = evidence.diagnostics(_IS, "dimensions")
    shares = [
        mean(1 - one / every for one, every in zip(seen[seed], all_[seed], strict=True))
        for seed in seen
    ]
    name = "share of the dimensions, alike in noise, that the minibatch does not see"
    return [Part(name, shares, low=0.5)]


def _all(number: float) -> Callable[[Evidence], Reported]:
    """Returns what takes the place of a diagnostic with one number all along."""

    def stand_in(evidence: Evidence) -> Reported:
        steps = evidence.diagnostics(_IS, "step_norm")
        return {seed: [number] * len(values) for seed, values in steps.items()}

    return stand_in


def _sees_all(evidence: Evidence) -> Reported:
    return evidence.diagnostics(_IS, "dimensions")


def _curse(
    key: str, statement: str, rule: Rule, controls: Mapping[str, Control], *bears: str
) -> Claim:
    return Claim(
        f"curse.{key}",
        14,
        statement,
        "Section 5.1.2",
        rule,
        gate=all_of(learns(_IS)),
        later_controls=controls,
        seeds=20,
        bears=bears,
    )


CURSE = (
    _curse(
        "weights",
        "the curse of dimension shows in IS's weights: they collapse",
        _collapses,
        {"weights that are all alike": with_diagnostic(_IS, _SIZE, _all(_SAMPLES))},
        "R2 sum",
    ),
    _curse(
        "noise",
        "it shows in the mean: IS's steps are mostly noise",
        _is_noisy,
        {"a mean without error": with_diagnostic(_IS, _ERROR, _all(0.0))},
        "R2 sum",
    ),
    _curse(
        "unseen",
        f"{BEYOND}most of that noise lies where the minibatch sees nothing",
        _is_mostly_unseen,
        {"a minibatch that sees all": with_diagnostic(_IS, _SEEN, _sees_all)},
    ),
)
