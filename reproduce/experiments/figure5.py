"""Figure 5: SGD first, then each method from the weights that SGD reached (Section 6.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reproduce.experiments.panels import PanelFigure
from reproduce.protocols import TABLE1, Comparison, LocalEntropyBySGLD, Panels, Training
from reproduce.summary import MethodRow, Panel

_OFFSET = 2000.0  # caption of Figure 5
_NEAR = 0.04
"""Differences from SGD that the closest view shows, to either side."""

TRAINING = Training(
    sgd_updates=3000,  # not stated; one epoch of 60,000 images in batches of 20
    sgd_learning_rate=0.01,  # caption of Figure 5: the methods' tau
    updates=500,  # not stated; as in Figure 4
    tabulated=(3000, 3100, 3200, 3300, 3400, 3500),
)

_TITLE = "SGD, then each method"
_WHOLE = Comparison(
    TRAINING,
    {  # SGD is the control, which the paper does not show
        row: replace(method, offset=_OFFSET) if isinstance(method, LocalEntropyBySGLD) else method
        for row, method in TABLE1.methods.items()
    },
)

PROTOCOL = Panels({_TITLE: _WHOLE})
"""After SGD, at the paper's budget."""

_SHORT = replace(TRAINING, sgd_updates=20, updates=5, test_images=100, evaluate_every=5)
QUICK = Panels({_TITLE: replace(_WHOLE.with_budget(samples=4), training=_SHORT)})
"""The same at a budget for a first look; not the paper's."""

_NOTES = (
    "Reading: how many updates by SGD come first, which Section 6.3 leaves open: one epoch, "
    "3000 updates (sgd_updates=3000), then 500 by each method, all from the same weights on the "
    "same minibatches.",
    "The row SGD is the control that the paper lacks: SGD goes on. The figure shows differences "
    "from it on the same seed, that is on the same minibatches and test images.",
)


def views(shown: Sequence[Panel]) -> list[Panel]:
    """Returns the panel, and the methods' part as differences from SGD that went on, seed by seed.

    The differences are shown as a whole and from close.
    """
    (whole,) = shown
    sgd = next(row for row in whole.rows if row.name == "sgd")
    part = replace(
        whole,
        title="minus SGD's accuracy, seed by seed",
        rows=[_minus(row, sgd.curves, whole.switch) for row in whole.rows],
        first=whole.switch,
        measure="difference in accuracy",
        limits=(None, None),
    )
    return [whole, part, replace(part, title="the same, from close", limits=(-_NEAR, _NEAR))]


def _minus(row: MethodRow, sgd: Mapping[int, Mapping[int, float]], switch: int) -> MethodRow:
    curves = {
        seed: {
            update: accuracy - sgd[seed][update]
            for update, accuracy in curve.items()
            if update >= switch and update in sgd.get(seed, {})
        }
        for seed, curve in row.curves.items()
    }
    return replace(row, curves=curves)


FIGURE = PanelFigure("figure5", "Figure 5", PROTOCOL, QUICK, _NOTES, columns=3, views=views)
