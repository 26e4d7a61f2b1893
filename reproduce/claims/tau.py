"""Claims 8 and 9: the choice and the scoping of tau (Section 6.5)."""

from collections.abc import Mapping

from reproduce.claims.claim import Claim, Judgement
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import (
    Curves,
    difference,
    drop,
    each,
    every,
    final,
    largest_gap,
    linearity,
    over_seeds,
    shared,
    within,
)
from reproduce.claims.panels import LEVEL, curves_of, sgld
from reproduce.claims.training import NOISE_READINGS, SGLD_NOISES, STRAIGHT
from reproduce.experiments import figure7, figure8
from reproduce.protocols import LocalEntropyByImportanceSampling

NEAR = 0.03
"""Accuracies no further apart are near each other."""

POOR = 0.5
"""A method that ends no higher has failed."""

_SMALL = next(iter(figure7.PROTOCOL.panels.values())).training
_SCOPED = {
    name: figure8.PROTOCOL.panels[title]
    for name, title in zip(("0.01", "1.5", "up", "down"), figure8.SCOPINGS, strict=True)
}


# Claim 8: tau on the small network.


def _taus(evidence: Evidence, method: str, taus: tuple[float, ...]) -> Mapping[float, Curves]:
    runs = [
        evidence.curves(
            _SMALL,
            LocalEntropyByImportanceSampling(tau) if method == "is" else sgld(method, tau=tau),
        )
        for tau in taus
    ]
    return dict(zip(taus, shared(runs), strict=True))


_INTERVALS = tuple(figure7.TAUS.values())
_ALL_TAUS = tuple(dict.fromkeys(tau for taus in _INTERVALS for tau in taus))


def _small_tau(noise: str) -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        small, large = _INTERVALS[0], _INTERVALS[1][-1]
        runs = _taus(evidence, noise, (*small, large))
        straight = {tau: each(linearity, runs[tau]) for tau in small}
        gaps = {tau: difference(final, runs[large], runs[tau]) for tau in small}
        shown = "; ".join(
            f"tau = {tau:g}: R² {straight[tau]}, behind tau = {large:g} by {gaps[tau]}"
            for tau in small
        )
        return Judgement(
            shown,
            every(
                *(number.above(STRAIGHT) for number in straight.values()),
                *(gap.above(0.0) for gap in gaps.values()),
            ),
        )

    return Claim(
        8,
        f"SGLD improves slowly and almost linearly at tau in [0.001, 0.01] ({SGLD_NOISES[noise]})",
        "Section 6.5",
        f"at each tau, R² of a straight line above {STRAIGHT}, and it ends below tau = 0.1",
        judge,
        NOISE_READINGS[noise],
    )


def _saturates(noise: str) -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        first, _, last = _INTERVALS[2]
        runs = _taus(evidence, noise, (first, last))
        gap = largest_gap(runs[first], runs[last])
        return Judgement(f"largest gap {gap}", gap.within(NEAR))

    return Claim(
        8,
        f"SGLD saturates as tau grows ({SGLD_NOISES[noise]})",
        "Section 6.5",
        f"the mean curves of tau = 0.1 and 1 are never more than {NEAR} apart",
        judge,
        NOISE_READINGS[noise],
    )


def _is_fails(evidence: Evidence) -> Judgement:
    runs = _taus(evidence, "is", (*_INTERVALS[0], _INTERVALS[1][-1]))
    ends = {tau: each(final, runs[tau]) for tau in _INTERVALS[0]}
    falls = {tau: each(drop, one) for tau, one in runs.items()}
    shown = "; ".join(
        f"tau = {tau:g}: ends at {end}, falls {falls[tau]:.4f}" for tau, end in ends.items()
    )
    last = _INTERVALS[1][-1]
    shown += f"; tau = {last:g}: falls {falls[last]:.4f}"
    excess = difference(drop, runs[_INTERVALS[0][0]], runs[last])
    return Judgement(shown, every(excess.above(0.0), *(end.at_most(POOR) for end in ends.values())))


def _is_is_best(evidence: Evidence) -> Judgement:
    runs = _taus(evidence, "is", _ALL_TAUS)
    ends = {tau: each(final, one) for tau, one in runs.items()}
    best = max(ends, key=lambda tau: ends[tau].value)
    others = [tau for tau in _ALL_TAUS if tau not in _INTERVALS[1]]
    lead = over_seeds(
        [
            max(final(runs[tau][seed]) for tau in _INTERVALS[1])
            - max(final(runs[tau][seed]) for tau in others)
            for seed in runs[best]
        ]
    )
    last = _ALL_TAUS[-1]
    return Judgement(
        f"best {ends[best]} at tau = {best:g}; the interval's best ahead of the others' by {lead}; "
        f"{ends[last]} at tau = {last:g}",
        every(lead.above(0.0), ends[last].at_most(POOR)),
    )


TAU = (
    *map(_small_tau, SGLD_NOISES),
    *map(_saturates, SGLD_NOISES),
    Claim(
        8,
        "IS fails at tau in [0.001, 0.01], with highly variable accuracy",
        "Section 6.5",
        f"it ends at {POOR} or lower at each tau, and falls more between measurements at "
        "tau = 0.001 than at 0.1",
        _is_fails,
        "R2: the mean of the losses or their sum",
    ),
    Claim(
        8,
        "IS is best around [0.01, 0.1] and poor for large tau",
        "Section 6.5",
        f"the largest end lies there, and tau = 1 ends at {POOR} or lower",
        _is_is_best,
        "R2: the mean of the losses or their sum",
    ),
)


# Claim 9: scoping.


def _scoped(statement: str, schedule: str, noise: str, rule: str, early: int, end: int) -> Claim:
    """Compares SGLD with SGD.

    Args:
        statement: The text's.
        schedule: Among `_SCOPED`.
        noise: The reading.
        rule: In words.
        early: Updates over which it must be ahead of SGD; negative: behind; 0: not stated.
        end: What must be at the end: 0 level with SGD, -1 below it.
    """

    def judge(evidence: Evidence) -> Judgement:
        comparison = _SCOPED[schedule]
        ours, sgd = curves_of(comparison, evidence, noise), curves_of(comparison, evidence, "sgd")
        gap = difference(final, ours, sgd)
        ahead = difference(within(0, abs(early) or comparison.training.updates), ours, sgd)
        parts = [gap.below(-LEVEL) if end < 0 else gap.within(NEAR)]
        if early:
            parts.append(ahead.above(0.0) if early > 0 else ahead.below(0.0))
        return Judgement(f"ahead of SGD by {ahead} on the way, {gap} at the end", every(*parts))

    return Claim(
        9,
        f"{statement} ({SGLD_NOISES[noise]})",
        "Section 6.5.1",
        rule,
        judge,
        NOISE_READINGS[noise],
    )


def _scopings(noise: str) -> tuple[Claim, ...]:
    below = f"ends more than {LEVEL} below SGD"
    level = f"ends within {NEAR} of SGD"
    return (
        _scoped("SGLD at tau = 0.01 ends near SGD", "0.01", noise, level, 0, 0),
        _scoped(
            "SGLD at tau = 1.5 is faster than SGD at first but does not reach its optimum",
            "1.5",
            noise,
            f"ahead on average over the first 100 updates, {below}",
            100,
            -1,
        ),
        _scoped(
            "SGLD with tau 0.01 → 1.5 is slower than SGD and ends below it",
            "up",
            noise,
            f"behind on average over the training, {below}",
            -500,
            -1,
        ),
        _scoped(
            "SGLD with tau 1.5 → 0.01 is faster early and ends level",
            "down",
            noise,
            f"ahead on average over the first 100 updates, {level}",
            100,
            0,
        ),
    )


SCOPING = tuple(claim for noise in SGLD_NOISES for claim in _scopings(noise))
