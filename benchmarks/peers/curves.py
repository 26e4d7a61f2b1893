"""Time and peak memory of one update against samples, batch size, hidden width and threads.

Every point has a process of its own, whose peak memory is then the point's.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.peers.problem import Problem
from benchmarks.peers.processes import Worker
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import Work

AXES = {
    "samples": (10, 100, 1000, 10_000, 100_000),
    "batch": (1, 8, 20, 128, 512),
    "hidden": (50, 200, 800, 4096),
    "threads": (1, 2),
}
"""What is varied; all else is the paper's."""

TITLES = {
    "samples": "samples per update",
    "batch": "batch size",
    "hidden": "hidden width",
    "threads": "threads",
}

QUICK_AXES = {"samples": (4, 9), "batch": (5,), "hidden": (50,), "threads": (1,)}
"""The same for a look whether all runs."""

BATCH, HIDDEN = 20, 200

_SECONDS = 30.0


@dataclass(frozen=True)
class Point:
    """One system at one place of one axis.

    Args:
        system: a key of `SYSTEMS`.
        axis: a key of `AXES`.
        value: where on it. In heat regularization, samples in all: M = J = floor(sqrt(samples)).
    """

    system: str
    axis: str
    value: int

    @property
    def batch(self) -> int:
        """Images of the minibatch."""
        return self.value if self.axis == "batch" else BATCH

    @property
    def hidden(self) -> int:
        """Width of the hidden layer."""
        return self.value if self.axis == "hidden" else HIDDEN

    def threads(self, base: int) -> int:
        """Returns the processors that the system may use."""
        return self.value if self.axis == "threads" else base

    def work(self, base: Work) -> Work:
        """Returns the update at this point."""
        if self.axis != "samples":
            return base
        if base.algorithm == "hr":
            side = math.isqrt(self.value)
            return dataclasses.replace(base, samples=side, steps=side)
        return dataclasses.replace(base, samples=self.value)


def measure(
    point: Point,
    base: Work,
    minibatch: Callable[[int], tuple[Any, Any]],
    *,
    threads: int,
    repeats: int,
    gpu: bool = False,
) -> dict[str, Any]:
    """Returns the point's times and peak memory.

    The first update compiles and is not counted, unless it alone takes longer than half a minute.

    Args:
        point: what to measure.
        base: the update, where the axis does not change it.
        minibatch: takes a batch size to images and labels.
        threads: processors that the system may use, where the axis does not change it.
        repeats: timed updates at most; fewer when they take half a minute.
        gpu: whether the system computes on the GPU.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        Problem.of_minibatch(*minibatch(point.batch), point.hidden).save(path)
        work, processors = point.work(base), point.threads(threads)
        with Worker(point.system, path, work, threads=processors, gpu=gpu) as worker:
            answer = worker.ask("update")
            first: float = answer["seconds"]
            seconds: list[float] = []
            started = time.monotonic()
            while first < _SECONDS and len(seconds) < repeats and _has_time(started, seconds):
                answer = worker.ask("update")
                seconds.append(answer["seconds"])
            return {
                "first_seconds": first,
                "seconds": seconds or [first],
                "counts_first": not seconds,
                "loaded_bytes": worker.loading["bytes"],
                "peak_bytes": answer["bytes"],
            }


def predicted_seconds(smaller: Mapping[str, Any], value: int) -> float:
    """Returns what an update will take if its time grows in proportion along the axis.

    Args:
        smaller: a point measured: its `value` and its `seconds`.
        value: where the next point lies.
    """
    return median(smaller["seconds"]) * value / smaller["value"]


def curve_systems(fastest_peers: Mapping[str, str]) -> list[str]:
    """Returns this library's systems and the fastest peer of each algorithm, where known."""
    ours = [name for name, entry in SYSTEMS.items() if entry.is_ours]
    return [*ours, *fastest_peers.values()]


def _has_time(started: float, seconds: list[float]) -> bool:
    return not seconds or time.monotonic() - started < _SECONDS
