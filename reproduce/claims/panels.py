"""Claims 6, 7 and 10: after SGD, numbers of samples, Section 6.1's accuracies."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from reproduce import paper
from reproduce.claims.claim import Claim, Judgement
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import (
    Curves,
    Number,
    at,
    difference,
    drop,
    each,
    final,
    shared,
    within,
)
from reproduce.claims.training import NOISE_READINGS, SGLD_NOISES
from reproduce.experiments import figure5, figure6, section61
from reproduce.protocols import (
    VARIANTS,
    Comparison,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)

LEVEL = 0.01
"""Accuracies no further apart are level; a method is better, or ends below, by more than this."""

REPORTED = 0.005
"""How near an accuracy of Section 6.1 must be."""

_END = "the mean accuracy over the last 50 updates"

_AFTER = figure5.PROTOCOL.panels["SGD, then each method"]
_SAMPLED = next(iter(figure6.PROTOCOL.panels.values())).training


def sgld(noise: str, **settings: Any) -> LocalEntropyBySGLD:
    """Returns SGLD under a reading of its noise, with other settings than Table 1's."""
    return replace(LocalEntropyBySGLD(**VARIANTS.get(noise, {})), **settings)


def curves_of(comparison: Comparison, evidence: Evidence, name: str) -> Curves:
    """Returns the curves of a row of a comparison."""
    return evidence.curves(comparison.training, comparison.methods[name])


# Claim 6: after SGD.


def _better_than_hr(name: str) -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        gap = difference(
            final, curves_of(_AFTER, evidence, name), curves_of(_AFTER, evidence, "hr")
        )
        return Judgement(f"ahead of HR by {gap}", gap.value > 0.0)

    return Claim(
        6,
        f"after SGD, {name} does better than HR",
        "Section 6.3",
        f"{_END} is larger",
        judge,
        "R1 for SGLD, R2 for IS; how many SGD updates come first is not stated",
    )


def _hr_stays(evidence: Evidence) -> Judgement:
    curves = curves_of(_AFTER, evidence, "hr")
    start = each(at(_AFTER.training.sgd_updates), curves)
    change = each(final, curves).value - start.value
    return Judgement(f"from {start} by {change:+.3f}", abs(change) <= LEVEL)


def _none_beats_sgd(evidence: Evidence) -> Judgement:
    sgd = curves_of(_AFTER, evidence, "sgd")
    gaps = {
        name: difference(final, curves_of(_AFTER, evidence, name), sgd)
        for name in _AFTER.methods
        if name != "sgd"
    }
    shown = "; ".join(f"{name} {gap}" for name, gap in gaps.items())
    return Judgement(f"ahead of SGD: {shown}", all(gap.value <= LEVEL for gap in gaps.values()))


AFTER_SGD = (
    *map(_better_than_hr, ("is", "sgld", "sgld-linear")),
    Claim(
        6,
        "HR stays where SGD left it",
        "Section 6.3",
        f"{_END} within {LEVEL} of the accuracy at the switch",
        _hr_stays,
        "how many SGD updates come first is not stated",
    ),
    Claim(
        6,
        "no method clearly beats going on with SGD",
        "Section 6.3",
        f"{_END} at most {LEVEL} above SGD's",
        _none_beats_sgd,
    ),
)


# Claim 7: samples.


def _growing(title: str, methods: tuple[Method, ...], rule: str, reading: str) -> Claim:
    """Faster and less noisy from each number of samples to the next."""

    def judge(evidence: Evidence) -> Judgement:
        runs = shared([evidence.curves(_SAMPLED, method) for method in methods])
        whole = within(0, _SAMPLED.updates)
        speeds, falls = [each(whole, one) for one in runs], [each(drop, one) for one in runs]
        shown = f"mean accuracy {_arrows(speeds)}; mean fall {_arrows(falls, '.4f')}"
        return Judgement(shown, _ordered(speeds, 1) and _ordered(falls, -1))

    return Claim(7, title, "Section 6.4", rule, judge, reading)


def _sgld_gains(noise: str) -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        few = evidence.curves(_SAMPLED, sgld(noise, samples=10))
        many = evidence.curves(_SAMPLED, sgld(noise, samples=100))
        speed = difference(within(0, _SAMPLED.updates), many, few)
        end = difference(final, many, few)
        return Judgement(
            f"mean accuracy {speed.value:+.3f}, end {end.value:+.3f}",
            speed.value > 0.0 and end.value > 0.0,
        )

    return Claim(
        7,
        f"SGLD gains from 10 to 100 samples ({SGLD_NOISES[noise]})",
        "Section 6.4",
        f"a larger mean accuracy over training, and {_END} is larger",
        judge,
        NOISE_READINGS[noise],
    )


def _hr_slows(evidence: Evidence) -> Judgement:
    runs = shared(
        [evidence.curves(_SAMPLED, figure6.heat_regularization(s)) for s in (10, 100, 1000)]
    )
    speeds = [each(within(0, _SAMPLED.updates), one) for one in runs]
    falls = [each(drop, one) for one in runs]
    shown = f"mean accuracy {_arrows(speeds)}; mean fall {_arrows(falls, '.4f')}"
    return Judgement(shown, _ordered(speeds, -1) and _ordered(falls, -1))


SAMPLES = (
    _growing(
        "IS gets faster and less noisy with more samples (10, 100, 1000)",
        tuple(LocalEntropyByImportanceSampling(samples=s) for s in (10, 100, 1000)),
        "the mean accuracy over training rises, the mean fall between measurements falls",
        "R2: with the sum of losses few samples count",
    ),
    *map(_sgld_gains, SGLD_NOISES),
    Claim(
        7,
        "HR gets slower and less oscillating with longer chains (M = J = 3, 10, 31)",
        "Section 6.4",
        "the mean accuracy over training falls, and so does the mean fall between measurements",
        _hr_slows,
        "without noise, decaying steps (R5) cover 0.19, 0.34 and 0.49 of the way to the fixed "
        "point: longer chains make larger steps",
    ),
)


# Claim 10: Section 6.1.


def _accuracies(evidence: Evidence, comparison: Comparison) -> Mapping[str, float]:
    """The accuracy at the end, by learning rate."""
    last = comparison.training.updates
    return {
        name: each(at(last), curves_of(comparison, evidence, name)).value
        for name in comparison.methods
    }


_SMALL_NETWORK, _HIDDEN_NETWORK = section61.PROTOCOL.panels.values()


def _reaches(evidence: Evidence) -> Judgement:
    ends = _accuracies(evidence, _SMALL_NETWORK)
    wanted = paper.SECTION_6_1["small_dense"]
    return Judgement(_listed(ends), any(abs(end - wanted) <= REPORTED for end in ends.values()))


def _at_best(evidence: Evidence) -> Judgement:
    ends = _accuracies(evidence, _HIDDEN_NETWORK)
    return Judgement(_listed(ends), max(ends.values()) <= paper.SECTION_6_1["hidden_dense"])


SECTION61 = (
    Claim(
        10,
        "the small network reaches 0.912 in 5 epochs of SGD",
        "Section 6.1",
        f"some learning rate of the grid ends within {REPORTED}",
        _reaches,
        "the learning rate is not stated",
    ),
    Claim(
        10,
        "the larger one reaches 0.989 at best",
        "Section 6.1",
        "no learning rate of the grid ends above it after 5 epochs",
        _at_best,
        "an expectation; the learning rate and the epochs are not stated",
    ),
)


def _listed(ends: Mapping[str, float]) -> str:
    return "; ".join(f"{name} {end:.3f}" for name, end in ends.items())


def _arrows(numbers: list[Number], form: str = ".3f") -> str:
    return " → ".join(format(number, form) for number in numbers)


def _ordered(numbers: list[Number], direction: int) -> bool:
    """Whether the numbers rise strictly (direction 1) or fall (-1)."""
    return all(direction * (b.value - a.value) > 0 for a, b in pairwise(numbers))
