"""Figures 6 to 8: samples per weight update, tau and schedules of tau (Sections 6.4, 6.5, 6.5.1).

Of each method a panel, or several, with a line for each value.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reproduce.experiments.panels import PanelFigure
from reproduce.protocols import (
    VARIANTS,
    Comparison,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
    Panels,
    Training,
)
from reproduce.summary import ROW_TITLES, Panel

TAUS: Mapping[str, tuple[float, ...]] = {
    "τ in [0.001, 0.01]": (0.001, 0.003, 0.01),
    "τ in [0.01, 0.1]": (0.01, 0.03, 0.1),
    "τ in [0.1, 1]": (0.1, 0.3, 1.0),
}
"""The caption's intervals; which values were taken is not stated: both ends and one between."""

_SAMPLES = 1000  # Section 6.2; not stated for Figures 7 and 8
_QUICK = Training(updates=6, test_images=100, evaluate_every=2)
_QUICK_SAMPLES = 4
_EVERY = 10
"""Weight updates between two points of a schedule as it is drawn."""


@dataclass(frozen=True)
class ScopedMethod:
    """tau(k) = tau0 / (1 + tau1)^k at weight update k = 0, 1, ..., Section 6.5.1's schedule.

    Args:
        tau0: tau at the first weight update.
        tau1: Rate of decay; 0 keeps tau, negative values let it grow.
    """

    tau0: float
    tau1: float = 0.0

    def at(self, k: int) -> float:
        """Returns tau at weight update k, counted from 0."""
        return self.tau0 / (1.0 + self.tau1) ** k


SCOPINGS = {
    "τ = 0.01": ScopedMethod(0.01),
    "τ = 1.5": ScopedMethod(1.5),
    # Not stated: tau1 such that tau would be 1.5 at k = 500, after the last update (R11).
    "τ: 0.01 → 1.5": ScopedMethod(0.01, -0.00997),
    # The text's tau0 and tau1, which end at 0.0105; the caption has 1.5 -> 0.001 (R11).
    "τ: 1.5 → 0.01": ScopedMethod(1.5, 0.01),
}
"""The panels of Figure 8."""


def heat_regularization(samples: int) -> HeatRegularizationByRobbinsMonro:
    """Returns HR with M = J = floor(sqrt(samples)), as Section 6.4 has it (R12)."""
    side = math.isqrt(samples)
    return HeatRegularizationByRobbinsMonro(steps=side, samples=side)


_Methods = Mapping[str, Callable[..., Method]]
SGLD = {
    row: partial(LocalEntropyBySGLD, **VARIANTS.get(row, {})) for row in ("sgld", "sgld-linear")
}
"""The method under both readings of its noise, by row."""

_TITLED: _Methods = {ROW_TITLES[row]: method for row, method in SGLD.items()}


def by_samples(training: Training, samples: Sequence[int]) -> Panels:
    """Returns a panel per method, a line per number of samples."""
    sides = ", ".join(str(heat_regularization(s).steps) for s in samples)
    methods: _Methods = {
        "IS": LocalEntropyByImportanceSampling,
        f"HR, M = J = floor(sqrt(S)): {sides}": heat_regularization,
        **_TITLED,
    }
    return Panels(
        {
            title: Comparison(training, {f"S = {s}": method(samples=s) for s in samples})
            for title, method in methods.items()
        }
    )


def by_tau(training: Training, samples: int) -> Panels:
    """Returns a panel per method and interval, a line per tau."""
    return Panels(
        {
            f"{title}, {interval}": Comparison(
                training, {f"τ = {tau:g}": method(tau=tau, samples=samples) for tau in taus}
            )
            for title, method in {**_TITLED, "IS": LocalEntropyByImportanceSampling}.items()
            for interval, taus in TAUS.items()
        }
    )


def by_schedule(training: Training, samples: int) -> Panels:
    """Returns a panel per schedule: SGD, and SGLD in both readings of its noise."""

    def methods(scoping: ScopedMethod) -> dict[str, Method]:
        settings: Any = {"tau": scoping.tau0, "samples": samples, "tau1": scoping.tau1}
        scoped = {row: method(**settings) for row, method in SGLD.items()}
        return {"sgd": GradientDescent(), **scoped}

    return Panels({title: Comparison(training, methods(one)) for title, one in SCOPINGS.items()})


def scheduled(shown: Sequence[Panel]) -> list[Panel]:
    """Returns Figure 8's panels, each with its schedule of tau."""
    return [
        replace(
            one, schedule={k: SCOPINGS[one.title].at(k) for k in range(0, max(one.columns), _EVERY)}
        )
        for one in shown
    ]


FIGURE6 = PanelFigure(
    "figure6",
    "Figure 6",
    by_samples(Training(), (10, 100, 1000)),  # caption of Figure 6
    by_samples(_QUICK, (2, 4, 9)),
    (
        "Reading R12: J of IS and SGLD is S; HR has M = J = floor(sqrt(S)), 31 at S = 1000, where "
        "Table 1 has 30.",
    ),
)

FIGURE7 = PanelFigure(
    "figure7",
    "Figure 7",
    by_tau(replace(Training(), network="small_dense"), _SAMPLES),  # caption of Figure 7
    by_tau(replace(_QUICK, network="small_dense"), _QUICK_SAMPLES),
    (
        "The values of tau within the caption's intervals are not stated; shown are both ends and "
        "one between. Samples and updates are those of Section 6.2.",
    ),
    columns=3,
)

FIGURE8 = PanelFigure(
    "figure8",
    "Figure 8",
    by_schedule(Training(), _SAMPLES),  # caption of Figure 8
    by_schedule(_QUICK, _QUICK_SAMPLES),
    (
        "Reading R11: 1.5 -> 0.01 is the text's schedule, tau0 = 1.5 and tau1 = 0.01, which ends "
        "at 0.0105; the caption has 1.5 -> 0.001.",
        "Reading R11: 0.01 -> 1.5, whose constants are not stated, is tau0 = 0.01 and "
        "tau1 = -0.00997, which ends at 1.48.",
        "SGD has the colour that it has in all figures; the caption has it in blue. τ(k) stands "
        "below each panel.",
    ),
    views=scheduled,
)
