"""What Figures 5 to 8 and Section 6.1 share: from panels of comparisons to runs, table, figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduce import tables
from reproduce.experiments.base import Experiment, recorded
from reproduce.figures import curves
from reproduce.protocols import Panels
from reproduce.records import Record
from reproduce.summary import Budget, Panel, summarise


def summarised(
    records: Sequence[Record], protocol: Panels, seeds: Sequence[int] | None, subspace: str | bool
) -> list[Panel]:
    """Returns the panels' rows from records of training; those of other runs are left out.

    Where no seeds are named they are those of all runs: some may stand in other items too, made
    for more seeds.
    """
    if seeds is None:
        each = list(recorded(records, protocol, subspace).values())
        seeds = sorted(set.intersection(*each) or set.union(*each)) if each else []
    return [
        Panel(
            title,
            summarise(records, comparison, seeds, subspace),
            columns=comparison.training.columns,
            switch=comparison.training.sgd_updates,
        )
        for title, comparison in protocol.panels.items()
    ]


@dataclass(frozen=True)
class PanelFigure(Experiment[Panels]):
    """A figure of panels.

    Args:
        notes: Readings and departures, a line each, below the table.
        columns: Panels side by side.
        views: Takes the panels to those drawn.
    """

    notes: tuple[str, ...]
    columns: int = 2
    views: Callable[[list[Panel]], list[Panel]] = list

    def render(
        self,
        records: Sequence[Record],
        protocol: Panels,
        seeds: Sequence[int] | None,
        subspace: str | bool,
        output: Path,
        figures: Path,
    ) -> tuple[str, list[Path]]:
        """Writes the accuracies as a table, the curves as a figure; see `Experiment.render`."""
        budget = Budget.of(protocol, self.PROTOCOL, self.QUICK, subspace)
        panels = summarised(records, protocol, seeds, subspace)
        text = tables.panels_markdown(self.TITLE, panels, protocol, self.notes, budget)
        written = [tables.write_text(output / f"{self.NAME}{budget.suffix}.md", text)]
        if any(row.curves for panel in panels for row in panel.rows):
            stem = figures / f"{self.NAME}{budget.suffix}"
            written += curves.draw(self.TITLE, self.views(panels), budget, stem, self.columns)
        return text, written
