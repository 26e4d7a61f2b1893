"""Claims 3, 4, 11, 13 and 14: the methods from random weights (Table 1's runs)."""

from statistics import mean

from reproduce.claims.bounds import (
    COMPARABLE,
    CONSTANT,
    DEGENERATE,
    LEARNS,
    LEVEL,
    NEAR,
    NOISY,
    WOBBLE,
)
from reproduce.claims.cases import COLUMNS, METHODS, NAMES, NOISES, published, table1
from reproduce.claims.claim import Claim, Rule
from reproduce.claims.evidence import TRIVIAL, Evidence, chance, other_seeds, shifted
from reproduce.claims.measures import (
    STEADY,
    at,
    difference,
    each,
    falls,
    final,
    gain,
    over,
    roughness,
)
from reproduce.claims.parts import Part
from reproduce.protocols import Case

_LATE = (350, 500)
"""The end of training, of `STEADY`'s updates."""

_SGD = table1("sgd")
_OTHER_SGD = {"SGD under other seeds": other_seeds(_SGD)}


def _comparable(evidence: Evidence, row: str) -> list[Part]:
    """The gate of what is held against SGD: it ends near SGD and gains as much on the way."""
    ours, sgd = evidence.curves(table1(row)), evidence.curves(_SGD)
    ends, gains = difference(final, ours, sgd), difference(gain(100, 500), ours, sgd)
    bounds = (-COMPARABLE, COMPARABLE)
    return [
        Part(f"{NAMES[row]} less SGD at the end", ends, *bounds),
        Part(f"{NAMES[row]}'s gain from 100 to 500 less SGD's", gains, *bounds),
    ]


def learns(evidence: Evidence, *cases: Case) -> list[Part]:
    """The gate of what trains at all."""
    return [
        Part("mean accuracy at the end", each(final, evidence.curves(case)), low=LEARNS)
        for case in cases
    ]


# Claim 3: stability.


def _sgd_is_stable(evidence: Evidence) -> list[Part]:
    curves = evidence.curves(_SGD)
    early = (STEADY[0], _LATE[0])
    return [
        Part(
            "SGD's second differences from 200 to 500",
            each(roughness(*STEADY), curves),
            high=WOBBLE,
        ),
        Part(
            "those from 350 to 500 less those from 200 to 350",
            [
                late - before
                for late, before in zip(
                    each(roughness(*_LATE), curves), each(roughness(*early), curves), strict=True
                )
            ],
            high=0.0,
        ),
    ]


def _against_sgd(key: str, row: str, statement: str, name: str, topic: int) -> Claim:
    """Held against SGD seed by seed: less second differences, or less falls."""
    measure = roughness(*STEADY) if topic == 3 else falls(*STEADY)

    def rule(evidence: Evidence) -> list[Part]:
        ours, sgd = evidence.curves(table1(row)), evidence.curves(_SGD)
        return [
            Part(f"{name} from 200 to 500 less SGD's", difference(measure, ours, sgd), high=0.0)
        ]

    return Claim(
        f"{key}.{row}",
        topic,
        f"{statement}: {NAMES[row]}",
        "Section 6.2" if topic == 3 else "Section 6",
        rule,
        gate=lambda evidence: _comparable(evidence, row),
        own=[table1(row)],
        controls={**TRIVIAL, **_OTHER_SGD},
        seeds=20,
    )


STABILITY = (
    Claim(
        "stable.sgd",
        3,
        "SGD behaves in a stable way, towards the end above all",
        "Section 6.2",
        _sgd_is_stable,
        gate=lambda evidence: [
            *learns(evidence, _SGD),
            Part(
                "SGD's gain from 100 to 500",
                each(gain(100, 500), evidence.curves(_SGD)),
                low=COMPARABLE,
            ),
        ],
        own=[_SGD],
        controls=TRIVIAL,
        seeds=20,
    ),
    *(
        _against_sgd("stabler", row, "SGLD is more stable than SGD", "second differences", 3)
        for row in NOISES
    ),
)
MONOTONICITY = tuple(
    _against_sgd(
        "monotone",
        row,
        "the monotone decrease of the regularized loss shows as held-out accuracy that falls less "
        "than SGD's",
        "mean fall",
        11,
    )
    for row in METHODS
)


# Claim 4: speed.


_BEARING = {
    "is": ("R2 sum", "R8 normal", "R8 uniform"),
    "hr": ("R5 growing", "R8 normal", "R8 uniform"),
}
"""The readings that touch a row's speed, by their names in `make readings`."""


def _slower(row: str, noise: str) -> Claim:
    others = ("sgd", noise)

    def rule(evidence: Evidence) -> list[Part]:
        ours = evidence.curves(table1(row))
        parts = []
        for other in others:
            theirs, title = evidence.curves(table1(other)), f"{NAMES[row]} less {NAMES[other]}"
            early = difference(at(100), ours, theirs)
            nearer = difference(gain(100, 500), ours, theirs)
            parts.append(Part(f"{title} at 100", early, high=0.0))
            parts.append(Part(f"{title}, gain from 100 to 500", nearer, low=0.0))
        return parts

    return Claim(
        f"slower.{row}.{noise}",
        4,
        f"{NAMES[row]} trains more slowly than SGD and {NAMES[noise]}, most of all at the start",
        "Section 6.2",
        rule,
        gate=lambda evidence: learns(evidence, table1(row)),
        own=[table1(row)],
        controls={**TRIVIAL, **_OTHER_SGD},
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
        ours, sgd = evidence.curves(table1(row)), evidence.curves(_SGD)
        return [
            Part(f"{NAMES[row]} less SGD at {one}", difference(at(one), ours, sgd), low=-NEAR)
            for one in COLUMNS
        ]

    def gate(evidence: Evidence) -> list[Part]:
        ours, sgd = evidence.curves(table1(row)), evidence.curves(_SGD)
        start = difference(at(0), ours, sgd)
        return [Part(f"{NAMES[row]} less SGD before the first update", start, -LEVEL, LEVEL)]

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
    ours, hr = evidence.curves(table1("is")), evidence.curves(table1("hr"))
    return [Part("IS less HR at 100", difference(at(100), ours, hr), high=0.0)]


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
        controls={**TRIVIAL, **_OTHER_SGD},
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
        gate=lambda evidence: [
            Part(
                "IS's gain from 100 to 500",
                each(gain(100, 500), evidence.curves(table1("is"))),
                low=COMPARABLE,
            )
        ],
        own=[table1("is")],
        controls={**TRIVIAL, **_OTHER_SGD},
        published=published("is"),
        seeds=20,
        bears=_BEARING["is"],
    ),
    *map(_on_a_par, METHODS),
)


# Claim 13: the abstract's conclusion.


def _does_not_outperform(row: str) -> Claim:
    def rule(evidence: Evidence) -> list[Part]:
        ours, sgd = evidence.curves(table1(row)), evidence.curves(_SGD)
        return [
            Part(f"{NAMES[row]} less SGD at the end", difference(final, ours, sgd), high=LEVEL),
            Part(
                f"{NAMES[row]} less SGD on average from 100 to 500",
                difference(over(100, 500), ours, sgd),
                high=LEVEL,
            ),
        ]

    return Claim(
        f"outperform.{row}",
        13,
        f"regularized methods do not clearly outperform SGD: {NAMES[row]}",
        "Introduction",
        rule,
        gate=lambda evidence: learns(evidence, table1(row)),
        own=[table1(row)],
        controls={"a chance curve": chance, "a clear winner": shifted(_SGD, 2 * LEVEL)},
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
