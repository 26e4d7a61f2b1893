"""Table 1's methods beside their algorithms with accurate means: beyond the paper.

Algorithms 1 and 2 ask for the mean of a density, which Algorithms 3, 4 and 5 estimate. How much of
a method's curve is its algorithm's and how much its estimate's shows beside a better estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reproduce.experiments import base
from reproduce.experiments.panels import PanelFigure
from reproduce.protocols import (
    TABLE1,
    HeatRegularizationSolved,
    LocalEntropyByGradients,
    Method,
    Panels,
)
from reproduce.records import Record

FIRST, SECOND = "Algorithm 1, accurate mean", "Algorithm 2, accurate mean"

ACCURATE: Mapping[str, Method] = {
    FIRST: LocalEntropyByGradients(samples=1000),
    SECOND: HeatRegularizationSolved(),
}
"""The algorithms at Table 1's tau, the error of their mean at most about a tenth of the step."""

ALGORITHM = {"is": FIRST, "sgld": FIRST, "hr": SECOND, "sgld-linear": FIRST}
"""Which of them each method carries out."""

_PANEL = "Table 1's methods, and their algorithms with accurate means"
_WHOLE = replace(TABLE1, methods={**TABLE1.methods, **ACCURATE})
_QUICK = replace(TABLE1.training, updates=6, test_images=100, evaluate_every=2)

FIGURE = PanelFigure(
    "exact",
    "Table 1 with accurate means",
    Panels({_PANEL: _WHOLE}),
    Panels({_PANEL: replace(_WHOLE.with_budget(samples=4), training=_QUICK)}),
    (
        "All rows share initial weights, minibatches and test images, seed by seed.",
        f"{FIRST}: by 1000 gradients at Algorithm 4's sample. {SECOND}: by Algorithm 5 with step "
        "sizes min(1/2, 1/j), until its own estimate of the relative error is 0.1. What the errors "
        "are is measured by `make estimators`.",
    ),
    columns=1,
)


def is_run(records: Sequence[Record], protocol: Panels) -> bool:
    """Whether every row has a record: without the algorithms it would be Table 1 again."""
    return len(base.recorded(records, protocol)) == len(protocol.cases())
