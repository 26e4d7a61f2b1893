"""Held-out accuracy during training, a line for each row, its spread over seeds as a band."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduce import tables
from reproduce.figures import style
from reproduce.summary import Budget, MethodRow, Panel, centre, spread

_SINGLE = (5.5, 4.2)
_WIDTH, _HEIGHT, _MARGIN = 5.5, 2.4, 0.9  # about the width of a one-column page's text
_SCHEDULE = 0.3
"""The height of a schedule of tau below a panel, relative to the panel's."""

_TITLE = 76  # letters of the titles of a line of panels
_FEW = 10  # points of a line that are all marked
_APART = 0.2  # marks of a line otherwise, relative to the diagonal of the axes


def draw(
    title: str, panels: Sequence[Panel], budget: Budget, stem: Path, columns: int = 1
) -> list[Path]:
    """Draws the training curves into `stem.png` and `stem.pdf`, their values into `stem.csv`.

    Lines are means over seeds, bands one sample standard deviation to either side; a cross ends
    the curve of a run that diverged. Rows named as Table 1's have their method's look, all others
    one that their name has in every panel.

    Args:
        title: The figure's number.
        panels: A set of axes each; runs that diverged or have no record are named in it.
        budget: Shown in the figure unless it is the paper's.
        stem: The files' path without suffix.
        columns: Panels side by side.

    Returns:
        The files written.
    """
    figure, looks = style.new_figure(*_size(panels, columns)), _looks(panels)
    with style.settings():
        for at, (axes, panel) in enumerate(
            zip(_grid(figure, panels, columns), panels, strict=True)
        ):
            left = panels[at - 1] if at % columns else None
            _draw_panel(axes[0], panel, looks)
            _label(axes, panel, columns, is_named=left is None or left.measure != panel.measure)
            if panel.schedule:
                _draw_schedule(axes[-1], panel, is_named=left is None)
        _legend(figure)
        _head(figure, title, panels, budget)
    return style.save(figure, stem, tables.panels_frame(panels))


def _size(panels: Sequence[Panel], columns: int) -> tuple[float, float]:
    if len(panels) == 1:
        return _SINGLE
    height = _HEIGHT * (1 + _SCHEDULE * any(panel.schedule for panel in panels))
    return _WIDTH, _MARGIN + height * math.ceil(len(panels) / columns)


def _grid(figure: Figure, panels: Sequence[Panel], columns: int) -> list[list[Axes]]:
    """The axes of each panel: its own and, where any panel has a schedule, those below it."""
    lines = math.ceil(len(panels) / columns)
    heights = [1.0, _SCHEDULE] if any(panel.schedule for panel in panels) else [1.0]
    each = len(heights)
    grid = figure.subplots(
        each * lines, columns, squeeze=False, height_ratios=heights * lines, sharex="col"
    )
    return [
        [grid[each * (at // columns) + part, at % columns] for part in range(each)]
        for at in range(len(panels))
    ]


def _looks(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    names = list(dict.fromkeys(row.name for panel in panels for row in panel.rows))
    values = [name for name in names if name not in style.ROWS]
    methods = {row.name: row.method for panel in panels for row in panel.rows}
    return {
        name: style.level(values.index(name), len(values), len(names) - len(values))
        if name in values
        else style.line(methods[name])
        for name in names
    }


def _draw_panel(axes: Axes, panel: Panel, looks: Mapping[str, dict[str, Any]]) -> None:
    for at, row in enumerate(panel.rows):
        updates = panel.updates(row)
        # Lines that lie on each other show their marks in turns.
        marks = (_APART * (at + 0.5) / len(panel.rows), _APART)
        shown = {"markevery": 1 if len(updates) <= _FEW else marks}
        _draw_row(axes, row, updates, looks[row.name] | shown)
    if panel.switch:
        axes.axvline(panel.switch, color="0.35", linewidth=0.9, linestyle=":", label="end of SGD")
    said = "\n".join(filter(None, map(_lost, panel.rows)))
    axes.text(0.98, 0.02, said, transform=axes.transAxes, ha="right", va="bottom", fontsize=7)


def _draw_row(axes: Axes, row: MethodRow, updates: Sequence[int], look: dict[str, Any]) -> None:
    means = [centre(row.at(update)) or 0.0 for update in updates]
    deviations = [spread(row.at(update)) or 0.0 for update in updates]
    axes.plot(updates, means, label=row.title, **look)
    low = [mean - deviation for mean, deviation in zip(means, deviations, strict=True)]
    high = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
    axes.fill_between(updates, low, high, color=look["color"], alpha=0.18, linewidth=0)
    for seed in row.diverged:
        last = max(row.curves[seed], default=0)
        if last in updates:
            end = row.curves[seed][last]
            axes.plot(last, end, marker="x", color=look["color"], clip_on=False)


def _draw_schedule(axes: Axes, panel: Panel, *, is_named: bool) -> None:
    axes.plot(list(panel.schedule), list(panel.schedule.values()), color="0.2", linewidth=1.2)
    axes.set_yscale("log")
    axes.set_ylim(0.003, 5)
    if is_named:
        axes.set_ylabel("τ(k)")


def _lost(row: MethodRow) -> str:
    count = len(row.curves)
    diverged = [f"{len(row.diverged)} of {count} diverged"] if row.diverged else []
    missing = [f"{len(row.missing)} of {len(row.seeds)} missing"] if row.missing else []
    return f"{row.title}: {', '.join([*diverged, *missing])}" if diverged or missing else ""


def _label(axes: Sequence[Axes], panel: Panel, columns: int, *, is_named: bool) -> None:
    updates = [update for row in panel.rows for update in panel.updates(row)]
    axes[0].set_xlim(panel.first, max([*updates, panel.first + 1]))
    place = axes[-1].get_subplotspec()
    if place is not None and place.is_last_row():
        axes[-1].set_xlabel("weight updates")
    if is_named:
        axes[0].set_ylabel(panel.measure)
    axes[0].set_ylim(*panel.limits)
    axes[0].set_title(_broken(panel.title, _TITLE // columns), fontsize=8)


def _broken(title: str, width: int) -> str:
    """Breaks a title too long for its panel, after its first comma if it has one."""
    if len(title) <= width:
        return title
    return title.replace(", ", ",\n", 1) if ", " in title else fill(title, width)


def _legend(figure: Figure) -> None:
    """One for all panels: what has a name looks alike in each."""
    named = [axes.get_legend_handles_labels() for axes in figure.axes]
    shown = {
        label: line for lines, labels in named for line, label in zip(lines, labels, strict=True)
    }
    figure.legend(
        list(shown.values()), list(shown), loc="outside lower center", ncols=3, fontsize=8
    )


def _head(figure: Figure, title: str, panels: Sequence[Panel], budget: Budget) -> None:
    ours = [row for row in chain.from_iterable(panel.rows for panel in panels) if row.seeds]
    counts = {len(row.curves) for row in ours}
    fewest, most = min(counts), max(counts)
    seeds = str(most) if fewest == most else f"{fewest} to {most}"
    said = f"{title}: mean and standard deviation over {seeds} seed{'s' * (most != 1)}"
    warning = f"\n{fill(budget.warning, 84)}" if budget.warning else ""
    colour = "#b00000" if warning else "black"
    figure.suptitle(said + warning, fontsize=8 if warning else 9.5, color=colour)
