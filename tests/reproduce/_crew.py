"""Trivial jobs by several workers, as a command makes them.

FOLDER SECONDS COUNT SCHEDULER SEEDS..., the scheduler - for processes of this machine.
"""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from reproduce import environment, parallel, runner
from reproduce.parallel import Plan, Workers
from reproduce.records import Store
from reproduce.runner import Job, Outcome, Report, Settled
from tests.reproduce._invocation import Lines, job, say

# Their process is killed in the middle: always, and the first time.
KILLED_SEED, LOST_SEED = 99, 98


@dataclass(frozen=True)
class Trivial(Plan):
    """Builds trivial jobs, without TensorFlow."""

    seconds: float = 0.0
    seeds: tuple[int, ...] = ()

    def jobs(self) -> list[Job]:
        return [
            _killed(seed, self.output)
            if seed in (KILLED_SEED, LOST_SEED)
            else job(seed, self.seconds)
            for seed in self.seeds
        ]


class Pids(Lines):
    """Prints the process of each run as it begins."""

    def began(self, job: Job) -> None:
        say("began", job)

    def error(self, text: str) -> None:
        print(text, flush=True)


def plan(folder: Path, seconds: float, seeds: Sequence[int]) -> Trivial:
    return Trivial(_none, 1, folder, seconds=seconds, seeds=tuple(seeds))


def run(folder: Path, seconds: float, workers: Workers, seeds: Sequence[int]) -> Settled:
    planned = plan(folder, seconds, seeds)
    if workers == Workers():
        store = Store(folder, warn=print)
        return runner.run_missing(planned.jobs(), store, environment.describe(), Pids())
    return parallel.run_missing(planned, planned.jobs(), workers, Pids())


def losses(folder: Path, seed: int) -> int:
    """How often a run's process was killed in its middle."""
    return len(list(folder.glob(f"lost-{seed}-*")))


def _killed(seed: int, folder: Path) -> Job:
    whole = job(seed, 0)

    def execute(report: Report) -> Outcome:
        before = losses(folder, seed)
        if seed == KILLED_SEED or before == 0:
            (folder / f"lost-{seed}-{before}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return whole.execute(report)

    return Job(whole.run, whole.steps, execute)


def _none(execution: Any) -> list[Job]:
    return []


if __name__ == "__main__":
    # Here alone: each process that makes runs imports this module too, by this name.
    from reproduce import cli
    from reproduce.cli import app
    from tests.reproduce import _crew

    folder, seconds, count, scheduler, *seeds = sys.argv[1:]
    workers = Workers(int(count), None if scheduler == "-" else scheduler)

    def train(*arguments: object) -> int:
        _crew.run(Path(folder), float(seconds), workers, list(map(int, seeds)))
        sys.exit(0)

    with mock.patch.object(app, "_train", train):
        sys.exit(cli.main(["table1"]))
