"""Table 1 and Figure 4: the methods from random initial weights, side by side (Section 6.2)."""

from collections.abc import Sequence
from pathlib import Path

from reproduce import paper, tables
from reproduce.experiments.base import Experiment
from reproduce.figures import curves
from reproduce.protocols import QUICK_TABLE1, TABLE1, Comparison
from reproduce.records import Record
from reproduce.summary import Budget, Panel, published_rows, summarise


class _Table1(Experiment[Comparison]):
    def render(
        self,
        records: Sequence[Record],
        comparison: Comparison,
        seeds: Sequence[int] | None,
        subspace: str | bool,
        output: Path,
        figures: Path,
    ) -> tuple[str, list[Path]]:
        """Writes Table 1, as Markdown and CSV, and Figure 4; see `Experiment.render`."""
        budget = Budget.of(comparison, self.PROTOCOL, self.QUICK, subspace)
        rows = summarise(records, comparison, seeds, subspace)
        text = tables.accuracy_markdown(self.TITLE, rows, paper.TABLE1, comparison, budget)
        frame = tables.accuracy_frame(rows, paper.TABLE1, comparison, budget)
        written = tables.write(text, frame, output / f"{self.NAME}{budget.suffix}")
        if any(row.curves for row in rows):
            shown = [
                Panel("ours, from random initial weights", rows),
                Panel("the paper's Table 1, one run", published_rows(rows, paper.TABLE1)),
            ]
            stem = figures / f"figure4{budget.suffix}"
            written += curves.draw("Figure 4", shown, budget, stem, columns=2)
        return text, written


EXPERIMENT = _Table1("table1", "Table 1", TABLE1, QUICK_TABLE1)
