"""What the training experiments have in common: their face, and the records they share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from reproduce.data import Mnist
from reproduce.protocols import Case, Comparison, Panels
from reproduce.records import Record, Run
from reproduce.runner import Job
from reproduce.summary import by_case

RECORDS = "training"
"""The records' experiment name, one for all: a run that two figures show is made once."""

P = TypeVar("P", bound=Comparison | Panels)


def jobs(
    protocol: Comparison | Panels,
    seeds: Sequence[int],
    subspace: str | bool,
    data: Callable[[], Mnist],
    execution: Mapping[str, Any],
) -> list[Job]:
    """Returns one run per case and seed, seed by seed; equal cases are one.

    Args:
        protocol: Methods on training set-ups.
        seeds: The seeds.
        subspace: The optimizers' own argument.
        data: Loads MNIST; called only if a run is made.
        execution: How this process executes: part of each run's configuration, as is `subspace`.
    """
    execution = {**execution, "subspace": subspace}
    return [_job(case, seed, execution, data) for seed in seeds for case in cases_of(protocol)]


def recorded(
    records: Sequence[Record], protocol: Comparison | Panels, subspace: str | bool = "auto"
) -> dict[Case, set[int]]:
    """Returns those cases of a protocol that have a record, and their seeds.

    Args:
        records: Any records of training.
        protocol: Methods on training set-ups.
        subspace: Which executions count: in the minibatch's subspace, "auto", or in all weights.
    """
    runs_of = by_case(records, subspace)
    found = {case: set(runs_of(case)) for case in cases_of(protocol)}
    return {case: seeds for case, seeds in found.items() if seeds}


def cases_of(protocol: Comparison | Panels) -> list[Case]:
    """Returns what is to be run, each case once."""
    if isinstance(protocol, Panels):
        return protocol.cases()
    return list(dict.fromkeys(protocol.cases().values()))


def _job(case: Case, seed: int, execution: Mapping[str, Any], data: Callable[[], Mnist]) -> Job:
    def execute(report: Callable[[int], None]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        from reproduce.training import train

        return train(case, seed, data(), report, execution["subspace"])

    configuration = case.configuration() | {"execution": dict(execution)}
    return Job(Run(RECORDS, case.name, seed, configuration), case.training.total_updates, execute)


@dataclass(frozen=True)
class Experiment(ABC, Generic[P]):
    """What trains on MNIST, `P` the type of its protocols.

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

    jobs = staticmethod(jobs)
    recorded = staticmethod(recorded)

    @abstractmethod
    def render(
        self,
        records: Sequence[Record],
        protocol: P,
        seeds: Sequence[int] | None,
        subspace: str | bool,
        output: Path,
        figures: Path,
    ) -> tuple[str, list[Path]]:
        """Writes its table and its figure, if it has one, from records.

        Args:
            records: Any records of training; those of other runs are left out.
            protocol: What is shown, run or not.
            seeds: The seeds shown, run or not; `None`: all there are.
            subspace: Whether runs in the minibatch's subspace are shown, "auto", or those in all
                weights, False.
            output: Folder of the table.
            figures: Folder of the figure.

        Returns:
            The table as Markdown, and the files written; no figure without a record.
        """
