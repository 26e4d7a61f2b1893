"""The runs of the map: trials of the search, and the chosen settings on fresh seeds."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from examples.map.protocol import ADDED, DEAR_LENGTHS, DEAR_UPDATES, RATES, Protocol, Task
from examples.map.search import Settings, Space, trials
from reproduce.making import mnist
from reproduce.records import Record, Run
from reproduce.runner import Job, Outcome, Report

TUNING, FINAL = "map-tuning", "map"
"""The records' experiment names."""

Costs = Mapping[str, Mapping[str, float]]
"""Seconds of a weight update, by network and method."""

Cell = tuple[str, str]
"""A task and a method, by name."""


@dataclass(frozen=True)
class Plan:
    """Which runs there are; pickles.

    Args:
        protocol: What is measured.
        costs: Seconds of a weight update; empty where the protocol says the updates.
        tasks: Those that are made, by name.
        data_dir: Folder of the prepared MNIST; `None`: the default.
    """

    protocol: Protocol
    costs: Costs
    tasks: tuple[str, ...]
    data_dir: Path | None = None

    @property
    def can_run(self) -> bool:
        """Whether the numbers of updates are known."""
        return bool(self.costs) or self.protocol.updates is not None

    def cells(self) -> list[Cell]:
        """Returns the tasks with their methods."""
        tasks = map(self.protocol.task, self.tasks)
        return [(task.name, method) for task in tasks for method in (*task.methods, *task.added)]

    def updates(self, cell: Cell, settings: Settings) -> int:
        """Returns how many weight updates a run makes: its `length`, a share of those that fit.

        Rounded, so that between checkpoints lie as many, a multiple of the protocol's `rounding`
        (`rates_rounding`).
        """
        multiple = self.protocol.checkpoints * self.protocol.rounding
        if self.protocol.task(cell[0]).kind == "rates":
            multiple = len(RATES) * self.protocol.checkpoints * self.protocol.rates_rounding
        share = settings.get("length", 1.0)
        return multiple * max(1, round(share * self._fitting(cell) / multiple))

    def _fitting(self, cell: Cell) -> float:
        """Returns how many weight updates fit into the task's seconds, to two digits."""
        if self.protocol.updates is not None:
            return self.protocol.updates
        task = self.protocol.task(cell[0])
        cost = self.costs[task.network][ADDED.get(cell[1], cell[1])]
        return float(f"{task.seconds / cost:.2g}")

    def configuration(self, cell: Cell, settings: Settings) -> dict[str, Any]:
        """Returns what decides a run's numbers beside seed and execution, as JSON types."""
        task = asdict(self.protocol.task(cell[0]))
        decided = ("title", "methods", "seconds", "bound", "primary", "added")
        return {
            "task": {name: value for name, value in task.items() if name not in decided},
            "method": cell[1],
            "settings": dict(settings),
            "updates": self.updates(cell, settings),
            **self.protocol.settings(),
        }

    def trials(self, cell: Cell) -> list[Settings]:
        """Returns the settings that are tried."""
        space = space_of(self.protocol.task(cell[0]), cell[1])
        if "length" in space and self._fitting(cell) < DEAR_UPDATES:
            space = {**space, "length": DEAR_LENGTHS}
        return trials(space, self.protocol.trials)


def tuning_jobs(plan: Plan, execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs of the search, those of a task together."""
    seed = plan.protocol.tuning_seed
    return [
        _job(TUNING, plan, cell, settings, seed, execution)
        for cell in plan.cells()
        for settings in plan.trials(cell)
    ]


def final_jobs(
    plan: Plan, chosen: Mapping[Cell, Settings], execution: Mapping[str, Any]
) -> list[Job]:
    """Returns the runs of the chosen settings, those of a task together."""
    return [
        _job(FINAL, plan, cell, settings, seed, execution)
        for cell, settings in chosen.items()
        for seed in plan.protocol.seeds
    ]


def tuned(plan: Plan, records: Sequence[Record]) -> dict[Cell, list[Record]]:
    """Returns the records of each cell's trials, in their order, of complete cells alone."""
    found = {}
    for cell in plan.cells():
        own = [_of(records, plan.configuration(cell, one)) for one in plan.trials(cell)]
        if all(own):
            found[cell] = [each for (each, *_) in own]
    return found


def chosen(trials: Mapping[Cell, Sequence[Record]]) -> dict[Cell, Settings]:
    """Returns the settings whose trial has the best validation score; the first of equal ones."""
    return {
        cell: max(records, key=validation).run.configuration["settings"]
        for cell, records in trials.items()
    }


def validation(record: Record) -> float:
    """Returns a record's validation score; one that is NaN is the worst."""
    score = float(record.result["validation"])
    return score if score == score else float("-inf")


def finals(
    plan: Plan, settings: Mapping[Cell, Settings], records: Sequence[Record]
) -> dict[Cell, dict[int, Record]]:
    """Returns the records of the chosen settings by cell and seed, cells without any left out."""
    found = {}
    for cell, each in settings.items():
        own = _of(records, plan.configuration(cell, each))
        by_seed = {one.run.seed: one for one in own if one.run.seed in plan.protocol.seeds}
        if by_seed:
            found[cell] = by_seed
    return found


def space_of(task: Task, method: str) -> Space:
    """Returns where a task's method is searched; on the grid of rates neither rate nor length."""
    from examples.map.training import method_of

    if not trains_by_fit(task, method):
        from examples.map.strategies import strategies_of

        return strategies_of(task.kind)[method].space
    space = method_of(task, method).space
    if task.kind == "rates":
        fixed = ("learning_rate", "length")
        return {name: values for name, values in space.items() if name not in fixed}
    return space


def trains_by_fit(task: Task, method: str) -> bool:
    """Whether Keras trains, as against a strategy that takes losses alone."""
    from examples.map.methods import SIGN_METHODS

    return task.kind in ("classification", "rates") or (
        task.kind == "sign" and method in SIGN_METHODS
    )


def _of(records: Iterable[Record], configuration: Mapping[str, Any]) -> list[Record]:
    return [one for one in records if one.run.settings == configuration]


def _job(
    experiment: str,
    plan: Plan,
    cell: Cell,
    settings: Settings,
    seed: int,
    execution: Mapping[str, Any],
) -> Job:
    configuration = {**plan.configuration(cell, settings), "execution": dict(execution)}
    run = Run(experiment, f"{cell[0]}.{cell[1]}", seed, configuration)
    is_rates = plan.protocol.task(cell[0]).kind == "rates"
    steps = len(RATES) if is_rates else plan.protocol.checkpoints
    is_final = experiment == FINAL
    return Job(run, steps, partial(_execute, plan, cell, settings, seed, is_final))


def _execute(
    plan: Plan, cell: Cell, settings: Settings, seed: int, is_final: bool, report: Report
) -> Outcome:
    from examples.map import gradient_free, training

    task = plan.protocol.task(cell[0])
    by_kind = training.over_rates if task.kind == "rates" else training.classify
    way = by_kind if trains_by_fit(task, cell[1]) else gradient_free.optimise
    with warnings.catch_warnings():
        # A failed update leaves the weights as they were: the run counts with what it has.
        warnings.filterwarnings("ignore", "Up to weight update", RuntimeWarning)
        result = way(
            task,
            cell[1],
            settings,
            plan.updates(cell, settings),
            seed,
            plan.protocol,
            partial(mnist, plan.data_dir),
            is_final,
            report,
        )
    return result, {}
