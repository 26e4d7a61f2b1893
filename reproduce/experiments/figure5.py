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
from reproduce.summary import Panel

NAME = "figure5"
TITLE = "Figure 5"

_OFFSET = 2000.0  # caption of Figure 5
_SHOWN_BEFORE = 0.2
"""The part of the methods' updates that the closer view shows of SGD's before them."""

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
    """Returns the panel as a whole and, closer, from shortly before SGD gives way."""
    (whole,) = shown
    own = max(whole.columns) - whole.switch
    first = max(0, whole.switch - round(_SHOWN_BEFORE * own))
    return [whole, replace(whole, title="closer, on another scale", first=first)]


jobs = panels.jobs
has_records = panels.has_records
render = partial(panels.render, panels.Item(NAME, TITLE, PROTOCOL, QUICK, _NOTES), views=views)
