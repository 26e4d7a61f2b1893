"""Trivial jobs in several processes, as a command makes them: FOLDER SECONDS PROCESSES SEEDS..."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from reproduce import environment, parallel, runner
from reproduce.parallel import Plan
from reproduce.records import Store
from reproduce.runner import Job, Outcome, Report, Summary
from tests.reproduce._invocation import Lines, job, say

KILLED_SEED = 99


@dataclass(frozen=True)
class Trivial(Plan):
    """Builds trivial jobs, without TensorFlow."""

    seconds: float = 0.0
    seeds: tuple[int, ...] = ()

    def jobs(self) -> list[Job]:
        return [
            _killed() if seed == KILLED_SEED else job(seed, self.seconds) for seed in self.seeds
        ]


class Pids(Lines):
    """Prints the process of each run as it begins."""

    def began(self, job: Job) -> None:
        say("began", job)

    def error(self, text: str) -> None:
        print(text, flush=True)


def plan(folder: Path, seconds: float, seeds: Sequence[int]) -> Trivial:
    return Trivial(_none, 1, folder, _nothing, seconds, tuple(seeds))


def run(folder: Path, seconds: float, processes: int, seeds: Sequence[int]) -> Summary:
    planned = plan(folder, seconds, seeds)
    store, watcher = Store(folder, warn=print), Pids()
    if processes == 1:
        return runner.run_missing(planned.jobs(), store, environment.describe(), watcher)
    return parallel.run_missing(planned, planned.jobs(), store, processes, watcher)


def _killed() -> Job:
    def execute(report: Report) -> Outcome:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}, {}

    return Job(job(KILLED_SEED, 0).run, 1, execute)


def _none(execution: Any) -> list[Job]:
    return []


def _nothing() -> None:
    pass


if __name__ == "__main__":
    # Here alone: each process that makes runs imports this module too.
    from reproduce import cli
    from reproduce.cli import app

    folder, seconds, processes, *seeds = sys.argv[1:]

    def train(*arguments: object) -> int:
        run(Path(folder), float(seconds), int(processes), list(map(int, seeds)))
        sys.exit(0)

    with mock.patch.object(app, "_train", train):
        sys.exit(cli.main(["table1"]))
