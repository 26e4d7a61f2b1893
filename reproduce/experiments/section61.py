"""Section 6.1: the accuracy of both networks after 5 epochs of SGD."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reproduce import paper, tables
from reproduce.experiments import panels
from reproduce.experiments.base import Experiment
from reproduce.protocols import Comparison, GradientDescent, Panels, Training
from reproduce.records import Record
from reproduce.summary import Budget

_NETWORKS = {
    "small_dense": "small dense network, 7,850 parameters",
    "hidden_dense": "single hidden layer, 159,010 parameters",
}
_EPOCHS = 5  # Section 6.1
_EPOCH = 3000  # weight updates: 60,000 images in batches of 20
_LEARNING_RATES = (0.01, 0.03, 0.1, 0.3)  # not stated; around Section 6.2's 0.01
_TEST_IMAGES = 10_000  # not stated; all there are


def protocol(updates: int, evaluate_every: int, test_images: int) -> Panels:
    """Returns a panel per network, a row per learning rate."""
    training = Training(
        updates=updates,
        evaluate_every=evaluate_every,
        test_images=test_images,
        tabulated=tuple(range(evaluate_every, updates + 1, evaluate_every)),
    )
    methods = {f"SGD, learning rate {rate:g}": GradientDescent(rate) for rate in _LEARNING_RATES}
    return Panels(
        {
            title: Comparison(replace(training, network=network), methods)
            for network, title in _NETWORKS.items()
        }
    )


PROTOCOL = protocol(_EPOCHS * _EPOCH, _EPOCH, _TEST_IMAGES)
"""Five epochs."""

QUICK = protocol(20, 10, 100)
"""The same at a budget for a first look; not the paper's."""

_NOTES = (
    "Paper: Section 6.1 of arXiv 1901.10082; of the larger network, what is expected at best.",
    "3000 updates are an epoch. The learning rate and the size of a minibatch are not stated: "
    "four rates are tried, in batches of 20 as in Section 6.2. All test images are classified.",
)


class _Section61(Experiment[Panels]):
    def render(
        self,
        records: Sequence[Record],
        protocol: Panels,
        seeds: Sequence[int] | None,
        subspace: str | bool,
        output: Path,
        figures: Path,
    ) -> tuple[str, list[Path]]:
        """Writes the accuracies beside the paper's, in both formats; see `Experiment.render`."""
        del figures  # there is none
        budget = Budget.of(protocol, self.PROTOCOL, self.QUICK, subspace)
        shown = panels.summarised(records, protocol, seeds, subspace)
        published = {title: paper.SECTION_6_1[network] for network, title in _NETWORKS.items()}
        shown = [
            replace(one, published={"paper": {max(one.columns): published[one.title]}})
            for one in shown
        ]
        text = tables.panels_markdown(self.TITLE, shown, protocol, _NOTES, budget)
        stem = output / f"{self.NAME}{budget.suffix}"
        return text, tables.write(text, tables.panels_frame(shown), stem)


EXPERIMENT = _Section61("section61", "Section 6.1", PROTOCOL, QUICK)
