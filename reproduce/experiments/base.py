"""What the training experiments have in common: their face, and the records they share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reproduce.protocols import Case
from reproduce.records import Record, Run
from reproduce.runner import Job

if TYPE_CHECKING:
    from reproduce.data import Mnist

RECORDS = "training"
"""The records' experiment name, one for all: a run that two figures show is made once."""

P = TypeVar("P")


class Experiment(Protocol[P]):
    """A module of `reproduce.experiments` that trains on MNIST, `P` the type of its protocols.

    `records` are any that `Store.scan(RECORDS)` returns; those of other runs are left out.

    Args:
        NAME: The command's name and the stem of the files.
        TITLE: The paper's name of it.
        PROTOCOL: The paper's budget.
        QUICK: A budget for a first look.
    """

    NAME: str
    TITLE: str
    PROTOCOL: P
    QUICK: P

    def jobs(
        self,
        protocol: P,
        seeds: Sequence[int],
        execution: Mapping[str, Any],
        data: Callable[[], "Mnist"],
        /,
    ) -> list[Job]:
        """Returns the runs, seed by seed, each once."""

    def render(
        self,
        records: Sequence[Record],
        protocol: P,
        seeds: Sequence[int] | None,
        subspace: str | bool,
        output: Path,
        figures: Path,
        /,
    ) -> tuple[str, list[Path]]:
        """Returns a text for the terminal, and the files written; seeds `None`: all there are."""

    def recorded(
        self, records: Sequence[Record], protocol: P, subspace: str | bool = "auto", /
    ) -> frozenset[Case]:
        """Returns those runs of a protocol, whatever the seed, that have a record."""


def training_jobs(
    cases: Sequence[Case],
    seeds: Sequence[int],
    execution: Mapping[str, Any],
    data: Callable[[], "Mnist"],
) -> list[Job]:
    """Returns one run per case and seed, seed by seed; equal cases are one.

    Args:
        cases: Methods on training set-ups.
        seeds: The seeds.
        execution: How this process executes, `subspace` included: part of each run's
            configuration.
        data: Loads MNIST; called only if a run is made.
    """
    distinct = dict.fromkeys(cases)
    return [_job(case, seed, execution, data) for seed in seeds for case in distinct]


def recorded(
    records: Sequence[Record], cases: Iterable[Case], subspace: str | bool
) -> frozenset[Case]:
    """Returns those cases that have a record.

    Args:
        records: Any records of training.
        cases: Methods on training set-ups.
        subspace: Which executions count: in the minibatch's subspace, "auto", or in all weights.
    """
    there = [one.run.settings for one in _executed(records, subspace)]
    return frozenset(case for case in cases if case.configuration() in there)


def recorded_seeds(
    records: Sequence[Record], cases: Iterable[Case], subspace: str | bool
) -> set[int]:
    """Returns the seeds of which any of the cases has a record; arguments as `recorded`'s."""
    wanted = [case.configuration() for case in cases]
    return {one.run.seed for one in _executed(records, subspace) if one.run.settings in wanted}


def _executed(records: Sequence[Record], subspace: str | bool) -> list[Record]:
    return [one for one in records if one.run.configuration["execution"]["subspace"] == subspace]


def _job(case: Case, seed: int, execution: Mapping[str, Any], data: Callable[[], "Mnist"]) -> Job:
    def execute(report: Callable[[int], None]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        from reproduce.training import train

        return train(case, seed, data(), report, execution["subspace"])

    configuration = case.configuration() | {"execution": dict(execution)}
    return Job(Run(RECORDS, case.name, seed, configuration), case.training.total_updates, execute)
