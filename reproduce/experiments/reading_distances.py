"""How far Table 1's rows under other readings are from the paper's, and whether one fits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from reproduce import paper
from reproduce.claims.bounds import CHANCE
from reproduce.claims.parts import Prediction
from reproduce.claims.tables import ROUNDING
from reproduce.experiments import panels
from reproduce.experiments.reading_settings import PROTOCOL, SETTINGS
from reproduce.protocols import TABLE1, Panels
from reproduce.records import Record
from reproduce.summary import MethodRow, Panel

TABLE1_ROWS = ("sgd", "is", "hr")
"""Table 1's as the paper has them; SGLD's stands beside them, under one reading of its noise."""


@dataclass(frozen=True)
class Distance:
    """How far a row under a setting is from the paper's; a run that diverged is at chance.

    Args:
        setting: The setting's name.
        row: The row's name.
        is_complete: Whether every seed asked for is run.
        ends: Accuracy after the last update by seed.
        gaps: Ours less the paper's by seed, each the mean over Table 1's columns.
        means: The mean over seeds at each of those columns.
        root: Root mean square over the columns of the mean curve's gaps.
        broken: The columns' p-values against the paper's run being one more of ours.
    """

    setting: str
    row: str
    is_complete: bool
    ends: Sequence[float]
    gaps: Sequence[float] = ()
    means: Sequence[float] = ()
    root: float | None = None
    broken: Sequence[float] = ()


def distances(
    records: Sequence[Record], protocol: Panels, seeds: Sequence[int], subspace: str | bool = "auto"
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
    means = [part.value for part in parts]
    return Distance(*known, gaps, means, root, [part.broken() for part in parts])


def p_value(rows: Iterable[Distance]) -> float | None:
    """Returns that of the paper's run being one more of ours in all columns of these rows.

    Twice the least of the columns' one-sided p-values times how many they are; None before two
    seeds, and all that were asked for, are run.
    """
    rows = list(rows)
    if not all(row.is_complete and len(row.gaps) > 1 for row in rows):
        return None
    broken = [p for row in rows for p in row.broken]
    return min(2 * len(broken) * min(broken), 1.0)


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
        if setting != "Table 1's" and are_complete(rows.values()):
            roots = {row: one.root for row, one in rows.items() if one.root is not None}
            sgld = min(("sgld", "sgld-linear"), key=roots.__getitem__)
            near = [roots[row] ** 2 for row in (*TABLE1_ROWS, sgld)]
            found[setting] = (mean(near) ** 0.5, sgld)
    order = sorted(found, key=lambda setting: found[setting][0])
    return {setting: found[setting] for setting in order[:3]}


def are_complete(rows: Iterable[Distance]) -> bool:
    """Whether all runs of these rows are recorded."""
    return all(row.is_complete and row.gaps for row in rows)


def changed(found: Sequence[Distance]) -> list[Distance]:
    """Returns the rows whose runs are not Table 1's own."""
    own = set(TABLE1.cases().values())
    cases = {name: comparison.cases() for name, comparison in PROTOCOL.panels.items()}
    return [one for one in found if cases[one.setting][one.row] not in own]


def drawn_anew(records: Sequence[Record]) -> list[Record]:
    """Returns the records with the accuracy on test images drawn at each evaluation, R10.

    Args:
        records: Any of training; those made before that was recorded are left out.
    """
    return [
        replace(record, result={**record.result, "curve": {**curve, "accuracy": measured}})
        for record in records
        if (measured := record.timings.get("held_out", {}).get("per_evaluation"))
        and (curve := record.result["curve"])
    ]
