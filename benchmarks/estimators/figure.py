"""The errors of the estimators over evaluations and over seconds."""

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from reproduce import storage
from reproduce.figures import style

_AFTER = 100
"""The weights that are shown where they were measured."""


def draw(frame: pd.DataFrame, stem: Path) -> list[Path]:
    """Draws a column per tau, evaluations above and seconds below, and writes what is plotted.

    Args:
        frame: A line per estimator, budget and place.
        stem: The files' path without their endings.

    Returns:
        The files written.
    """
    places = sorted(set(frame.after))
    after = _AFTER if _AFTER in places else places[0]
    shown = frame[frame.after == after]
    taus, names = sorted(set(shown.tau)), list(dict.fromkeys(shown.estimator))
    with style.settings():
        figure = style.new_figure(3.0 * max(len(taus), 2), 6.4)
        axes = figure.subplots(2, len(taus), sharey="row", squeeze=False)
        for column, tau in enumerate(taus):
            for row, (field, label) in enumerate(
                (("evaluations", "losses or gradients"), ("seconds", "seconds"))
            ):
                one = axes[row][column]
                _curves(one, shown[shown.tau == tau], names, field)
                one.set_xlabel(label)
                if column == 0:
                    one.set_ylabel("error of m over |m - x|")
            axes[0][column].set_title(f"tau = {tau:g}")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        figure.suptitle(f"Error of one weight update's mean, after {after} updates")
        written = style.save(figure, stem)
    table = stem.with_suffix(".csv")
    content = shown.to_csv(index=False, lineterminator="\n").encode()
    storage.write(table, content, table.with_name(f".{table.name}.part"))
    return [*written, table]


def _curves(axes: Axes, frame: pd.DataFrame, names: list[str], field: str) -> None:
    colours = mpl.colormaps["tab10"]
    for position, name in enumerate(names):
        line = frame[frame.estimator == name].sort_values("evaluations")
        axes.plot(
            line[field],
            line.error,
            marker="o",
            markersize=3,
            linewidth=1.2,
            linestyle="--" if name.startswith("Robbins") else "-",
            color=colours(position),
            label=name,
        )
    axes.axhline(1.0, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
