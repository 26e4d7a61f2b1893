"""Held-out accuracy during training, a line for each row, its spread over seeds as a band."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reproduce import tables
from reproduce.figures import style
from reproduce.summary import Budget, MethodRow, Panel, centre, spread

_SINGLE = (5.5, 4.2)
_WIDTH, _HEIGHT, _MARGIN = 5.5, 2.6, 0.6  # about the width of a one-column page's text
_TITLE = 76  # letters of the titles of a line of panels
_LETTERS, _KEY = 96, 8  # in a line of a legend, and those that a line's sample takes


def draw(
    title: str, panels: Sequence[Panel], budget: Budget, stem: Path, columns: int = 1
) -> list[Path]:
    """Draws the training curves into `stem.png` and `stem.pdf`, the plotted values into `stem.csv`.

    Lines are means over seeds, bands one sample standard deviation to either side; a cross ends
    the curve of a run that diverged. The paper's table entries are hollow circles.

    Args:
        title: The figure's number.
        panels: A set of axes each; a row without a record is named in the legend as missing.
        budget: Shown in the figure unless it is the paper's.
        stem: The files' path without suffix.
        columns: Panels side by side.

    Returns:
        The files written.
    """
    lines = math.ceil(len(panels) / columns)
    size = _SINGLE if len(panels) == 1 else (_WIDTH, _MARGIN + _HEIGHT * lines)
    figure = style.new_figure(*size)
    with style.settings():
        grid = figure.subplots(lines, columns, squeeze=False)
        for at, (axes, panel) in enumerate(zip(grid.flat, panels, strict=True)):
            _draw_panel(axes, panel)
            _label_axes(axes, panel, left=at % columns == 0, columns=columns)
        _legends(figure, list(grid.flat), columns)
        _head(figure, title, panels, budget)
    values = stem.with_name(stem.name + ".csv")
    frame = tables.panels_frame(panels)
    tables.write_text(values, frame.to_csv(index=False, lineterminator="\n"))
    return [*style.save(figure, stem), values]


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for row in panel.rows:
        alike = [other.name for other in panel.rows if other.method == row.method]
        look = style.line(row.method, alike.index(row.name), len(alike))
        _draw_row(axes, row, panel.updates(row), look)
        _draw_published(axes, row, panel)
    if panel.published:
        axes.plot([], [], "o", color="0.4", fillstyle="none", label="paper, Table 1 (one run)")
    if panel.switch:
        axes.axvline(panel.switch, color="0.35", linewidth=0.9, linestyle=":", label="end of SGD")


def _draw_row(axes: Axes, row: MethodRow, updates: Sequence[int], look: Mapping[str, Any]) -> None:
    means = [centre(row.at(update)) or 0.0 for update in updates]
    deviations = [spread(row.at(update)) or 0.0 for update in updates]
    axes.plot(updates, means, label=_label(row), **look)
    low = [mean - deviation for mean, deviation in zip(means, deviations, strict=True)]
    high = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
    axes.fill_between(updates, low, high, color=look["color"], alpha=0.18, linewidth=0)
    for seed in row.diverged:
        last = max(row.curves[seed], default=0)
        if last in updates:
            end = row.curves[seed][last]
            axes.plot(last, end, marker="x", color=look["color"], clip_on=False)


def _draw_published(axes: Axes, row: MethodRow, panel: Panel) -> None:
    reached = max(row.updates(), default=0)
    points = {
        update: accuracy
        for update, accuracy in tables.published_row(row.name, panel.published).items()
        if update <= reached
    }
    if not points:  # an empty artist that is not clipped would push the axes about
        return
    colour = style.line(row.method)["color"]
    axes.plot(
        list(points), list(points.values()), "o", color=colour, fillstyle="none", clip_on=False
    )


def _label(row: MethodRow) -> str:
    count = len(row.curves)
    diverged = [f"{len(row.diverged)} of {count} diverged"] if row.diverged else []
    missing = [f"{len(row.missing)} of {len(row.seeds)} missing"] if row.missing else []
    return ", ".join([row.title, *diverged, *missing])


def _label_axes(axes: Axes, panel: Panel, *, left: bool, columns: int) -> None:
    updates = [update for row in panel.rows for update in row.updates()]
    axes.set_xlim(panel.first, max(updates, default=1))
    axes.set_xlabel("weight updates")
    if left:
        axes.set_ylabel("held-out accuracy (fraction)")
    axes.set_ylim(*panel.accuracy)
    axes.set_title(_broken(panel.title, _TITLE // columns), fontsize=8)


def _broken(title: str, width: int) -> str:
    """Breaks a title too long for its panel, after its first comma if it has one."""
    if len(title) <= width:
        return title
    return title.replace(", ", ",\n", 1) if ", " in title else fill(title, width)


def _legends(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """One legend if all panels have the same, colours included, else one below each."""
    named = [one.get_legend_handles_labels() for one in axes]
    looks = {tuple((line.get_color(), line.get_label()) for line in _named(one)) for one in axes}
    if len(looks) == 1:
        figure.legend(*named[0], loc="outside lower center", ncols=2 if len(axes) == 1 else 3)
        return
    longest = max((len(label) for _, labels in named for label in labels), default=0)
    fitting = max(1, _LETTERS // columns // (longest + _KEY))
    for one in axes:
        one.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.25),
            fontsize=7.5,
            ncols=fitting,
            columnspacing=1.0,
        )


def _named(axes: Axes) -> list[Line2D]:
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


def _head(figure: Figure, title: str, panels: Sequence[Panel], budget: Budget) -> None:
    counts = {len(row.curves) for row in chain.from_iterable(p.rows for p in panels)}
    fewest, most = min(counts), max(counts)
    seeds = str(most) if fewest == most else f"{fewest} to {most}"
    said = f"{title}: mean and standard deviation over {seeds} seed{'s' * (most != 1)}"
    warning = f"\n{fill(budget.warning, 84)}" if budget.warning else ""
    colour = "#b00000" if warning else "black"
    figure.suptitle(said + warning, fontsize=8 if warning else 9.5, color=colour)
