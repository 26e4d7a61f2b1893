"""Claims 3, 4 and 11: the methods from random weights (Section 6.2, Table 1's runs)."""

from reproduce import paper
from reproduce.claims.claim import Claim, Judgement
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import (
    Curve,
    Curves,
    at,
    difference,
    drop,
    each,
    every,
    largest_fall,
    linearity,
    share_of_rises,
    since,
)
from reproduce.experiments import table1
from reproduce.summary import TITLES

_LAST = paper.TABLE1["sgd"][500]
_IMAGES = table1.PROTOCOL.training.test_images
STEADY = 2 * (_LAST * (1 - _LAST) / _IMAGES) ** 0.5
"""The deepest fall that counts as none: two standard errors of SGD's last accuracy in Table 1."""

_STEADY = f"at most {STEADY:.3f}, two standard errors of an accuracy of {_LAST} on {_IMAGES} images"

STRAIGHT = 0.9
"""The least R^2 of a straight line, to be exceeded, that counts as a nearly constant rate."""

SGLD_NOISES = {"sgld": "noise as printed", "sgld-linear": "noise=linear"}

NOISE_READINGS = {"sgld": "the printed noise (R1) hides the gradient", "sgld-linear": ""}
"""What could explain a disagreement: the noise as printed does not explain one without it."""


def curves(evidence: Evidence, name: str) -> Curves:
    """Returns the curves of a row of Table 1."""
    return evidence.curves(table1.PROTOCOL.training, table1.PROTOCOL.methods[name])


def _sgd_is_stable(evidence: Evidence) -> Judgement:
    fall, whole = (
        each(measure, curves(evidence, "sgd"))
        for measure in (since(300, largest_fall), largest_fall)
    )
    return Judgement(f"largest fall {fall}; from the start {whole}", fall.at_most(STEADY))


def _sgld_is_stabler(name: str) -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        ours, theirs = curves(evidence, name), curves(evidence, "sgd")
        gap = difference(drop, ours, theirs)
        return Judgement(
            f"mean fall above SGD's by {gap:.4f}; SGD's {each(drop, theirs):.4f}", gap.below(0.0)
        )

    return Claim(
        3,
        f"SGLD is more stable than SGD throughout training ({SGLD_NOISES[name]})",
        "Section 6.2",
        "a smaller mean fall of accuracy between measurements, over the whole curve",
        judge,
        NOISE_READINGS[name],
    )


def _late_gain(curve: Curve) -> float:
    return curve[500] - curve[100]


def _slower(name: str) -> Claim:
    method = TITLES[name]

    def judge(evidence: Evidence) -> Judgement:
        ours = curves(evidence, name)
        gaps = {
            other: (
                difference(at(100), curves(evidence, other), ours),
                difference(at(500), curves(evidence, other), ours),
            )
            for other in ("sgd", "sgld-linear")
        }
        shown = "; ".join(
            f"behind {other} by {early} at 100, {late} at 500"
            for other, (early, late) in gaps.items()
        )
        narrowing = [
            difference(_late_gain, ours, curves(evidence, other)).above(0.0) for other in gaps
        ]
        return Judgement(
            shown, every(*(early.above(0.0) for early, _ in gaps.values()), *narrowing)
        )

    return Claim(
        4,
        f"{method} trains more slowly than SGD and SGLD, most of all at the start",
        "Section 6.2",
        "behind SGD and SGLD (noise=linear, which resembles the published row) at 100 updates, "
        "and by more than at 500",
        judge,
        "R2 for IS, R5 for HR",
    )


def _constant_rate(evidence: Evidence) -> Judgement:
    straight = each(linearity, curves(evidence, "is"))
    return Judgement(f"R² of a straight line {straight}", straight.above(STRAIGHT))


def _monotone(name: str) -> Claim:
    title = TITLES[name.partition("-")[0]] + (" (noise=linear)" if "-" in name else "")
    control = ", which no theorem speaks of: a control" if name == "sgd" else ""

    def judge(evidence: Evidence) -> Judgement:
        fall, share = (
            each(measure, curves(evidence, name)) for measure in (largest_fall, share_of_rises)
        )
        return Judgement(
            f"largest fall {fall}; at {share} of the measurements it had not fallen",
            fall.at_most(STEADY),
        )

    return Claim(
        11,
        f"the monotone decrease of the regularized loss shows as monotone held-out error: {title}"
        f"{control}",
        "Section 6",
        f"the largest fall of held-out accuracy below its best so far is {_STEADY}",
        judge,
        "each weight update sees another minibatch and an estimated mean",
    )


STABILITY = (
    Claim(
        3,
        "SGD behaves in a stable way, towards the end above all",
        "Section 6.2",
        f"after update 300 the largest fall of accuracy below its best so far is {_STEADY}",
        _sgd_is_stable,
        "1000 test images resolve 0.001",
    ),
    *map(_sgld_is_stabler, SGLD_NOISES),
)
SPEED = (
    _slower("is"),
    _slower("hr"),
    Claim(
        4,
        "IS improves at a nearly constant rate",
        "Section 6.2",
        f"R² of a straight line through the curve above {STRAIGHT}",
        _constant_rate,
        "R2: with the mean loss IS starts faster",
    ),
)
MONOTONICITY = tuple(map(_monotone, ("sgd", "is", "sgld", "sgld-linear", "hr")))
