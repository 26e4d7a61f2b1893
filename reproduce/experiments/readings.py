"""The readings of what the text leaves open, run: one at a time, and combinations named beforehand.

Seeds 0 to 4 screen: the three settings nearest to the paper in all rows are confirmed with seeds 5
to 24, and judged by those alone. A reading that all rows share (initial weights, activation,
pixels, sampling) explains only if the paper's rows, as one test, do not contradict one setting.
R10, the draw of the test images, needs no runs of its own: Table 1's runs record both.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from reproduce import tables
from reproduce.claims.evidence import EARLIER, FRESH
from reproduce.claims.parts import ALPHA, Part
from reproduce.experiments.base import Experiment
from reproduce.experiments.reading_distances import (
    TABLE1_ROWS,
    Distance,
    are_complete,
    changed,
    distances,
    nearest,
    p_value,
)
from reproduce.experiments.reading_settings import PROTOCOL as PROTOCOL
from reproduce.experiments.reading_settings import QUICK, SETTINGS
from reproduce.protocols import Panels
from reproduce.readings import READINGS
from reproduce.records import Record
from reproduce.summary import centre


def run(records: Sequence[Record]) -> dict[str, bool]:
    """Returns of each setting that differs from Table 1 whether all rows that do are recorded."""
    rows = changed(distances(records, PROTOCOL, (*EARLIER, *FRESH)))
    missing = {one.setting for one in rows if not one.ends}
    return {one.setting: one.setting not in missing for one in rows}


class Section(NamedTuple):
    """A part of a page: sentences, a table and, by its stem, a figure."""

    title: str
    lines: Sequence[str]
    header: Sequence[str]
    cells: Sequence[Sequence[str]]
    figure: str = ""


class Told(NamedTuple):
    """What is told of the readings.

    Args:
        conclusion: In a sentence; empty until a setting has all of its fresh seeds.
        sections: The screen, the confirmation, and the readings on Figures 5 to 8.
    """

    conclusion: str
    sections: Sequence[Section]


NOTES = (
    "A setting's rows that it runs no otherwise than Table 1 stand with Table 1's. accuracy: at "
    "updates 100, 200, 300, 400 and 500, on Figures 5 to 8 at the last; gap: ours less the "
    "paper's, mean over those five, and the 95 % interval of that mean over seeds; distance: root "
    "mean square over the five of our mean curve's.",
    "the paper's row: whether it could be one more run of ours, by prediction intervals, its "
    "columns one test: p is twice the least of their one-sided p-values times how many they are, "
    f"below {2 * ALPHA} the row contradicts. Few seeds, or seeds far apart, make the intervals "
    "wide, so that five seeds which it does not contradict confirm nothing.",
    "When the rules were set: that the nearest three are confirmed, before the screen; that the "
    "four rows are one test, after its first runs and before seeds 5 to 24; that the confirmed "
    "are judged under R10's other reading too, after the first two of them had been.",
)
"""What the tables' columns mean, and when it was settled."""


def told(
    records: Sequence[Record],
    protocol: Panels,
    subspace: str | bool = "auto",
    anew: Sequence[Record] | None = None,
) -> Told:
    """Returns what is told.

    Args:
        records: Any records of training.
        protocol: The settings.
        subspace: Which executions count.
        anew: The same under R10's other reading, by which what is confirmed is judged too; None
            leaves that to the report.
    """
    screened = distances(records, protocol, EARLIER, subspace)
    fresh = distances(records, protocol, FRESH, subspace)
    other = None if anew is None else distances(anew, protocol, FRESH, subspace)
    every = distances(records, protocol, (*EARLIER, *FRESH), subspace)
    near = nearest(screened)
    confirmed = [_confirmed(name, sgld, fresh, other) for name, (_, sgld) in near.items()]
    of_figures = [one for one in changed(every) if one.setting not in SETTINGS and one.ends]
    sections = [
        Section(
            "Screened with seeds 0 to 4",
            _screen(screened, near),
            HEADER,
            _cells(_shown(screened, SETTINGS)),
        ),
        Section(
            "Confirmed with seeds 5 to 24",
            [words for _, words in confirmed],
            HEADER,
            _cells(_shown(fresh, ["Table 1's", *near])),
        ),
        Section(
            "On Figures 5 to 8, with the seeds of both",
            [],
            HEADER[:4],
            [cells[:4] for cells in _cells(of_figures)],
        ),
    ]
    return Told(_conclusion([verdict for verdict, _ in confirmed]), sections)


def _confirmed(
    setting: str, sgld: str, fresh: Sequence[Distance], anew: Sequence[Distance] | None
) -> tuple[str, str]:
    """What fresh seeds say of a setting that the screen chose.

    Args:
        setting: The setting's name.
        sgld: SGLD's row that was the nearer in the screen.
        fresh: Every row under those seeds.
        anew: The same under R10's other reading; None leaves it to the report.

    Returns:
        The verdict on the paper's four rows as one test, empty if not all are run, and all of it,
        with the rows that would contradict it each by itself.
    """
    rows, under = (
        [one for one in found if one.setting == setting and one.row in (*TABLE1_ROWS, sgld)]
        for found in (fresh, anew or ())
    )
    named, together = f'"{setting}", SGLD\'s row {sgld}', p_value(rows)
    if together is None:
        return "", f"{named}: not all run."
    other = "judged by the report" if anew is None else _verdict(p_value(under))
    said = f"{_verdict(together)}, with test images drawn at each evaluation (R10) {other}"
    each = {one.row: p for one in rows if (p := p_value([one])) is not None and _breaks(p)}
    alone = ", ".join(f"{row} (p = {p:.2g})" for row, p in each.items()) or "none"
    return f'"{setting}" {said}', (
        f"{named}: the paper's four rows as one test: {said}. Rows that would contradict it each "
        f"by itself: {alone}."
    )


def _conclusion(verdicts: Sequence[str]) -> str:
    judged = "; ".join(filter(None, verdicts))
    if not judged:
        return ""
    return (
        f"Of the text's other readings {len(SETTINGS) - 1} settings were screened with seeds 0 to "
        "4. The nearest to Table 1 by seeds 5 to 24, the paper's four rows as one test: "
        f"{judged}."
    )


def _screen(screened: Sequence[Distance], near: Mapping[str, tuple[float, str]]) -> list[str]:
    complete = [
        setting
        for setting in SETTINGS
        if are_complete([one for one in screened if one.setting == setting])
    ]
    lines = [f"All rows are run of {len(complete)} of {len(SETTINGS)} settings."]
    if near:
        said = ", ".join(f'"{name}" ({root:.3f}, {sgld})' for name, (root, sgld) in near.items())
        lines.append(
            "Nearest of those, Table 1's apart, by the root mean square of the distances of SGD, "
            f"IS, HR and SGLD under the nearer reading of its noise: {said}."
        )
    return lines


def _breaks(p: float) -> bool:
    return p < 2 * ALPHA


def _verdict(p: float | None) -> str:
    if p is None:
        return "not all recorded"
    return ("contradicted" if _breaks(p) else "not contradicted") + f" (p = {p:.2g})"


def _shown(found: Sequence[Distance], settings: Collection[str]) -> list[Distance]:
    """Table 1's rows, and those recorded that other settings run otherwise."""
    own = [one for one in found if one.setting == "Table 1's"]
    return own + [one for one in changed(found) if one.setting in settings and one.ends]


HEADER = ["setting", "row", "runs", "accuracy", "gap to the paper", "distance", "the paper's row"]


def _cells(found: Sequence[Distance]) -> list[list[str]]:
    cells = []
    for one in found:
        end, (low, high) = centre(one.ends), _interval(one)
        shown = one.means or ([] if end is None else [end])
        gap = f"{centre(one.gaps):+.3f}" if one.gaps else "-"
        gap += "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
        p = p_value([one])
        cells.append(
            [
                one.setting,
                one.row,
                str(len(one.ends)) if one.ends else "not run",
                " ".join(f"{value:.3f}" for value in shown) or "-",
                gap,
                "-" if one.root is None else f"{one.root:.3f}",
                "-" if p is None else "contradicts" if _breaks(p) else "could be one more",
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


class _Readings(Experiment[Panels]):
    def render(
        self,
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
            for one in told(records, protocol, subspace).sections
            for part in (f"## {one.title}", *one.lines, tables.grid(one.header, one.cells))
        ]
        notes = [
            *NOTES,
            *[
                f"{one.number} {one.name}={one.values}: {one.question}."
                for one in READINGS.values()
            ],
        ]
        text = tables.page(self.TITLE, *parts, "## Notes", notes=notes)
        stages = {"screened": EARLIER, "fresh": FRESH}
        found = {
            name: distances(records, protocol, part, subspace) for name, part in stages.items()
        }
        suffix = "-quick" if protocol == self.QUICK else ""
        return text, tables.write(text, frame(found), output / f"{self.NAME}{suffix}")


EXPERIMENT = _Readings("readings", "The readings", PROTOCOL, QUICK)
