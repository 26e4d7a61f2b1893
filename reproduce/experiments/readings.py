"""The readings of what the text leaves open, run: one at a time, and combinations named beforehand.

Screened with seeds 0 to 4; the three settings nearest to the paper in all rows are confirmed with
seeds 5 to 24, and judged by those alone. A reading that all rows share (initial weights,
activation, pixels, sampling) explains only if one setting fits them all. R10, the draw of the test
images, needs no runs of its own: Table 1's runs record the accuracy under both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd

from reproduce import paper, readings, tables
from reproduce.claims.evidence import EARLIER, FRESH
from reproduce.claims.parts import Part, Prediction, is_uncontradicted
from reproduce.experiments import base, figure5, panels
from reproduce.experiments.variations import heat_regularization
from reproduce.protocols import (
    TABLE1,
    VARIANTS,
    Comparison,
    GradientDescent,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Panels,
    Training,
)
from reproduce.readings import READINGS
from reproduce.records import Record
from reproduce.summary import MethodRow, centre

NAME = "readings"
TITLE = "The readings"

_SUM = {"loss_multiplier": 20.0}
_GROWING = {"growing": True}
_OWN = _SUM | _GROWING
_NORMAL = {"initialization": "normal"}
_UNIFORM = {"initialization": "uniform"}
_TANH = {"activation": "tanh"}
_SIGMOID = {"activation": "sigmoid"}
_REPLACED = {"sampling": "replacement"}
_STANDARD = {"pixels": "standardised"}

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "Table 1's": {},
    "R2 sum": _SUM,
    "R5 growing": _GROWING,
    "R6 chain from the weights": {"persistent": False},
    "R8 normal": _NORMAL,
    "R8 uniform": _UNIFORM,
    "R9 j runs on": {"restart": False},
    "R13 tanh": _TANH,
    "R13 sigmoid": _SIGMOID,
    "R14 replacement": _REPLACED,
    "R15 standardised": _STANDARD,
    "R2 + R5": _OWN,
    "R2 + R5 + normal": _OWN | _NORMAL,
    "R2 + R5 + uniform": _OWN | _UNIFORM,
    "R2 + R5 + standardised": _OWN | _STANDARD,
    "R2 + R5 + tanh": _OWN | _TANH,
    "normal + standardised": _NORMAL | _STANDARD,
    "uniform + standardised": _UNIFORM | _STANDARD,
    "normal + tanh": _NORMAL | _TANH,
    "uniform + tanh": _UNIFORM | _TANH,
    "tanh + standardised": _TANH | _STANDARD,
    "normal + replacement": _NORMAL | _REPLACED,
    "R2 + R5 + normal + standardised": _OWN | _NORMAL | _STANDARD,
}
"""What is chosen otherwise than by default, on Table 1."""

_TAUS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_CAPTION = 1500 ** (1 / 500) - 1
"""R11: tau1 such that tau falls from 1.5 to 0.001 in 500 updates, as Figure 8's caption has it."""


def protocol(table1: Comparison, after: Training, small: Training, samples: int) -> Panels:
    """Returns a panel per setting of Table 1, and five for Figures 5 to 8.

    Args:
        table1: Table 1.
        after: Figure 5's training set-up.
        small: Figure 7's.
        samples: Of the methods in those figures.
    """
    settings = {name: readings.choose(table1, chosen) for name, chosen in SETTINGS.items()}
    summed = {
        f"IS, tau = {tau:g}": LocalEntropyByImportanceSampling(tau, samples, **_SUM)
        for tau in _TAUS
    }
    scoped = {
        row: LocalEntropyBySGLD(1.5, samples, tau1=_CAPTION, **VARIANTS.get(row, {}))
        for row in ("sgld", "sgld-linear")
    }
    both = {
        "IS, sum": LocalEntropyByImportanceSampling(samples=samples, **_SUM),
        "HR, growing": replace(table1.methods["hr"], **_GROWING),
    }
    growing = {
        f"HR, S = {count}": replace(heat_regularization(count * samples // 1000), **_GROWING)
        for count in (10, 100, 1000)
    }
    slow = {f"SGD, learning rate {tau:g}": GradientDescent(tau) for tau in _TAUS[:3]}
    return Panels(
        settings
        | {
            "R2 sum and R5 growing, Figure 5": Comparison(after, both),
            "R5 growing, Figure 6": Comparison(table1.training, growing),
            "R2 sum, Figure 7": Comparison(small, summed),
            "R11 from 1.5 to 0.001, Figure 8": Comparison(table1.training, scoped),
            "SGD with a small learning rate, Figure 7": Comparison(small, slow),
        }
    )


PROTOCOL = protocol(TABLE1, figure5.TRAINING, Training(network="small_dense"), 1000)
"""The screen, at the paper's budget."""

_SHORT = Training(updates=6, test_images=100, evaluate_every=3, tabulated=(6,))
QUICK = protocol(
    replace(TABLE1.with_budget(samples=4), training=_SHORT),
    replace(_SHORT, sgd_updates=6, tabulated=(12,)),
    replace(_SHORT, network="small_dense"),
    samples=100,
)
"""The same at a budget for a first look; not the paper's."""

jobs, recorded = base.jobs, base.recorded


@dataclass(frozen=True)
class Distance:
    """How far a row under a setting is from the paper's.

    Args:
        setting: The setting's name.
        row: The row's name.
        ends: Accuracy after the last update by seed.
        gaps: Ours less the paper's by seed, each the mean over Table 1's columns.
        root: Root mean square over the columns of the mean curve's gaps.
        fits: Whether the paper's run could be one more of ours; None before two or more seeds, and
            all that were asked for, are run.
    """

    setting: str
    row: str
    ends: Sequence[float] = ()
    gaps: Sequence[float] = ()
    root: float | None = None
    fits: bool | None = None


def distances(
    records: Sequence[Record],
    protocol: Panels,
    seeds: Sequence[int],
    subspace: str | bool = "auto",
) -> list[Distance]:
    """Returns every row of every setting under these seeds, those without a record too."""
    return [
        _distance(panel.title, row)
        for panel in panels.summarised(records, protocol, seeds, subspace)
        for row in panel.rows
    ]


def _distance(setting: str, row: MethodRow) -> Distance:
    curves = list(row.curves.values())
    last = max(row.updates(), default=0)
    ends = [curve[last] for curve in curves if last in curve]
    published = paper.TABLE1.get(row.name.partition("-")[0], {}) if setting in SETTINGS else {}
    whole = [curve for curve in curves if published and published.keys() <= curve.keys()]
    if not whole:
        return Distance(setting, row.name, ends)
    gaps = [mean(curve[update] - value for update, value in published.items()) for curve in whole]
    parts = [
        Prediction("", [curve[update] for curve in whole], published=value, rounding=0.005)
        for update, value in published.items()
    ]
    root = mean((part.value - part.published) ** 2 for part in parts) ** 0.5
    fits = is_uncontradicted(parts) if 1 < len(whole) == len(row.seeds) else None
    return Distance(setting, row.name, ends, gaps, root, fits)


def frame(found: Mapping[str, Sequence[Distance]]) -> pd.DataFrame:
    """Returns a line per stage, setting and row, numbers unrounded."""
    return pd.DataFrame(
        {
            "stage": name,
            "setting": one.setting,
            "row": one.row,
            "runs": len(one.ends),
            "end": centre(one.ends),
            "gap": centre(one.gaps),
            "gap_low": _interval(one)[0],
            "gap_high": _interval(one)[1],
            "root_mean_square": one.root,
            "fits": one.fits,
        }
        for name, rows in found.items()
        for one in rows
    )


def _interval(one: Distance) -> tuple[float | None, float | None]:
    return Part("", one.gaps).interval(1) if len(one.gaps) > 1 else (None, None)


def grid(found: Sequence[Distance]) -> list[list[str]]:
    """Returns the table's cells: setting, row, runs, end, gap, distance, whether it fits."""
    cells = []
    for one in found:
        end, (low, high) = centre(one.ends), _interval(one)
        gap = f"{centre(one.gaps):+.3f}" if one.gaps else "-"
        gap += "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
        said = {True: "could be one more", False: "contradicted", None: "-"}[one.fits]
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


HEADER = ["setting", "row", "runs", "end", "gap to the paper", "distance", "the paper's row"]


def stages(seeds: Sequence[int] | None) -> dict[str, list[int]]:
    """Returns the seeds that screen and those that confirm, by what each is called."""
    wanted = sorted({*EARLIER, *FRESH} if seeds is None else seeds)
    parts = {
        "Screened": [seed for seed in wanted if seed in EARLIER],
        "Confirmed": [seed for seed in wanted if seed not in EARLIER],
    }
    return {
        f"{name} with seeds {' '.join(map(str, some))}": some
        for name, some in parts.items()
        if some
    }


def changed(found: Sequence[Distance]) -> list[Distance]:
    """Returns the rows whose runs are not Table 1's own."""
    own = set(TABLE1.cases().values())
    cases = {name: comparison.cases() for name, comparison in PROTOCOL.panels.items()}
    return [one for one in found if cases[one.setting][one.row] not in own]


def run(found: Sequence[Distance]) -> dict[str, bool]:
    """Returns whether a row is recorded of each setting that has one which is not Table 1's own."""
    rows = changed(found)
    recorded = {one.setting for one in rows if one.ends}
    return {one.setting: one.setting in recorded for one in rows}


def told(found: Sequence[Distance]) -> list[Distance]:
    """Returns the rows that a table shows: Table 1's, then what the settings run otherwise."""
    rows = [one for one in found if one.setting == "Table 1's"] + changed(found)
    is_run = run(found)
    return [one for one in rows if is_run.get(one.setting, True)]


def joint(found: Sequence[Distance]) -> list[str]:
    """Returns in words which settings no row contradicts, and which come nearest in all rows."""
    settings = {name: _as_table1(found, name) for name in SETTINGS}
    fitting = [
        name for name, rows in settings.items() if all(any(one.fits for one in row) for row in rows)
    ]
    roots = {name: _root(rows) for name, rows in settings.items()}
    nearest = sorted((name for name in roots if roots[name] < math.inf), key=roots.__getitem__)
    listed = ", ".join(f"`{name}`" for name in fitting) or "none"
    lines = [f"Settings that no row of Table 1 contradicts: {listed}."]
    if nearest:
        said = ", ".join(f"`{name}` ({roots[name]:.3f})" for name in nearest[:3])
        lines.append(
            "Nearest in all rows, by the root mean square of their distances (SGLD's under the "
            f"nearer reading of its noise): {said}."
        )
    return lines


def _as_table1(found: Sequence[Distance], setting: str) -> list[list[Distance]]:
    """A setting's rows as the paper has them: SGLD's is one, under two readings of its noise."""
    rows = {one.row: one for one in found if one.setting == setting}
    return [
        [one for row, one in rows.items() if row.partition("-")[0] == name] for name in paper.TABLE1
    ]


def _root(rows: Sequence[Sequence[Distance]]) -> float:
    """The root mean square of the rows' distances, infinite where one has none."""
    nearer = (min(math.inf if one.root is None else one.root for one in row) for row in rows)
    return mean(root**2 for root in nearer) ** 0.5


def render(
    records: Sequence[Record],
    protocol: Panels,
    seeds: Sequence[int] | None,
    subspace: str | bool,
    output: Path,
    figures: Path,
) -> tuple[str, list[Path]]:
    """Writes every setting beside the paper's rows, in both formats; see `Experiment.render`."""
    del figures  # there is none
    found = {
        name: distances(records, protocol, some, subspace) for name, some in stages(seeds).items()
    }
    suffix = "" if protocol == PROTOCOL else "-quick" if protocol == QUICK else "-some"
    parts = [
        part
        for name, some in found.items()
        for part in (f"## {name}", *joint(some), tables.grid(HEADER, grid(some)))
    ]
    notes = [
        "gap: ours less the paper's, mean over Table 1's five columns, and the 95 % interval of "
        "that mean over seeds; distance: root mean square over the columns of our mean curve's.",
        "the paper's row: whether it could be one more run of ours (prediction intervals, 99 % "
        "at each column, rounding added), once all of these seeds are run.",
        *[f"{one.number} {one.name}={one.values}: {one.question}." for one in READINGS.values()],
    ]
    text = tables.page(TITLE, *parts, "## Notes", notes=notes)
    return text, tables.write(text, frame(found), output / f"{NAME}{suffix}")
