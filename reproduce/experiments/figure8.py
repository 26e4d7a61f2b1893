"""Figure 8: SGLD with tau held and with tau scoped, beside SGD (Section 6.5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from reproduce.experiments import panels
from reproduce.protocols import (
    VARIANTS,
    Comparison,
    GradientDescent,
    LocalEntropyBySGLD,
    Panels,
    Training,
)
from reproduce.summary import Panel

NAME = "figure8"
TITLE = "Figure 8"

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


def protocol(training: Training, samples: int) -> Panels:
    """Returns a panel per schedule: SGD, and SGLD in both readings of its noise."""

    def methods(scoping: ScopedMethod) -> Comparison:
        printed = LocalEntropyBySGLD(scoping.tau0, samples, tau1=scoping.tau1)
        linear = LocalEntropyBySGLD(
            scoping.tau0, samples, tau1=scoping.tau1, **VARIANTS["sgld-linear"]
        )
        return Comparison(
            training, {"sgd": GradientDescent(), "sgld": printed, "sgld-linear": linear}
        )

    return Panels({title: methods(scoping) for title, scoping in SCOPINGS.items()})


PROTOCOL = protocol(Training(), 1000)  # caption of Figure 8; J not stated, as in Section 6.2
"""Scoping, at the paper's budget."""

QUICK = protocol(Training(updates=6, test_images=100, evaluate_every=2), samples=4)
"""The same at a budget for a first look; not the paper's."""

_NOTES = (
    "Reading R11: 1.5 -> 0.01 is the text's schedule, tau0 = 1.5 and tau1 = 0.01, which ends at "
    "0.0105; the caption has 1.5 -> 0.001.",
    "Reading R11: 0.01 -> 1.5, whose constants are not stated, is tau0 = 0.01 and "
    "tau1 = -0.00997, which ends at 1.48.",
    "SGD has the colour that it has in all figures; the caption has it in blue. τ(k) stands below "
    "each panel.",
)


def views(shown: Sequence[Panel]) -> list[Panel]:
    """Returns the panels, each with its schedule of tau."""
    return [
        replace(
            one, schedule={k: SCOPINGS[one.title].at(k) for k in range(0, max(one.columns), _EVERY)}
        )
        for one in shown
    ]


jobs = panels.jobs
recorded = panels.recorded
render = partial(
    panels.render, panels.PanelFigure(NAME, TITLE, PROTOCOL, QUICK, _NOTES), views=views
)
