"""Table 1 and Figure 4: the methods from random initial weights, side by side (Section 6.2)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import paper, tables
from reproduce.experiments import base
from reproduce.figures import curves
from reproduce.protocols import QUICK_TABLE1, TABLE1, Case, Comparison
from reproduce.records import Record
from reproduce.runner import Job
from reproduce.summary import Budget, Panel, published_rows, summarise

if TYPE_CHECKING:
    from reproduce.data import Mnist

NAME = "table1"
TITLE = "Table 1"
PROTOCOL = TABLE1
QUICK = QUICK_TABLE1


def jobs(
    comparison: Comparison,
    seeds: Sequence[int],
    execution: Mapping[str, Any],
    data: Callable[[], "Mnist"],
) -> list[Job]:
    """Returns the runs of a comparison, seed by seed.

    Args:
        comparison: Training set-up and methods.
        seeds: One run per method and seed.
        execution: How this process executes, `subspace` included: part of each run's
            configuration.
        data: Loads MNIST; called only if a run is made.
    """
    return base.training_jobs(list(comparison.cases().values()), seeds, execution, data)


def render(
    records: Sequence[Record],
    comparison: Comparison,
    seeds: Sequence[int] | None,
    subspace: str | bool,
    output: Path,
    figures: Path,
) -> tuple[str, list[Path]]:
    """Writes Table 1 and Figure 4 of a comparison from its records.

    Args:
        records: Any records of training; those of other comparisons are left out.
        comparison: What is shown, run or not.
        seeds: The seeds shown, run or not; `None`: all there are.
        subspace: Whether runs in the minibatch's subspace are shown, "auto", or those in all
            weights, False.
        output: Folder of the table.
        figures: Folder of the figure.

    Returns:
        The table as Markdown, and the files written.
    """
    budget = Budget.of(comparison, PROTOCOL, QUICK, subspace)
    rows = summarise(records, comparison, seeds, subspace)
    text = tables.accuracy_markdown(TITLE, rows, paper.TABLE1, comparison, budget)
    frame = tables.accuracy_frame(rows, paper.TABLE1, comparison, budget)
    written = tables.write(text, frame, output / f"{NAME}{budget.suffix}")
    if any(row.curves for row in rows):
        shown = [
            Panel("ours, from random initial weights", rows),
            Panel("the paper's Table 1, one run", published_rows(rows, paper.TABLE1)),
        ]
        stem = figures / f"figure4{budget.suffix}"
        written += curves.draw("Figure 4", shown, budget, stem, columns=2)
    return text, written


def recorded(
    records: Sequence[Record], comparison: Comparison, subspace: str | bool = "auto"
) -> frozenset[Case]:
    """Returns those rows of a comparison that have a record."""
    return base.recorded(records, list(comparison.cases().values()), subspace)
