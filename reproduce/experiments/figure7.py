"""Figure 7: the small network with tau from very small to large (Section 6.5)."""

from collections.abc import Callable, Mapping
from functools import partial

from reproduce.experiments import panels
from reproduce.protocols import (
    VARIANTS,
    Comparison,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
    Panels,
    Training,
)
from reproduce.summary import ROW_TITLES

NAME = "figure7"
TITLE = "Figure 7"

TAUS: Mapping[str, tuple[float, ...]] = {
    "τ in [0.001, 0.01]": (0.001, 0.003, 0.01),
    "τ in [0.01, 0.1]": (0.01, 0.03, 0.1),
    "τ in [0.1, 1]": (0.1, 0.3, 1.0),
}
"""The caption's intervals; which values were taken is not stated: both ends and one between."""


def protocol(training: Training, samples: int) -> Panels:
    """Returns a panel per method and interval, a line per tau."""
    methods: dict[str, Callable[[float], Method]] = {
        ROW_TITLES["sgld"]: lambda tau: LocalEntropyBySGLD(tau, samples),
        ROW_TITLES["sgld-linear"]: lambda tau: LocalEntropyBySGLD(
            tau, samples, **VARIANTS["sgld-linear"]
        ),
        "IS": lambda tau: LocalEntropyByImportanceSampling(tau, samples),
    }
    return Panels(
        {
            f"{title}, {interval}": Comparison(training, {f"τ = {tau:g}": of(tau) for tau in taus})
            for title, of in methods.items()
            for interval, taus in TAUS.items()
        }
    )


PROTOCOL = protocol(Training(network="small_dense"), 1000)  # caption of Figure 7; J not stated
"""The choice of tau, at the paper's budget."""

QUICK = protocol(
    Training(network="small_dense", updates=6, test_images=100, evaluate_every=2), samples=4
)
"""The same at a budget for a first look; not the paper's."""

_NOTES = (
    "The values of tau within the caption's intervals are not stated; shown are both ends and one "
    "between. Samples and updates are those of Section 6.2.",
)

jobs = panels.jobs
recorded = panels.recorded
render = partial(panels.render, panels.PanelFigure(NAME, TITLE, PROTOCOL, QUICK, _NOTES, columns=3))
