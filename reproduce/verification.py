"""The committed reference run: copying records into it, and recomputing a part of it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from reproduce import tables
from reproduce.experiments import table2
from reproduce.records import Archive, Record, Run, Store
from reproduce.runner import Job
from reproduce.tidy import Tables

REFERENCE = Path(__file__).with_name("reference")
"""Folder of the reference run's tables."""

ACCURACY = 0.02
"""How far accuracies and losses may be apart where machine, versions or threads differ."""

RELATIVE: Mapping[str, float] = {"diagnostics": 0.02}
"""How far other numbers may be then, relative to the reference's, by their place."""

OTHERWISE, ABSOLUTE = 1e-5, 1e-8
"""The same of those whose place is not named; what no number need be closer than."""

IDENTICAL, WITHIN = "identical", "within bounds"
DIFFERS, MISSING = "DIFFERS", "no reference record"


@dataclass(frozen=True)
class Recomputed:
    """A recomputed run beside the reference.

    Args:
        label: The run.
        verdict: One of the four above.
        detail: The largest difference, or what is not equal.
    """

    label: str
    verdict: str
    detail: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the reference is confirmed."""
        return self.verdict in (IDENTICAL, WITHIN)


def chosen(reference: Tables, share: float) -> list[Record]:
    """Returns the records that are recomputed: drawn by their keys, which are hashes.

    They are taken in the order of their keys, each that fits into what is left of the share of
    all recorded seconds. Table 2's are timings, which no second run repeats, and are left out.

    Args:
        reference: The reference run.
        share: From 0 to 1, of all that takes the recorded seconds.
    """
    records = [one for one in reference.scan() if one.run.experiment != table2.NAME]
    left = share * math.fsum(record.timings["seconds"] for record in records)
    taken = []
    for record in sorted(records, key=lambda record: record.run.key):
        if record.timings["seconds"] <= left:
            taken.append(record)
            left -= record.timings["seconds"]
    return taken


def compare(ours: Record, reference: Archive) -> Recomputed:
    """Returns how a recomputed record stands to the reference.

    With equal machine, versions and threads all but the timings must be equal. Otherwise numbers
    must be within the bounds above, and everything else equal.

    Args:
        ours: The recomputed record.
        reference: The reference run's records.
    """
    theirs = counterpart(ours.run, reference.scan(ours.run.experiment))
    if theirs is None:
        return Recomputed(ours.run.label, MISSING)
    if ours.numbers() == theirs.numbers():
        return Recomputed(ours.run.label, IDENTICAL)
    if ours.run == theirs.run and ours.environment == theirs.environment:
        return Recomputed(ours.run.label, DIFFERS, "not the same numbers with equal versions")
    found = _differences(ours.result, theirs.result, "")
    worst = max(found, key=lambda one: one.excess, default=None)
    if worst is None:
        return Recomputed(ours.run.label, WITHIN, "equal results; run with other versions")
    detail = f"{worst.place}: {worst.ours} against {worst.theirs}"
    return Recomputed(ours.run.label, DIFFERS if worst.excess > 1.0 else WITHIN, detail)


def counterpart(run: Run, records: Iterable[Record]) -> Record | None:
    """Returns the record of the same run, made with equal threads if there is one."""
    same = [
        record
        for record in records
        if (record.run.experiment, record.run.case, record.run.seed)
        == (run.experiment, run.case, run.seed)
        and record.run.settings == run.settings
    ]
    return min(same, key=lambda record: record.run != run, default=None)


def markdown(compared: Sequence[Recomputed]) -> str:
    """Returns the table for reading."""
    cells = [[one.label, one.verdict, one.detail] for one in compared]
    table = tables.grid(["run", "against the reference", "largest difference"], cells)
    bad = sum(not one.is_good for one in compared)
    notes = [
        "identical: machine, versions and threads are the reference's, and so is every number.",
        f"{WITHIN}: they are not, and accuracies and losses are within {ACCURACY} of the "
        f"reference's, diagnostics within {RELATIVE['diagnostics']:.0%}, all else within a "
        f"relative {OTHERWISE:g} or an absolute {ABSOLUTE:g}.",
        f"{len(compared) - bad} of {len(compared)} runs confirm the reference.",
    ]
    return tables.page("Recomputed runs against the reference", table, notes=notes)


def collect(jobs: Sequence[Job], source: Store) -> tuple[list[Record], list[Job]]:
    """Returns the records of the jobs, and the jobs without a record, or with an untimed one."""
    found, missing = [], []
    for job in jobs:
        with source.claim(job.run) as claimed:
            record = source.load(job.run) if claimed else None
        if record is None or not record.timings:
            missing.append(job)
        else:
            found.append(record)
    return found, missing


class _Difference(NamedTuple):
    """Two values of a place that are not equal; their distance in units of what is allowed."""

    place: str
    ours: object
    theirs: object
    excess: float


def _differences(ours: Any, theirs: Any, place: str) -> list[_Difference]:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping) and ours.keys() == theirs.keys():
        inner = [_differences(ours[key], theirs[key], f"{place} {key}".strip()) for key in ours]
        return [one for found in inner for one in found]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        inner = [_differences(*pair, place) for pair in zip(ours, theirs, strict=True)]
        return [one for found in inner for one in found]
    if ours == theirs:
        return []
    return [_Difference(place, ours, theirs, _excess(ours, theirs, place))]


def _excess(ours: Any, theirs: Any, place: str) -> float:
    numbers = [value for value in (ours, theirs) if isinstance(value, int | float)]
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        return math.inf
    part = place.partition(" ")[0]
    allowed = (
        ACCURACY if part == "curve" else max(ABSOLUTE, RELATIVE.get(part, OTHERWISE) * abs(theirs))
    )
    return abs(ours - theirs) / allowed
