"""Held-out accuracy during training, a line for each method, its spread over seeds as a band."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes

from reproduce import tables
from reproduce.figures import style
from reproduce.summary import Budget, Row, centre, spread
from reproduce.tables import Published


def draw(
    title: str, rows: Sequence[Row], published: Published, budget: Budget, stem: Path
) -> list[Path]:
    """Draws the training curves into `stem.png` and `stem.pdf`, the plotted values into `stem.csv`.

    Lines are means over seeds, bands one sample standard deviation to either side. The paper's
    table entries are hollow circles.

    Args:
        title: The figure's number.
        rows: The methods; one without a record is named in the legend as missing.
        published: The paper's accuracies.
        budget: Shown in the figure unless it is the paper's.
        stem: The files' path without suffix.

    Returns:
        The files written.
    """
    figure = style.new_figure()
    with style.settings():
        axes = figure.subplots()
        for row in rows:
            _draw_row(axes, row)
            _draw_published(axes, row, published)
        _finish(axes, title, rows)
        figure.legend(loc="outside lower center", ncols=2)
        if budget.warning:
            figure.suptitle(fill(budget.warning, 84), fontsize=8, color="#b00000")
    values = stem.with_name(stem.name + ".csv")
    tables.write_text(values, _plotted(rows).to_csv(index=False, lineterminator="\n"))
    return [*style.save(figure, stem), values]


def _draw_row(axes: Axes, row: Row) -> None:
    updates = row.updates()
    means = [centre(row.at(update)) for update in updates]
    axes.plot(updates, means, label=_label(row), linewidth=1.4, **style.line(row.name))  # type: ignore[arg-type]
    deviations = [spread(row.at(update)) or 0.0 for update in updates]
    low = [(mean or 0.0) - deviation for mean, deviation in zip(means, deviations, strict=True)]
    high = [(mean or 0.0) + deviation for mean, deviation in zip(means, deviations, strict=True)]
    colour = style.line(row.name)["color"]
    axes.fill_between(updates, low, high, color=colour, alpha=0.18, linewidth=0)
    for seed, update in row.diverged.items():
        last = max(row.curves[seed], default=update)
        axes.plot(last, row.curves[seed].get(last, 0.0), marker="x", color=colour, clip_on=False)


def _draw_published(axes: Axes, row: Row, published: Published) -> None:
    reached = max(row.updates(), default=0)
    points = {
        update: accuracy
        for update, accuracy in tables.published_row(row.name, published).items()
        if update <= reached
    }
    if not points:  # an empty artist that is not clipped would push the axes about
        return
    colour = style.line(row.name)["color"]
    axes.plot(
        list(points), list(points.values()), "o", color=colour, fillstyle="none", clip_on=False
    )


def _label(row: Row) -> str:
    count = len(row.curves)
    counted = f"{row.title}, {count} seed{'' if count == 1 else 's'}" if count else row.title
    diverged = f", {len(row.diverged)} diverged" if row.diverged else ""
    missing = f", {len(row.missing)} missing" if count and row.missing else ""
    return counted + diverged + missing + ("" if count else ", missing")


def _finish(axes: Axes, title: str, rows: Sequence[Row]) -> None:
    axes.plot([], [], "o", color="0.4", fillstyle="none", label="paper, Table 1 (one run)")
    axes.set_xlabel("weight updates")
    axes.set_ylabel("held-out accuracy (fraction)")
    axes.set_ylim(0, 1)
    axes.set_xlim(0, max(update for row in rows for update in row.updates()))
    axes.set_title(f"{title}: mean and standard deviation over seeds", fontsize=9)


def _plotted(rows: Sequence[Row]) -> pd.DataFrame:
    lines = [
        {
            "method": row.name,
            "update": update,
            "mean": centre(row.at(update)),
            "standard_deviation": spread(row.at(update)),
            "runs": len(row.at(update)),
        }
        for row in rows
        for update in row.updates()
    ]
    return pd.DataFrame(lines)
