"""Claims 4, 13 and 14: speed and gain of the methods from random weights (Table 1's runs)."""

from statistics import mean

from reproduce.claims.bounds import CONSTANT, DEGENERATE, LEVEL, NEAR, NOISY
from reproduce.claims.cases import COLUMNS, METHODS, NAMES, NOISES, published, table1
from reproduce.claims.claim import Claim, Rule
from reproduce.claims.evidence import TRIVIAL, Evidence, chance, shifted
from reproduce.claims.measures import at, final, gain, over
from reproduce.claims.parts import Part
from reproduce.claims.stability import OTHER_SGD, SGD, gains, gap, learns

# Claim 4: speed.


_BEARING = {
    "is": ("R2 sum", "R8 normal", "R8 uniform"),
    "hr": ("R5 growing", "R8 normal", "R8 uniform"),
}
"""The readings that touch a row's speed, by their names in `make readings`."""


def _slower(row: str, noise: str) -> Claim:
    others = ("sgd", noise)

    def rule(evidence: Evidence) -> list[Part]:
        parts = []
        for other in others:
            title, later = f"{NAMES[row]} less {NAMES[other]}", gain(100, 500)
            parts += [
                Part(f"{title} at 100", gap(evidence, at(100), row, other), high=0.0),
                Part(f"{title}, gain from 100 to 500", gap(evidence, later, row, other), low=0.0),
            ]
        return parts

    return Claim(
        f"slower.{row}.{noise}",
        4,
        f"{NAMES[row]} trains more slowly than SGD and {NAMES[noise]}, most of all at the start",
        "Section 6.2",
        rule,
        gate=lambda evidence: learns(evidence, table1(row)),
        own=[table1(row)],
        controls={**TRIVIAL, **OTHER_SGD},
        published=published(row, *others),
        seeds=20,
        bears=_BEARING[row],
    )


def _constant_rate(evidence: Evidence) -> list[Part]:
    curves = evidence.curves(table1("is"))
    halves = {
        sign: [
            sign * (gain(100, 300)(curve) - 0.5 * gain(100, 500)(curve))
            - CONSTANT * gain(100, 500)(curve)
            for curve in curves.values()
        ]
        for sign in (1, -1)
    }
    share = f"{CONSTANT:g} of the gain from 100 to 500"
    return [
        Part(
            f"IS's gain from 100 to 300 above half of that to 500, less {share}",
            halves[1],
            high=0.0,
        ),
        Part(
            f"IS's gain from 100 to 300 below half of that to 500, less {share}",
            halves[-1],
            high=0.0,
        ),
    ]


def _on_a_par(row: str) -> Claim:
    def rule(evidence: Evidence) -> list[Part]:
        return [
            Part(f"{NAMES[row]} less SGD at {one}", gap(evidence, at(one), row), low=-NEAR)
            for one in COLUMNS
        ]

    def gate(evidence: Evidence) -> list[Part]:
        title = f"{NAMES[row]} less SGD before the first update"
        return [Part(title, gap(evidence, at(0), row), -LEVEL, LEVEL)]

    return Claim(
        f"par.{row}",
        4,
        f"progress per update is on a par with SGD's, or exceeds it: {NAMES[row]}",
        "Section 6.2",
        rule,
        gate=gate,
        own=[table1(row)],
        controls=TRIVIAL,
        published=published(row, "sgd"),
        seeds=20,
    )


def _poor_start(evidence: Evidence) -> list[Part]:
    return [Part("IS less HR at 100", gap(evidence, at(100), "is", "hr"), high=0.0)]


SPEED = (
    *(_slower(row, noise) for row in ("is", "hr") for noise in NOISES),
    Claim(
        "start.is",
        4,
        "IS starts poorly, behind HR too",
        "Section 6.2",
        _poor_start,
        gate=lambda evidence: learns(evidence, table1("is"), table1("hr")),
        own=[table1("is")],
        controls={**TRIVIAL, **OTHER_SGD},
        published=published("is", "hr"),
        seeds=20,
        bears=_BEARING["is"],
    ),
    Claim(
        "constant-rate.is",
        4,
        "IS improves at a nearly constant rate",
        "Section 6.2",
        _constant_rate,
        gate=lambda evidence: gains(evidence, "is"),
        own=[table1("is")],
        controls={**TRIVIAL, **OTHER_SGD},
        published=published("is"),
        seeds=20,
        bears=_BEARING["is"],
    ),
    *map(_on_a_par, METHODS),
)


# Claim 13: the abstract's conclusion.


def _does_not_outperform(row: str) -> Claim:
    def rule(evidence: Evidence) -> list[Part]:
        title, whole = f"{NAMES[row]} less SGD", gap(evidence, over(100, 500), row)
        return [
            Part(f"{title} at the end", gap(evidence, final, row), high=LEVEL),
            Part(f"{title} on average from 100 to 500", whole, high=LEVEL),
        ]

    return Claim(
        f"outperform.{row}",
        13,
        f"regularized methods do not clearly outperform SGD: {NAMES[row]}",
        "Introduction",
        rule,
        gate=lambda evidence: learns(evidence, table1(row)),
        own=[table1(row)],
        controls={"a chance curve": chance, "a clear winner": shifted(SGD, 2 * LEVEL)},
        seeds=20,
    )


CONCLUSION = tuple(map(_does_not_outperform, METHODS))


# Claim 14: the curse of dimension, by what a weight update reports of itself.


def _collapses(evidence: Evidence) -> list[Part]:
    reported = evidence.diagnostics(table1("is"), "effective_sample_size")
    shares = [mean(values) / _SAMPLES for values in reported.values()]
    return [Part("effective sample size over samples", shares, high=DEGENERATE)]


def _is_noisy(evidence: Evidence) -> list[Part]:
    errors = evidence.diagnostics(table1("is"), "standard_error")
    steps = evidence.diagnostics(table1("is"), "step_norm")
    ratios = [
        mean(error / step for error, step in zip(errors[seed], steps[seed], strict=True))
        for seed in errors
    ]
    return [Part("standard error of the mean over the step taken", ratios, low=NOISY)]


def _is_mostly_unseen(evidence: Evidence) -> list[Part]:
    seen = evidence.diagnostics(table1("is"), "sampled_dimensions")
    all_ = evidence.diagnostics(table1("is"), "dimensions")
    shares = [
        mean(1 - one / every for one, every in zip(seen[seed], all_[seed], strict=True))
        for seed in seen
    ]
    return [Part("share of the dimensions that the minibatch does not see", shares, low=0.5)]


_SAMPLES = 1000  # Section 6.2


def _curse(key: str, statement: str, rule: Rule) -> Claim:
    return Claim(
        f"curse.{key}",
        14,
        statement,
        "Section 5.1.2",
        rule,
        gate=lambda evidence: learns(evidence, table1("is")),
        seeds=20,
    )


CURSE = (
    _curse("weights", "the curse of dimension shows in IS's weights: they collapse", _collapses),
    _curse("noise", "it shows in the mean: IS's steps are mostly noise", _is_noisy),
    _curse("unseen", "most of that noise lies where the minibatch sees nothing", _is_mostly_unseen),
)
