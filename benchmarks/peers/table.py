"""The race and the curves as Markdown and CSV."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from benchmarks.peers import agreement
from benchmarks.peers.curves import TITLES
from benchmarks.peers.rows import RaceRow, curve_frame, race_frame
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import ALGORITHMS
from reproduce import paper, tables

_MB = 1e6


def race_markdown(found: Sequence[RaceRow], caption: str) -> str:
    """Returns the race for reading.

    Args:
        found: the rows.
        caption: what the measurement rests on.
    """
    parts = ["# Seconds per weight update, side by side"]
    for algorithm, title in ALGORITHMS.items():
        group = [row for row in found if row.algorithm == algorithm]
        if group:
            parts += [f"## {title}, {group[0].size}", _markdown(_race_lines(group, algorithm))]
    return "\n\n".join([*parts, _list([f"{caption}.", *_race_notes(found)])]) + "\n"


def curves_markdown(points: Sequence[Mapping[str, Any]], caption: str) -> str:
    """Returns the curves for reading: seconds per update and peak MB in each cell."""
    parts = ["# Seconds per weight update and peak memory (MB)"]
    for axis, title in TITLES.items():
        lines = _curve_lines([point for point in points if point["axis"] == axis])
        if lines:
            parts += [f"## Against {title}", _markdown(lines)]
    return "\n\n".join([*parts, _list([f"{caption}.", *_curve_notes(points)])]) + "\n"


def write_race(text: str, found: Sequence[RaceRow], folder: Path) -> list[Path]:
    """Writes `race.md` and `race.csv`; returns their paths."""
    return tables.write(text, race_frame(found), folder / "race")


def write_curves(text: str, points: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Writes `curves.md` and `curves.csv`; returns their paths."""
    return tables.write(text, curve_frame(points), folder / "curves")


def _race_lines(group: Sequence[RaceRow], algorithm: str) -> list[dict[str, str]]:
    lines = [_race_line(row) for row in sorted(group, key=lambda row: row.median)]
    published = {"system": "paper, Table 2", "median s": f"{paper.TABLE2[algorithm]:.4f}"}
    return [*lines, {**dict.fromkeys(lines[0], ""), **published}]


def _race_line(row: RaceRow) -> dict[str, str]:
    lower, upper = row.quartiles
    return {
        "system": SYSTEMS[row.system].title,
        "median s": f"{row.median:.4f}",
        "quartiles": f"{lower:.4f} - {upper:.4f}",
        "x lerh_tf": "-" if row.ratio is None else f"{row.ratio:.1f}",
        "first update s": f"{row.first_seconds:.1f}",
        "peak MB": f"{row.peak_bytes / _MB:.0f}",
        "same result": _agreement(row),
    }


def _agreement(row: RaceRow) -> str:
    found = row.agreement
    if found is None:
        return "not checked"
    values = [f"z {found['z']:.1f}"] if "z" in found else []
    values += [f"{found['error']:.0e}"] if "error" in found else []
    values += [f"same noise {found['same_noise_error']:.0e}"] if "same_noise_error" in found else []
    return f"{'yes' if found['agrees'] else '**NO**'} ({', '.join(values)})"


def _race_notes(found: Sequence[RaceRow]) -> list[str]:
    counts = sorted({len(row.seconds) for row in found})
    versions = {name: number for row in found for name, number in row.versions.items()}
    return [
        f"Medians and quartiles of {' or '.join(map(str, counts))} updates after warm-up, each "
        "system in its own process, one update of each in turn, in an order drawn anew each time "
        "and after one that is not timed, on the same weights and minibatch.",
        "x lerh_tf: median over lerh_tf's in the same race. First update: compilation included.",
        *[_floor(row) for row in found if row.floors],
        "Same result: held to float64 NumPy on a small network; z, the largest of several hundred "
        f"differences of moments in standard errors (bound {agreement.LARGEST_Z:g}), and the "
        f"relative error without noise (bound {agreement.LARGEST_ERROR:g}).",
        "Paper: arXiv 1901.10082, Table 2; its hardware is not stated.",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in sorted(versions.items())),
    ]


def _floor(row: RaceRow) -> str:
    assert row.floor is not None
    noise, products = (median(p[name] for p in row.floors) for name in ("noise", "products"))
    return (
        f"Floor of {row.algorithm.upper()} in the subspace, measured in the same turns: "
        f"{noise:.4f} s for the noise, {products:.4f} s for the products at the rate of one large "
        f"product. lerh_tf takes {row.median / row.floor:.1f} x that."
    )


def _curve_lines(points: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    systems = list(dict.fromkeys(point["system"] for point in points))
    return [
        {"system": _full_title(system)}
        | {f"{p['value']:,}": _curve_cell(p) for p in points if p["system"] == system}
        for system in systems
    ]


def _curve_cell(point: Mapping[str, Any]) -> str:
    if "left_out" in point:
        return "left out"
    seconds = sorted(point["seconds"])[len(point["seconds"]) // 2]
    mark = "*" if point["counts_first"] else ""
    return f"{seconds:.3g} s{mark}, {point['peak_bytes'] / _MB:.0f}"


def _curve_notes(points: Sequence[Mapping[str, Any]]) -> list[str]:
    left_out = [
        f"Left out: {_full_title(p['system'])} at {TITLES[p['axis']]} {p['value']:,}: "
        f"{p['left_out']}"
        for p in points
        if "left_out" in p
    ]
    return [
        "Each cell: seconds per update, peak resident memory of a process of its own.",
        "*: one update, the first, compilation included.",
        "Heat regularization against samples: M = J = floor(sqrt(samples)).",
        *left_out,
    ]


def _full_title(system: str) -> str:
    entry = SYSTEMS[system]
    return f"{entry.algorithm.upper()}: {entry.title}"


def _markdown(lines: Sequence[Mapping[str, str]]) -> str:
    return pd.DataFrame(lines).fillna("").to_markdown(index=False, disable_numparse=True)


def _list(notes: Sequence[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)
