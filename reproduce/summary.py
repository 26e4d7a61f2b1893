"""What the records of a comparison say, row by row; the only door from records to rendering."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from reproduce.protocols import Comparison
from reproduce.records import Record

TITLES = {"sgd": "SGD", "is": "IS", "sgld": "SGLD", "hr": "HR"}
"""How the paper names the methods."""


@dataclass(frozen=True)
class Budget:
    """Whether a comparison is the paper's, in words and in file names.

    Args:
        departures: The fields that differ from the paper's protocol; none if it is the paper's.
        suffix: What file names carry, empty for the paper's protocol alone.
    """

    departures: tuple[str, ...]
    suffix: str

    @classmethod
    def of(cls, comparison: Comparison, published: Comparison, quick: Comparison) -> "Budget":
        """Returns the budget of a comparison, beside the paper's and the quick one."""
        departures = comparison.differences(published)
        if not departures:
            return cls((), "")
        if not comparison.differences(quick):
            return cls(tuple(departures), "-quick")
        return cls(tuple(departures), "-" + "-".join(re.findall(r"[\w.]+", " ".join(departures))))

    @property
    def warning(self) -> str:
        """A label to be shown, empty for the paper's protocol."""
        return f"NOT the paper's budget: {', '.join(self.departures)}" if self.departures else ""


@dataclass(frozen=True)
class Row:
    """A method's runs.

    Args:
        name: The method, as the command line knows it.
        seeds: The seeds asked for.
        curves: Accuracy by update of each seed that has a record.
        diverged: The update at which a seed's run diverged, of those that did.
        environments: What the runs ran on, each once.
    """

    name: str
    seeds: tuple[int, ...]
    curves: Mapping[int, Mapping[int, float]]
    diverged: Mapping[int, int]
    environments: tuple[str, ...]

    @property
    def title(self) -> str:
        """The paper's name of the method, and what sets the row apart."""
        method, _, variant = self.name.partition("-")
        return TITLES.get(method, method) + (f" ({variant})" if variant else "")

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


def centre(values: Sequence[float]) -> float | None:
    """Returns the mean, None of nothing."""
    return mean(values) if values else None


def spread(values: Sequence[float]) -> float | None:
    """Returns the sample standard deviation, None of fewer than two values."""
    return stdev(values) if len(values) > 1 else None


def summarise(
    records: Sequence[Record], comparison: Comparison, seeds: Sequence[int] | None
) -> list[Row]:
    """Returns a comparison's rows.

    Where a run was made in several ways (with other numbers of threads), the first in the order
    of the records counts.

    Args:
        records: In any number; those of other configurations are left out.
        comparison: The rows wanted.
        seeds: The seeds wanted; `None`: those of any record that belongs to the comparison.
    """
    found = {name: _by_seed(records, name, comparison) for name in comparison.methods}
    if seeds is None:
        seeds = sorted({seed for runs in found.values() for seed in runs})
    return [_row(name, tuple(seeds), runs) for name, runs in found.items()]


def _by_seed(records: Sequence[Record], name: str, comparison: Comparison) -> dict[int, Record]:
    wanted = comparison.cases()[name].configuration()
    fitting = [
        record
        for record in records
        if record.run.case == name and _without_execution(record.run.configuration) == wanted
    ]
    return {record.run.seed: record for record in reversed(fitting)}


def _without_execution(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in configuration.items() if name != "execution"}


def _row(name: str, seeds: tuple[int, ...], runs: Mapping[int, Record]) -> Row:
    kept = {seed: runs[seed] for seed in seeds if seed in runs}
    return Row(
        name=name,
        seeds=seeds,
        curves={seed: _curve(record) for seed, record in kept.items()},
        diverged={
            seed: record.result["diverged_at"]
            for seed, record in kept.items()
            if record.result["diverged_at"] is not None
        },
        environments=tuple(sorted({_environment(record) for record in kept.values()})),
    )


def _curve(record: Record) -> dict[int, float]:
    curve = record.result["curve"]
    return dict(zip(curve["update"], curve["accuracy"], strict=True))


def _environment(record: Record) -> str:
    execution, versions = record.run.configuration["execution"], record.environment
    return (
        f"{execution['threads']} threads on {versions['processor']} ({execution['device']}), "
        f"TensorFlow {versions['tensorflow']}, Keras {versions['keras']}"
    )
