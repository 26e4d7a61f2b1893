"""Accuracy tables beside the paper's, as Markdown and CSV; reads summaries and never trains."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from reproduce import readings, storage
from reproduce.protocols import Case, Comparison, Panels, spelled
from reproduce.summary import Budget, MethodRow, Panel, Published, centre, counted, spread

_MEASURED = "held-out accuracy after N weight updates"


def grid(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Returns a table of Markdown, its cells as they are."""
    frame = pd.DataFrame(cells, columns=list(header))
    return frame.to_markdown(index=False, disable_numparse=True)


def page(title: str, *parts: str, warning: str = "", notes: Sequence[str] = ()) -> str:
    """Returns a page of Markdown: heading, warning if there is one, parts, a list of notes."""
    bold = [f"**{warning}**"] if warning else []
    listed = ["\n".join(f"- {note}" for note in notes)] if notes else []
    return "\n\n".join([f"# {title}", *bold, *parts, *listed]) + "\n"


def published_row(name: str, published: Published) -> Mapping[int, float]:
    """Returns the paper's row of a method; a variant of a method has its method's."""
    return published.get(name.partition("-")[0], {})


def accuracy_frame(
    rows: Sequence[MethodRow], published: Published, comparison: Comparison, budget: Budget
) -> pd.DataFrame:
    """Returns the table in long form, a line for each method and update, numbers unrounded."""
    lines = [
        _line(row, case, update, published_row(row.name, published).get(update), budget)
        for row, case in zip(rows, comparison.cases().values(), strict=True)
        for update in comparison.training.columns
    ]
    return pd.DataFrame(lines)


def accuracy_markdown(
    title: str,
    rows: Sequence[MethodRow],
    published: Published,
    comparison: Comparison,
    budget: Budget,
) -> str:
    """Returns the table for reading: paper, ours, difference, and under it what it rests on."""
    columns = comparison.training.columns
    lines = [
        line for row in rows for line in _lines(row, columns, published_row(row.name, published))
    ]
    table = grid(["method", "", *map(str, columns)], lines)
    notes = _notes(rows, comparison)
    return page(f"{title}: {_MEASURED}", table, warning=budget.warning, notes=notes)


def panels_frame(panels: Sequence[Panel]) -> pd.DataFrame:
    """Returns what the panels show, a line for each row and update, numbers unrounded.

    `runs` counts those that got to an update, `diverged` those that had ended before or at it.
    """
    lines = [
        {
            "panel": panel.title,
            "line": row.name,
            "method": row.method,
            "update": update,
            "mean": centre(row.at(update)),
            "standard_deviation": spread(row.at(update)),
            "runs": len(row.at(update)),
            "diverged": row.gone(update),
        }
        for panel in panels
        for row in panel.rows
        for update in panel.updates(row)
    ]
    return pd.DataFrame(lines)


def panels_markdown(
    title: str, panels: Sequence[Panel], protocol: Panels, notes: Sequence[str], budget: Budget
) -> str:
    """Returns the panels' accuracies at their columns for reading, and what they rest on.

    Args:
        title: Of the table.
        panels: What is shown; a row named as one of `published` stands beside the paper's.
        protocol: The comparisons behind the panels.
        notes: What is to be said of them, a line each.
        budget: Shown unless it is the paper's.
    """
    columns = sorted({update for panel in panels for update in panel.columns})
    lines = [line for panel in panels for line in _panel_lines(panel, columns)]
    table = grid(["panel", "line", *map(str, columns)], lines)
    rows = [row for panel in panels for row in panel.rows]
    shown = " ".join(map(str, sorted({seed for row in rows for seed in row.seeds}))) or "none yet"
    said = (
        f"Ours: mean ± sample standard deviation over seeds {shown}.",
        *notes,
        *[
            f"{panel.title}, {text}"
            for panel in panels
            for row in panel.rows
            if (text := _runs(row)) and (row.missing or row.diverged)
        ],
        *[f"Reading {reading}." for reading in readings.in_force(protocol.methods())],
        *[f"Run with {text}." for text in sorted({t for row in rows for t in row.environments})],
    )
    return page(f"{title}: {_MEASURED}", table, warning=budget.warning, notes=said)


def write(text: str, frame: pd.DataFrame, stem: Path) -> list[Path]:
    """Writes `stem.md` and `stem.csv`, each whole or not at all.

    Returns:
        The files written.
    """
    return [write_text(stem.with_name(stem.name + ".md"), text), write_csv(frame, stem)]


def write_csv(frame: pd.DataFrame, stem: Path) -> Path:
    """Writes `stem.csv`, whole or not at all, and returns its path."""
    text = frame.to_csv(index=False, lineterminator="\n")
    return write_text(stem.with_name(stem.name + ".csv"), text)


def write_text(path: Path, text: str) -> Path:
    """Writes a file, whole or not at all, and returns its path.

    Raises:
        StorageError: There is no room, or no permission.
    """
    storage.write(path, text.encode())
    return path


def _panel_lines(panel: Panel, columns: Sequence[int]) -> list[list[str]]:
    paper = [
        [name, *(f"{values[update]:.3f}" if update in values else "-" for update in columns)]
        for name, values in panel.published.items()
    ]
    ours = [
        [row.title, *(_cell(row, update) if update in panel.columns else "-" for update in columns)]
        for row in panel.rows
    ]
    return [[panel.title if at == 0 else "", *line] for at, line in enumerate([*paper, *ours])]


def _line(
    row: MethodRow, case: Case, update: int, published: float | None, budget: Budget
) -> dict[str, object]:
    values = row.at(update)
    ours = centre(values)
    return {
        "method": row.name,
        "update": update,
        "paper": published,
        "mean": ours,
        "standard_deviation": spread(values),
        "difference": None if ours is None or published is None else ours - published,
        "runs": len(values),
        "missing_seeds": " ".join(map(str, row.missing)),
        "diverged_seeds": " ".join(map(str, row.diverged)),
        "budget": ", ".join(budget.departures) or "the paper's",
        "readings": " ".join(
            f"{name}={spelled(value)}" for name, value in readings.of(case).items()
        ),
    }


def _lines(
    row: MethodRow, columns: Sequence[int], published: Mapping[int, float]
) -> list[list[str]]:
    paper = [f"{published[update]:.2f}" if update in published else "-" for update in columns]
    ours = [_cell(row, update) for update in columns]
    difference = [_difference(row, update, published.get(update)) for update in columns]
    return [
        [row.title, "paper", *paper],
        ["", "ours", *ours],
        ["", "difference", *difference],
    ]


def _cell(row: MethodRow, update: int) -> str:
    values = row.at(update)
    deviation = spread(values)
    numbers = [f"{centre(values):.3f}"] if values else []
    numbers += [f"± {deviation:.3f}"] if deviation is not None else []
    gone = row.gone(update)
    lost = [f"{gone} diverged"] if gone else []
    lost += [f"{len(row.missing)} missing"] if row.missing else []
    return " ".join([*numbers, f"({', '.join(lost)})" if lost else ""]).strip() or "missing"


def _difference(row: MethodRow, update: int, published: float | None) -> str:
    ours = centre(row.at(update))
    return "-" if ours is None or published is None else f"{ours - published:+.3f}"


def _notes(rows: Sequence[MethodRow], comparison: Comparison) -> list[str]:
    shown = " ".join(map(str, rows[0].seeds)) or "none yet"
    environments = sorted({text for row in rows for text in row.environments})
    return [
        "Paper: one run, Table 1 of arXiv 1901.10082.",
        f"Ours: mean ± sample standard deviation over seeds {shown}; difference: ours - paper.",
        *[_runs(row) for row in rows],
        *[f"Reading {reading}." for reading in readings.in_force(comparison)],
        *[f"{row.title}: {path}." for row in rows for path in row.paths],
        *[f"Run with {text}." for text in environments],
    ]


def _runs(row: MethodRow) -> str:
    missing = [f"missing: seed {seed}" for seed in row.missing]
    diverged = [f"diverged: seed {seed} at update {at}" for seed, at in row.diverged.items()]
    done = f"{row.title}: {len(row.curves)} of {counted(len(row.seeds), 'run')}"
    return "; ".join([done, *missing, *diverged])
