"""The race and the curves as figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.peers.curves import AXES, TITLES
from benchmarks.peers.rows import RaceRow
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import ALGORITHMS
from reproduce import paper
from reproduce.figures import style

_MB = 1e6
_PEER = "#808080"


def draw_race(found: Sequence[RaceRow], caption: str, stem: Path) -> list[Path]:
    """Draws a line per system, log seconds per update along it, into `stem.png` and `stem.pdf`.

    Dots are medians, bars quartiles, hollow diamonds the paper's own seconds.

    Args:
        found: the rows.
        caption: what the measurement rests on.
        stem: the files' path without suffix.

    Returns:
        The files written.
    """
    groups = {a: [row for row in found if row.algorithm == a] for a in ALGORITHMS}
    groups = {a: sorted(group, key=lambda row: row.median) for a, group in groups.items() if group}
    lines = sum(len(group) + 1 for group in groups.values())
    figure = style.new_figure(width=6.8, height=1.3 + 0.24 * lines)
    with style.settings():
        axes = figure.subplots()
        labels: list[str] = []
        for algorithm, group in groups.items():
            _draw_heading(axes, len(labels), algorithm)
            labels.append(f"{ALGORITHMS[algorithm]}, {group[0].size}")
            for row in group:
                _draw_row(axes, len(labels), row)
                labels.append(SYSTEMS[row.system].title)
        _finish_race(
            axes,
            labels,
            [sum(len(g) + 1 for g in list(groups.values())[:i]) for i in range(len(groups))],
        )
        figure.suptitle(fill(caption, 110), fontsize=7)
        figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return style.save(figure, stem)


def draw_curves(points: Sequence[Mapping[str, Any]], caption: str, stem: Path) -> list[Path]:
    """Draws time and peak memory against samples, batch size, hidden width and threads.

    Full lines are this library, dashed ones its plain kernels, dotted ones the fastest peer.

    Args:
        points: see `rows.curve_frame`; those left out are not drawn.
        caption: what the measurement rests on.
        stem: the files' path without suffix.

    Returns:
        The files written.
    """
    figure = style.new_figure(width=11.0, height=5.6)
    with style.settings():
        grid = figure.subplots(2, len(TITLES), sharex="col", sharey="row", squeeze=False)
        for column, axis in enumerate(TITLES):
            mine = [p for p in points if p["axis"] == axis and "left_out" not in p]
            for system in dict.fromkeys(point["system"] for point in mine):
                line = sorted((p for p in mine if p["system"] == system), key=lambda p: p["value"])
                _draw_curve(grid[0, column], grid[1, column], system, line)
            grid[1, column].set_xlabel(TITLES[axis])
            grid[0, column].set(xscale="log", yscale="log")
        # The column of threads is a count from one to two: its ticks are the points.
        grid[0, -1].set_xticks(AXES["threads"], AXES["threads"])
        grid[0, -1].set_xticks([], minor=True)
        grid[0, 0].set_ylabel("seconds per update")
        grid[1, 0].set_ylabel("peak memory (MB)")
        grid[1, 0].set_ylim(bottom=0)
        figure.suptitle(fill(caption, 130), fontsize=7)
        _curve_legend(figure, list(dict.fromkeys(point["system"] for point in points)))
    return style.save(figure, stem)


def _draw_heading(axes: Axes, line: int, algorithm: str) -> None:
    axes.plot(paper.TABLE2[algorithm], line, "D", color="0.25", fillstyle="none", markersize=5)
    axes.axhline(line - 0.5, color="0.8", linewidth=0.6)


def _draw_row(axes: Axes, line: int, row: RaceRow) -> None:
    lower, upper = row.quartiles
    colour = _colour(row.system)
    # The plain kernels keep the colour and lose the filling.
    filling = "none" if row.system.endswith("-plain") else "full"
    axes.plot([lower, upper], [line, line], color=colour, linewidth=1.6)
    axes.plot(row.median, line, "o", color=colour, fillstyle=filling, markersize=6)
    ratio = "" if row.ratio is None else f"  x {row.ratio:.1f}"
    axes.annotate(
        f"{row.median:.3g} s{ratio}",
        (upper, line),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
    )


def _finish_race(axes: Axes, labels: Sequence[str], headings: Sequence[int]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    for line in headings:
        axes.get_yticklabels()[line].set_fontweight("bold")
    axes.set_ylim(len(labels) - 0.5, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * 6)  # room for the last numbers
    axes.set_xlabel("seconds per weight update")
    for marker, colour, filling, label in (
        ("o", "0.1", "full", "lerh_tf"),
        ("o", "0.1", "none", "its plain kernels"),
        ("o", _PEER, "full", "others"),
        ("D", "0.25", "none", "paper, Table 2"),
    ):
        axes.plot([], [], marker, color=colour, fillstyle=filling, label=label)


def _draw_curve(time: Axes, memory: Axes, system: str, points: Sequence[Mapping[str, Any]]) -> None:
    values = [point["value"] for point in points]
    look: dict[str, Any] = {**_look(system), "marker": "o", "markersize": 3, "linewidth": 1.3}
    time.plot(values, [median(point["seconds"]) for point in points], **look)
    memory.plot(values, [point["peak_bytes"] / _MB for point in points], **look)


def _curve_legend(figure: Figure, systems: Sequence[str]) -> None:
    axes = figure.axes[0]
    for system in systems:
        entry = SYSTEMS[system]
        axes.plot([], [], label=f"{entry.algorithm.upper()}: {entry.title}", **_look(system))
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)


def _look(system: str) -> dict[str, Any]:
    kind = system.partition("-")[2]
    dashes = {"subspace": "-", "plain": "--"}.get(kind, ":")
    return {"color": style.COLOURS[SYSTEMS[system].algorithm], "linestyle": dashes}


def _colour(system: str) -> str:
    entry = SYSTEMS[system]
    return style.COLOURS[entry.algorithm] if entry.is_ours or entry.algorithm == "sgd" else _PEER
