"""The map as a figure: task by method, the interval of the gain over the rival."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from examples.map.findings import Finding
from reproduce import storage
from reproduce.figures import style

_COLUMNS = 2
_TITLE = 26
"""Letters in a line of a panel's title."""
_OURS, _THEIRS = style.COLOURS["sgld"], style.COLOURS["is"]


def frame(found: Sequence[Finding]) -> pd.DataFrame:
    """Returns a line per task and method: its test scores less those of the task's rival."""
    lines = []
    for one in found:
        for method in one.methods:
            each = one.against_rival(method)
            lines.append(
                {
                    "task": one.task.title,
                    "method": method.title,
                    "is_ours": method.is_ours,
                    "test": method.average("test"),
                    "gain": 0.0 if each is None else each.mean,
                    "low": 0.0 if each is None else each.low,
                    "high": 0.0 if each is None else each.high,
                    "bound": one.task.bound,
                }
            )
    return pd.DataFrame(lines)


def draw(lines: pd.DataFrame, stem: Path) -> list[Path]:
    """Draws a panel per task and writes what is plotted beside it.

    Args:
        lines: As `frame` returns them.
        stem: The files' path without their endings.

    Returns:
        The files written.
    """
    tasks = list(dict.fromkeys(lines.task))
    columns = min(_COLUMNS, len(tasks))
    rows = -(-len(tasks) // columns)
    with style.settings():
        figure = style.new_figure(4.0 * columns, 2.8 * rows)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for one, task in zip(axes, tasks, strict=False):
            _panel(one, lines[lines.task == task])
            one.set_title(fill(task, _TITLE))
        for one in axes[len(tasks) :]:
            one.set_visible(False)
        figure.supxlabel(
            "test score less the rival's, 95 % interval\n"
            "grey: equal for practice; blue: this library"
        )
        written = style.save(figure, stem)
    table = stem.with_suffix(".csv")
    content = lines.to_csv(index=False, lineterminator="\n").encode()
    storage.write(table, content, table.with_name(f".{table.name}.part"))
    return [*written, table]


def _panel(axes: Axes, lines: pd.DataFrame) -> None:
    bound = float(lines.bound.iloc[0])
    axes.axvspan(-bound, bound, color="0.9", linewidth=0.0)
    axes.axvline(0.0, color="grey", linewidth=0.8, linestyle=":")
    places = np.arange(len(lines))
    colours = np.where(lines.is_ours, _OURS, _THEIRS)
    axes.hlines(places, lines.low, lines.high, colors=list(colours), linewidth=1.4)
    axes.scatter(lines.gain, places, c=list(colours), s=16)
    axes.set_yticks(range(len(lines)), lines.method)
    axes.invert_yaxis()
    # Methods that fail outright would hide the others.
    is_near = (lines.gain > lines.gain.max() - 20.0 * bound).to_numpy()
    left = min(-1.5 * bound, 1.1 * float(lines.low[is_near].min()))
    axes.set_xlim(left, max(1.5 * bound, 1.1 * float(lines.high[is_near].max())))
    for place in places[~is_near]:
        text = f"\N{LEFTWARDS ARROW} {lines.gain.iloc[place]:.2f}"
        axes.annotate(text, (left, place), (3, 0), textcoords="offset points", va="center")
    axes.locator_params(axis="x", nbins=4)
