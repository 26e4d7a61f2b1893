"""Figure 6: each method with 10, 100 and 1000 samples per weight update (Section 6.4)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from reproduce.experiments import panels
from reproduce.protocols import (
    VARIANTS,
    Comparison,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
    Panels,
    Training,
)
from reproduce.summary import ROW_TITLES

NAME = "figure6"
TITLE = "Figure 6"


def heat_regularization(samples: int) -> HeatRegularizationByRobbinsMonro:
    """Returns HR with M = J = floor(sqrt(samples)), as Section 6.4 has it (R12)."""
    side = math.isqrt(samples)
    return HeatRegularizationByRobbinsMonro(steps=side, samples=side)


def protocol(training: Training, samples: Sequence[int]) -> Panels:
    """Returns a panel per method, a line per number of samples."""
    sides = ", ".join(str(heat_regularization(s).steps) for s in samples)
    methods: dict[str, Callable[[int], Method]] = {
        "IS": lambda s: LocalEntropyByImportanceSampling(samples=s),
        f"HR, M = J = floor(sqrt(S)): {sides}": heat_regularization,
        ROW_TITLES["sgld"]: lambda s: LocalEntropyBySGLD(samples=s),
        ROW_TITLES["sgld-linear"]: lambda s: LocalEntropyBySGLD(
            samples=s, **VARIANTS["sgld-linear"]
        ),
    }
    return Panels(
        {
            title: Comparison(training, {f"S = {s}": method(s) for s in samples})
            for title, method in methods.items()
        }
    )


PROTOCOL = protocol(Training(), (10, 100, 1000))  # caption of Figure 6
"""The methods' stability, at the paper's budget."""

QUICK = protocol(Training(updates=6, test_images=100, evaluate_every=2), (2, 4, 9))
"""The same at a budget for a first look; not the paper's."""

_NOTES = (
    "Reading R12: J of IS and SGLD is S; HR has M = J = floor(sqrt(S)), 31 at S = 1000, where "
    "Table 1 has 30.",
)

jobs = panels.jobs
recorded = panels.recorded
render = partial(panels.render, panels.PanelFigure(NAME, TITLE, PROTOCOL, QUICK, _NOTES))
