"""What the records of a comparison say, row by row; rendering reads records through it alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any, TypeVar

from reproduce import strict_json
from reproduce.protocols import Case, Comparison, Difference, Panels, spelled
from reproduce.readings import READINGS
from reproduce.records import Record

TITLES = {"sgd": "SGD", "is": "IS", "sgld": "SGLD", "hr": "HR"}
"""How the paper names the methods."""

ROW_TITLES = TITLES | {
    "sgld": "SGLD (as printed)",
    "sgld-linear": "SGLD (noise=linear)",
    "sgld-paper": "SGLD (the paper's row)",
}
"""How the rows of Table 1 are called: SGLD's noise has two readings, the paper's row has one."""

Published = Mapping[str, Mapping[int, float]]
"""The paper's accuracies by method and weight update."""


C = TypeVar("C", Comparison, Panels)


@dataclass(frozen=True)
class Budget:
    """Whether a comparison is the paper's, in words and in file names.

    Args:
        departures: The fields that differ from the paper's protocol; none if it is the paper's.
        chosen: The readings that differ from the default ones, likewise.
        suffix: What file names carry, empty for the paper's protocol alone.
    """

    departures: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    suffix: str = ""

    @classmethod
    def of(cls, comparison: C, published: C, quick: C, subspace: str | bool = "auto") -> "Budget":
        """Returns the budget of a comparison, beside the paper's and the quick one."""
        departures, chosen = _parted(comparison.differences(published))
        is_quick = not _parted(comparison.differences(quick))[0]
        names = ["quick"] if departures and is_quick else _words(departures)
        names += _words(chosen) + ([] if subspace == "auto" else ["subspace", spelled(subspace)])
        return cls(
            tuple(map(str, departures)),
            tuple(map(str, chosen)),
            "".join(f"-{name}" for name in names),
        )

    @property
    def warning(self) -> str:
        """A label to be shown, empty for the paper's protocol under the default readings."""
        parts = [f"NOT the paper's budget: {', '.join(self.departures)}"] * bool(self.departures)
        parts += [f"other readings than by default: {', '.join(self.chosen)}"] * bool(self.chosen)
        return "; ".join(parts)


@dataclass(frozen=True)
class MethodRow:
    """A method's runs.

    Args:
        name: The method, as the command line knows it, or what sets the row apart in a panel.
        method: Table 1's row of the method.
        seeds: The seeds asked for.
        curves: Accuracy by update of each seed that has a record.
        diverged: The update at which a seed's run diverged, of those that did.
        environments: What the runs ran on, each once.
        paths: How the runs drew their noise, each once; none for a method that draws none.
    """

    name: str
    method: str
    seeds: tuple[int, ...]
    curves: Mapping[int, Mapping[int, float]]
    diverged: Mapping[int, int]
    environments: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def title(self) -> str:
        """The method's, if the row is named as one of Table 1's, else the row's own name."""
        return ROW_TITLES[self.method] if self.name in ROW_TITLES else self.name

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds without a record."""
        return tuple(seed for seed in self.seeds if seed not in self.curves)

    def updates(self) -> list[int]:
        """Returns the updates at which any run was evaluated."""
        return sorted({update for curve in self.curves.values() for update in curve})

    def at(self, update: int) -> list[float]:
        """Returns the accuracies at an update, of the runs that got there."""
        return [curve[update] for curve in self.curves.values() if update in curve]

    def gone(self, update: int) -> int:
        """Returns how many runs had diverged by an update."""
        return sum(1 for at in self.diverged.values() if at <= update)


@dataclass(frozen=True)
class Panel:
    """Rows that are shown in one set of axes, or one below the other in a table.

    Args:
        title: What the rows have in common.
        rows: The rows.
        columns: The updates that a table shows.
        published: The paper's accuracies by row and update, for a table; none for most panels.
        first: The first update that a figure shows.
        measure: What a figure shows.
        limits: Its values that a figure shows, from and to; `None`: all.
        switch: The update after which SGD gave way to the methods, 0 if it never ran first.
        schedule: tau by weight update, where a figure shows it.
    """

    title: str
    rows: Sequence[MethodRow]
    columns: tuple[int, ...] = ()
    published: Published = field(default_factory=dict)
    first: int = 0
    measure: str = "held-out accuracy"
    limits: tuple[float | None, float | None] = (0.0, 1.0)
    switch: int = 0
    schedule: Mapping[int, float] = field(default_factory=dict)

    def updates(self, row: MethodRow) -> list[int]:
        """Returns the updates at which a row is shown: SGD's own part as SGD alone."""
        start = self.first if row.method == "sgd" else max(self.first, self.switch)
        return [update for update in row.updates() if update >= start]


def published_rows(rows: Sequence[MethodRow], published: Published) -> list[MethodRow]:
    """Returns the paper's rows as runs of their own, as far as ours go; variants have none."""
    reached = max((update for row in rows for update in row.updates()), default=0)
    return [_published(row, published[row.name], reached) for row in rows if row.name in published]


def centre(values: Sequence[float]) -> float | None:
    """Returns the mean, None of nothing."""
    return mean(values) if values else None


def spread(values: Sequence[float]) -> float | None:
    """Returns the sample standard deviation, None of fewer than two values."""
    return stdev(values) if len(values) > 1 else None


def summarise(
    records: Sequence[Record],
    comparison: Comparison,
    seeds: Sequence[int] | None,
    subspace: str | bool = "auto",
) -> list[MethodRow]:
    """Returns a comparison's rows.

    Args:
        records: In any number; those of other configurations are left out.
        comparison: The rows wanted.
        seeds: The seeds wanted; `None`: those of any record that belongs to the comparison.
        subspace: The execution wanted: in the minibatch's subspace, "auto", or in all weights.
    """
    runs_of = by_case(records, subspace)
    found = {name: runs_of(case) for name, case in comparison.cases().items()}
    if seeds is None:
        seeds = sorted({seed for runs in found.values() for seed in runs})
    return [
        _row(name, comparison.methods[name].row, tuple(seeds), runs) for name, runs in found.items()
    ]


def by_case(
    records: Sequence[Record], subspace: str | bool = "auto"
) -> Callable[[Case], Mapping[int, Record]]:
    """Returns what takes a case to its records by seed.

    Where a run was made in several ways (with other numbers of threads), the first in the order
    of the records counts.

    Args:
        records: Any records of training.
        subspace: Which executions count: in the minibatch's subspace, "auto", or in all weights.
    """
    found: dict[str, dict[int, Record]] = {}
    for record in records:
        if _execution(record)["subspace"] == subspace:
            of_case = found.setdefault(record.run.settings_text, {})
            of_case.setdefault(record.run.seed, record)
    return lambda case: found.get(strict_json.dumps(case.configuration()), {})


def _row(name: str, method: str, seeds: tuple[int, ...], runs: Mapping[int, Record]) -> MethodRow:
    kept = {seed: runs[seed] for seed in seeds if seed in runs}
    return MethodRow(
        name=name,
        method=method,
        seeds=seeds,
        curves={seed: _curve(record) for seed, record in kept.items()},
        diverged={
            seed: record.result["diverged_at"]
            for seed, record in kept.items()
            if record.result["diverged_at"] is not None
        },
        environments=tuple(sorted({environment(record) for record in kept.values()})),
        paths=tuple(sorted({path for record in kept.values() for path in _paths(record)})),
    )


def _published(row: MethodRow, accuracies: Mapping[int, float], reached: int) -> MethodRow:
    curve = {update: one for update, one in accuracies.items() if update <= reached}
    name = f"{row.name}-paper" if f"{row.name}-paper" in ROW_TITLES else row.name
    return MethodRow(name, name, (), {0: curve}, {}, (), ())


def _parted(differences: Sequence[Difference]) -> tuple[list[Difference], list[Difference]]:
    """Returns the differences in the budget and those in the readings."""
    chosen = [difference for difference in differences if difference.name in READINGS]
    return [difference for difference in differences if difference not in chosen], chosen


def _words(differences: Sequence[Difference]) -> list[str]:
    return [
        word for one in differences for word in re.findall(r"[\w.]+", f"{one.name} {one.value}")
    ]


def _curve(record: Record) -> dict[int, float]:
    curve = record.result["curve"]
    return dict(zip(curve["update"], curve["accuracy"], strict=True))


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun in the right number."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _execution(record: Record) -> Mapping[str, Any]:
    return record.run.configuration["execution"]


def _paths(record: Record) -> list[str]:
    reported = record.result["diagnostics"]
    if not reported.get("dimensions"):
        return []
    sampled, compiled = reported["sampled_dimensions"], all(reported["compiled"])
    counts = "-".join(f"{count:,.0f}" for count in sorted({min(sampled), max(sampled)}))
    loop = "compiled by XLA" if compiled else "not compiled by XLA"
    return [f"noise in {counts} of {reported['dimensions'][-1]:,.0f} dimensions, loop {loop}"]


def environment(record: Record, *, is_sampling_told: bool = True) -> str:
    """Returns what a run ran on, in words."""
    execution, versions = _execution(record), record.environment
    sampling = f"subspace={spelled(execution['subspace'])}, " if is_sampling_told else ""
    return (
        f"{counted(execution['threads'], 'thread')} on {versions['processor']} "
        f"({execution['device']}), {sampling}"
        f"TensorFlow {versions['tensorflow']}, Keras {versions['keras']}"
    )
