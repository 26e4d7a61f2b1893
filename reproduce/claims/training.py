"""Claims 3, 4 and 11: the methods from random weights (Section 6.2, Table 1's runs)."""

from reproduce.claims.claim import Claim, Judgement
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import (
    Curves,
    Number,
    at,
    difference,
    drop,
    drop_after,
    each,
    linearity,
    share_of_rises,
)
from reproduce.experiments import table1
from reproduce.summary import TITLES

STEADY = 0.01
"""The largest mean fall between measurements, 10 updates apart, that counts as stable."""

STRAIGHT = 0.9
"""The least R^2 of a straight line that counts as a nearly constant rate."""

SGLD_NOISES = {"sgld": "noise as printed", "sgld-linear": "noise=linear"}

NOISE_READINGS = {"sgld": "the printed noise (R1) hides the gradient", "sgld-linear": ""}
"""What could explain a disagreement: the noise as printed does not explain one without it."""


def curves(evidence: Evidence, name: str) -> Curves:
    """Returns the curves of a row of Table 1."""
    return evidence.curves(table1.PROTOCOL.training, table1.PROTOCOL.methods[name])


def _sgd_is_stable(evidence: Evidence) -> Judgement:
    fall = each(drop_after(300), curves(evidence, "sgd"))
    return Judgement(f"mean fall {fall:.4f}", fall.value <= STEADY)


def _sgld_is_stabler(name: str) -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        ours, theirs = curves(evidence, name), curves(evidence, "sgd")
        gap = difference(drop, ours, theirs)
        return Judgement(
            f"mean fall above SGD's by {gap:.4f}; SGD's {each(drop, theirs):.4f}", gap.value < 0.0
        )

    return Claim(
        3,
        f"SGLD is more stable than SGD throughout training ({SGLD_NOISES[name]})",
        "Section 6.2",
        "a smaller mean fall of accuracy between measurements, over the whole curve",
        judge,
        NOISE_READINGS[name],
    )


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
        return Judgement(
            shown,
            all(early.value > max(late.value, 0.0) for early, late in gaps.values()),
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
    return Judgement(f"R² of a straight line {straight}", straight.value >= STRAIGHT)


def _monotone(name: str) -> Claim:
    title = TITLES[name.partition("-")[0]] + (" (noise=linear)" if "-" in name else "")

    def judge(evidence: Evidence) -> Judgement:
        share: Number = each(share_of_rises, curves(evidence, name))
        return Judgement(f"at {share} of the measurements it had not fallen", share.value == 1.0)

    return Claim(
        11,
        f"the monotone decrease of the regularized loss shows as monotone held-out error: {title}",
        "Section 6",
        "held-out accuracy never falls from one measurement to the next, 10 updates apart",
        judge,
        "each weight update sees another minibatch and an estimated mean",
    )


STABILITY = (
    Claim(
        3,
        "SGD behaves in a stable way, towards the end above all",
        "Section 6.2",
        f"mean fall of accuracy between measurements after update 300 at most {STEADY}",
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
        f"R² of a straight line through the curve at least {STRAIGHT}",
        _constant_rate,
        "R2: with the mean loss IS starts faster",
    ),
)
MONOTONICITY = tuple(map(_monotone, ("is", "sgld", "sgld-linear", "hr")))
