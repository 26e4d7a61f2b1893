"""Figure 5: SGD first, then each method from the weights that SGD reached (Section 6.3)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from reproduce.experiments import panels
from reproduce.protocols import (
    VARIANTS,
    Comparison,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Panels,
    Training,
)
from reproduce.summary import Panel, centre

NAME = "figure5"
TITLE = "Figure 5"

_OFFSET = 2000.0  # caption of Figure 5
_SHOWN_BEFORE = 0.2
"""How much of SGD's part the views of the methods' part show, relative to the latter's length."""

_NEAR = 0.06
"""Accuracies that the closest view shows to either side of SGD's at the switch."""

TRAINING = Training(
    sgd_updates=3000,  # not stated; one epoch of 60,000 images in batches of 20
    sgd_learning_rate=0.01,  # caption of Figure 5: the methods' tau
    updates=500,  # not stated; as in Figure 4
    tabulated=(3000, 3100, 3200, 3300, 3400, 3500),
)

PROTOCOL = Panels(
    {
        "SGD, then each method": Comparison(
            TRAINING,
            {
                "sgd": GradientDescent(),  # the control, which the paper does not show
                "is": LocalEntropyByImportanceSampling(),
                "sgld": LocalEntropyBySGLD(offset=_OFFSET),
                "hr": HeatRegularizationByRobbinsMonro(),
                "sgld-linear": LocalEntropyBySGLD(offset=_OFFSET, **VARIANTS["sgld-linear"]),
            },
        )
    }
)
"""After SGD, at the paper's budget."""

QUICK = Panels(
    {
        title: replace(
            comparison.with_budget(updates=5, samples=4),
            training=replace(
                TRAINING, sgd_updates=20, updates=5, test_images=100, evaluate_every=5
            ),
        )
        for title, comparison in PROTOCOL.panels.items()
    }
)
"""The same at a budget for a first look; not the paper's."""

_NOTES = (
    "Reading: how many updates by SGD come first, which Section 6.3 leaves open: one epoch, "
    "3000 updates (sgd_updates=3000), then 500 by each method, all from the same weights on the "
    "same minibatches.",
    "The row SGD is the control that the paper lacks: SGD goes on.",
)


def views(shown: Sequence[Panel]) -> list[Panel]:
    """Returns the panel as a whole, the methods' part, and that part near SGD's accuracy."""
    (whole,) = shown
    own = max(whole.columns) - whole.switch
    part = replace(
        whole,
        title="from shortly before the end of SGD",
        first=max(0, whole.switch - round(_SHOWN_BEFORE * own)),
    )
    level = centre([one for row in whole.rows for one in row.at(whole.switch)])
    near = (level - _NEAR, level + _NEAR) if level is not None else part.accuracy
    return [whole, part, replace(part, title="the same, near SGD's accuracy", accuracy=near)]


jobs = panels.jobs
recorded = panels.recorded
render = partial(
    panels.render, panels.PanelFigure(NAME, TITLE, PROTOCOL, QUICK, _NOTES, columns=3), views=views
)
