"""The readings of what the text leaves open, run: one at a time, and combinations named beforehand.

Seeds 0 to 4 screen: the three settings nearest to the paper in all rows are confirmed with seeds 5
to 24, and judged by those alone. A reading that all rows share (initial weights, activation,
pixels, sampling) explains only if the paper's rows, as one test, do not contradict one setting.
R10, the draw of the test images, needs no runs of its own: Table 1's runs record both.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import pandas as pd

from reproduce import paper, tables
from reproduce.claims.bounds import CHANCE
from reproduce.claims.evidence import EARLIER, FRESH
from reproduce.claims.parts import ALPHA, Part, Prediction
from reproduce.claims.tables import ROUNDING
from reproduce.experiments import base, panels
from reproduce.experiments.reading_settings import PROTOCOL as PROTOCOL
from reproduce.experiments.reading_settings import QUICK as QUICK
from reproduce.experiments.reading_settings import SETTINGS
from reproduce.protocols import TABLE1, Panels
from reproduce.readings import READINGS
from reproduce.records import Record, Run
from reproduce.summary import MethodRow, Panel, centre

NAME = "readings"
TITLE = "The readings"

jobs, recorded = base.jobs, base.recorded


@dataclass(frozen=True)
class Distance:
    """How far a row under a setting is from the paper's; a run that diverged is at chance.

    Args:
        setting: The setting's name.
        row: The row's name.
        is_complete: Whether every seed asked for is run.
        ends: Accuracy after the last update by seed.
        gaps: Ours less the paper's by seed, each the mean over Table 1's columns.
        root: Root mean square over the columns of the mean curve's gaps.
        broken: The columns' p-values against the paper's run being one more of ours.
    """

    setting: str
    row: str
    is_complete: bool
    ends: Sequence[float]
    gaps: Sequence[float] = ()
    root: float | None = None
    broken: Sequence[float] = ()


def distances(
    records: Sequence[Record],
    protocol: Panels,
    seeds: Sequence[int],
    subspace: str | bool = "auto",
) -> list[Distance]:
    """Returns every row of every setting under these seeds, those without a record too."""
    return [
        _distance(panel, row)
        for panel in panels.summarised(records, protocol, seeds, subspace)
        for row in panel.rows
    ]


def _distance(panel: Panel, row: MethodRow) -> Distance:
    curves = [
        {update: curve.get(update, CHANCE) for update in panel.columns}
        for curve in row.curves.values()
    ]
    known = (panel.title, row.name, not row.missing, [curve[max(curve)] for curve in curves])
    published = paper.TABLE1.get(row.name.partition("-")[0], {})
    if panel.title not in SETTINGS or not published.keys() <= set(panel.columns) or not curves:
        return Distance(*known)
    gaps = [mean(curve[update] - value for update, value in published.items()) for curve in curves]
    parts = [
        Prediction("", [curve[update] for curve in curves], published=value, rounding=ROUNDING)
        for update, value in published.items()
    ]
    root = mean((part.value - part.published) ** 2 for part in parts) ** 0.5
    return Distance(*known, gaps, root, [part.broken() for part in parts])


def p_value(rows: Iterable[Distance]) -> float | None:
    """Returns that of the paper's run being one more of ours in all columns of these rows.

    The least of the columns' one-sided p-values times how many they are; None before two seeds,
    and all that were asked for, are run.
    """
    rows = list(rows)
    if not all(row.is_complete and len(row.gaps) > 1 for row in rows):
        return None
    broken = [p for row in rows for p in row.broken]
    return min(len(broken) * min(broken), 1.0)


def nearest(screened: Sequence[Distance]) -> dict[str, tuple[float, str]]:
    """Returns the three settings to be confirmed, the nearest first.

    Those nearest to the paper by the root mean square of the distances of SGD, IS, HR and SGLD
    under the nearer reading of its noise; of those whose runs are complete, Table 1's apart.

    Returns:
        By the setting's name that number, and the row of SGLD that is the nearer.
    """
    found = {}
    for setting in SETTINGS:
        rows = {one.row: one for one in screened if one.setting == setting}
        if setting != "Table 1's" and _are_complete(rows.values()):
            roots = {row: one.root for row, one in rows.items() if one.root is not None}
            sgld = min(("sgld", "sgld-linear"), key=roots.__getitem__)
            found[setting] = (mean(roots[row] ** 2 for row in _rows(sgld)) ** 0.5, sgld)
    order = sorted(found, key=lambda setting: found[setting][0])
    return {setting: found[setting] for setting in order[:3]}


def _rows(sgld: str) -> tuple[str, ...]:
    """Table 1's as the paper has them, SGLD under one reading of its noise."""
    return ("sgd", "is", sgld, "hr")


def _are_complete(rows: Iterable[Distance]) -> bool:
    return all(row.is_complete and row.gaps for row in rows)


def changed(found: Sequence[Distance]) -> list[Distance]:
    """Returns the rows whose runs are not Table 1's own."""
    own = set(TABLE1.cases().values())
    cases = {name: comparison.cases() for name, comparison in PROTOCOL.panels.items()}
    return [one for one in found if cases[one.setting][one.row] not in own]


def run(records: Sequence[Record]) -> dict[str, bool]:
    """Returns of each setting that differs from Table 1 whether all rows that do are recorded."""
    rows = changed(distances(records, PROTOCOL, (*EARLIER, *FRESH)))
    missing = {one.setting for one in rows if not one.ends}
    return {one.setting: one.setting not in missing for one in rows}


class Section(NamedTuple):
    """A part of what is told of the readings: sentences and a table."""

    title: str
    lines: Sequence[str]
    header: Sequence[str]
    cells: Sequence[Sequence[str]]


NOTES = (
    "A setting's rows that it runs no otherwise than Table 1 stand with Table 1's. gap: ours less "
    "the paper's, mean over Table 1's five columns, and the 95 % interval of that mean over seeds; "
    "distance: root mean square over the columns of our mean curve's.",
    "the paper's row: whether it could be one more run of ours, by prediction intervals, its "
    "columns one test: p is the least of their one-sided p-values times how many they are, below "
    f"{ALPHA} the row contradicts. Few seeds, or seeds far apart, make the intervals wide, so that "
    "five seeds which it does not contradict confirm nothing.",
)
"""What the tables' columns mean."""


def drawn_anew(
    records: Sequence[Record], timings: Callable[[Run], Mapping[str, Any] | None]
) -> list[Record]:
    """Returns the records with the accuracy on test images drawn at each evaluation, R10.

    Args:
        records: Any of training; those made before that was recorded are left out.
        timings: Takes a run to what is recorded beside it.
    """
    return [
        replace(record, result={**record.result, "curve": {**curve, "accuracy": measured}})
        for record in records
        if (measured := (timings(record.run) or {}).get("held_out", {}).get("per_evaluation"))
        and (curve := record.result["curve"])
    ]


def sections(
    records: Sequence[Record],
    protocol: Panels,
    subspace: str | bool = "auto",
    anew: Sequence[Record] = (),
) -> list[Section]:
    """Returns what is told: the screen, the confirmation, and the readings on Figures 5 to 8.

    Args:
        records: Any records of training.
        protocol: The settings.
        subspace: Which executions count.
        anew: The same under R10's other reading, by which what is confirmed is judged too.
    """
    screened = distances(records, protocol, EARLIER, subspace)
    fresh = distances(records, protocol, FRESH, subspace)
    other = distances(anew, protocol, FRESH, subspace)
    every = distances(records, protocol, (*EARLIER, *FRESH), subspace)
    near = nearest(screened)
    of_figures = [one for one in changed(every) if one.setting not in SETTINGS and one.ends]
    return [
        Section(
            "Screened with seeds 0 to 4",
            _screen(screened, near),
            HEADER,
            _cells(_told(screened, SETTINGS)),
        ),
        Section(
            "Confirmed with seeds 5 to 24",
            [_confirmation(fresh, other, name, sgld) for name, (_, sgld) in near.items()],
            HEADER,
            _cells(_told(fresh, ["Table 1's", *near])),
        ),
        Section(
            "On Figures 5 to 8, with the seeds of both",
            [],
            HEADER[:4],
            [cells[:4] for cells in _cells(of_figures)],
        ),
    ]


def _screen(screened: Sequence[Distance], near: Mapping[str, tuple[float, str]]) -> list[str]:
    complete = [
        setting
        for setting in SETTINGS
        if _are_complete([one for one in screened if one.setting == setting])
    ]
    lines = [f"All rows are run of {len(complete)} of {len(SETTINGS)} settings."]
    if near:
        said = ", ".join(f'"{name}" ({root:.3f}, {sgld})' for name, (root, sgld) in near.items())
        lines.append(
            "Nearest of those, Table 1's apart, by the root mean square of the distances of SGD, "
            f"IS, HR and SGLD under the nearer reading of its noise: {said}."
        )
    return lines


def _confirmation(
    fresh: Sequence[Distance], anew: Sequence[Distance], setting: str, sgld: str
) -> str:
    named = f'"{setting}", SGLD\'s row {sgld}'
    rows, others = (
        [one for one in found if one.setting == setting and one.row in _rows(sgld)]
        for found in (fresh, anew)
    )
    together, under_r10 = p_value(rows), p_value(others)
    if together is None:
        return f"{named}: not all run."
    alone = {one.row: p for one in rows if (p := p_value([one])) is not None and p < ALPHA}
    each = ", ".join(f"{row} (p = {p:.2g})" for row, p in alone.items()) or "none"
    said = f"{named}: {_verdict(together)} by the paper's four rows as one test; rows that would "
    said += f"contradict it each by itself: {each}."
    if under_r10 is not None:
        said += f" With test images drawn at each evaluation (R10): {_verdict(under_r10)}."
    return said


def _verdict(p: float) -> str:
    return ("contradicted" if p < ALPHA else "not contradicted") + f" (p = {p:.2g})"


def _told(found: Sequence[Distance], settings: Collection[str]) -> list[Distance]:
    """Table 1's rows, and those recorded that other settings run otherwise."""
    own = [one for one in found if one.setting == "Table 1's"]
    return own + [one for one in changed(found) if one.setting in settings and one.ends]


HEADER = ["setting", "row", "runs", "end", "gap to the paper", "distance", "the paper's row"]


def _cells(found: Sequence[Distance]) -> list[list[str]]:
    cells = []
    for one in found:
        end, (low, high) = centre(one.ends), _interval(one)
        gap = f"{centre(one.gaps):+.3f}" if one.gaps else "-"
        gap += "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
        p = p_value([one])
        said = "-" if p is None else "contradicts" if p < ALPHA else "could be one more"
        cells.append(
            [
                one.setting,
                one.row,
                str(len(one.ends)) if one.ends else "not run",
                "-" if end is None else f"{end:.3f}",
                gap,
                "-" if one.root is None else f"{one.root:.3f}",
                said,
            ]
        )
    return cells


def _interval(one: Distance) -> tuple[float | None, float | None]:
    return Part("", one.gaps).interval(1) if len(one.gaps) > 1 else (None, None)


def frame(found: Mapping[str, Sequence[Distance]]) -> pd.DataFrame:
    """Returns a line per stage, setting and row, numbers unrounded."""
    return pd.DataFrame(
        {
            "stage": stage,
            "setting": one.setting,
            "row": one.row,
            "runs": len(one.ends),
            "end": centre(one.ends),
            "gap": centre(one.gaps),
            "gap_low": _interval(one)[0],
            "gap_high": _interval(one)[1],
            "root_mean_square": one.root,
            "p": p_value([one]),
        }
        for stage, rows in found.items()
        for one in rows
    )


def render(
    records: Sequence[Record],
    protocol: Panels,
    seeds: Sequence[int] | None,
    subspace: str | bool,
    output: Path,
    figures: Path,
) -> tuple[str, list[Path]]:
    """Writes every setting beside the paper's rows, in both formats; see `Experiment.render`.

    Seeds 0 to 4 and 5 to 24 have a part each in it, others have none.
    """
    del seeds, figures  # there is no figure
    parts = [
        part
        for one in sections(records, protocol, subspace)
        for part in (f"## {one.title}", *one.lines, tables.grid(one.header, one.cells))
    ]
    notes = [
        *NOTES,
        *[f"{one.number} {one.name}={one.values}: {one.question}." for one in READINGS.values()],
    ]
    text = tables.page(TITLE, *parts, "## Notes", notes=notes)
    stages = {"screened": EARLIER, "fresh": FRESH}
    found = {name: distances(records, protocol, part, subspace) for name, part in stages.items()}
    suffix = "-quick" if protocol == QUICK else ""
    return text, tables.write(text, frame(found), output / f"{NAME}{suffix}")
