"""What the training experiments have in common: their face, and the records they share."""

from collections.abc import Callable, Mapping, Sequence
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

    def has_records(
        self, records: Sequence[Record], protocol: P, subspace: str | bool = "auto", /
    ) -> bool:
        """Returns whether any record is of this protocol."""


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


def _job(case: Case, seed: int, execution: Mapping[str, Any], data: Callable[[], "Mnist"]) -> Job:
    def execute(report: Callable[[int], None]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        from reproduce.training import train

        return train(case, seed, data(), report, execution["subspace"])

    configuration = case.configuration() | {"execution": dict(execution)}
    return Job(Run(RECORDS, case.name, seed, configuration), case.training.total_updates, execute)
