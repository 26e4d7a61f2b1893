"""Systems side by side: each in its own process, which take turns of two updates."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.peers.problem import Problem
from benchmarks.peers.processes import Worker
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import Work
from reproduce.timing import Turn

_WARM_UP = 2

UPDATES = 2
"""Weight updates in a turn."""


@dataclass(frozen=True)
class Measure:
    """How to measure.

    Args:
        threads: processors that a system may use.
        repeats: timed updates of each system, after the first, which compiles, and two turns more.
        pause: seconds between updates, for what another process's threads still do.
        gpu: whether they compute on the GPU.
    """

    threads: int
    repeats: int
    pause: float = 0.3
    gpu: bool = False


def race(
    systems: Sequence[str],
    works: Mapping[str, Work],
    problem: Problem,
    measure: Measure,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Returns what each system took, by its name.

    Args:
        systems: keys of `SYSTEMS`.
        works: the update, by algorithm.
        problem: weights and minibatch of all.
        measure: how.
        say: called with a line about each step.
    """
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder, "problem.npz")
        problem.save(path)
        runners = []
        for system in systems:
            work = works[SYSTEMS[system].algorithm]
            worker = Worker(system, path, work, threads=measure.threads, gpu=measure.gpu)
            runners.append(_Runner(stack.enter_context(worker)))
            say(f"{system}: first update {runners[-1].first['seconds']:.2f} s")
        for turn in range(_WARM_UP + measure.repeats):
            # Who comes before a system leaves it caches and threads: none has a place of its own,
            # and the update before the timed one is its own, as in a training.
            for runner in Random(turn).sample(runners, len(runners)):
                time.sleep(measure.pause)
                runner.go(timed=turn >= _WARM_UP)
            say(f"round {turn + 1} of {_WARM_UP + measure.repeats}")
        return {runner.worker.system: runner.result() for runner in runners}


class _Runner:
    """A worker and its times; made by its first update."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self.first = worker.ask("update")
        self._seconds: list[float] = []
        self._floors: list[dict[str, float]] = []
        self._peak = 0

    def go(self, *, timed: bool) -> None:
        answers = [self.worker.ask("update") for _ in range(UPDATES)]
        self._peak = answers[-1]["bytes"]
        if timed:
            self._seconds.append(Turn([one["seconds"] for one in answers]).median)
            if SYSTEMS[self.worker.system].is_reduced:
                self._floors.append(self.worker.ask("floor"))

    def result(self) -> dict[str, Any]:
        return {
            "loading_seconds": self.worker.loading["seconds"],
            "loaded_bytes": self.worker.loading["bytes"],
            "first_seconds": self.first["seconds"],
            "seconds": self._seconds,
            "floors": self._floors,
            "peak_bytes": self._peak,
            "versions": self.worker.ask("versions"),
        }
