"""A process that runs one system: reads a command a line on stdin, answers each by a line of JSON.

Its first line says what to build. What libraries print goes to stderr; only answers reach stdout.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from benchmarks.peers import gpu
from benchmarks.peers.problem import Problem, flat
from benchmarks.peers.systems import SYSTEMS, System
from benchmarks.peers.work import Work
from reproduce import strict_json

_OWN = ("tensorflow", "keras")


def main() -> None:
    """Serves until stdin ends."""
    with _Answers() as answers:
        order = strict_json.loads(sys.stdin.readline())
        started = time.perf_counter()
        server = _Server(order)
        _answer(answers, {"seconds": time.perf_counter() - started, "bytes": _peak_bytes()})
        for line in sys.stdin:
            command = strict_json.loads(line)
            _answer(answers, getattr(server, command.pop("command"))(**command))


class _Server:
    """What a worker can be asked to do, a method each."""

    def __init__(self, order: dict[str, Any]):
        fix_threads(order["threads"])
        self._problem = Problem.load(Path(order["problem"]))
        self._work = Work(**order["work"])
        self._entry = SYSTEMS[order["system"]]
        _configure(order["threads"], self._entry.needs)
        if order["gpu"]:
            gpu.use(self._entry.needs)
        self._system = self._entry.build(self._problem, self._work, order["seed"])

    def update(self) -> dict[str, Any]:
        """Makes one weight update and times it."""
        started = time.perf_counter()
        self._system.update()
        return {"seconds": time.perf_counter() - started, "bytes": _peak_bytes()}

    def floor(self) -> dict[str, Any]:
        """Returns the least seconds that an update in the subspace can take here."""
        return self._floor()

    @cached_property
    def _floor(self) -> Callable[[], dict[str, float]]:
        from benchmarks.peers.floor import floor

        return floor(self._problem, self._work)

    def sample(
        self, repetitions: int, updates: int, path: str, *, noiseless: bool
    ) -> dict[str, Any]:
        """Writes where repeated runs of some updates from the first weights end."""
        system = self._system
        if noiseless:
            system = self._entry.noiseless(self._problem, self._work)
        rows = [_ended(system, self._problem, updates) for _ in range(repetitions)]
        weights, chain = (np.stack(column) for column in zip(*rows, strict=True))
        np.savez(path, weights=weights, chain=chain)
        return {}

    def record(self, path: str) -> dict[str, Any]:
        """Writes one update of a system that tells its noise."""
        self._system.restart()
        noise = self._system.recorded_update()  # type: ignore[attr-defined]
        np.savez(path, noise=noise, weights=_displacement(self._system, self._problem))
        return {}

    def replay(self, path: str) -> dict[str, Any]:
        """Returns how far this library's kernel, on recorded noise, is from the record."""
        from benchmarks.peers.systems.library import displacement_on

        with np.load(path) as recorded:
            ours = flat(displacement_on(self._problem, self._work, recorded["noise"]))
            theirs = recorded["weights"]
        return {"error": float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))}

    def versions(self) -> dict[str, Any]:
        """Returns the versions of what the system is made with."""
        return {name: version(name) for name in (*(self._entry.needs or _OWN), "numpy")}


def _ended(system: System, problem: Problem, updates: int) -> tuple[Any, Any]:
    system.restart()
    for _ in range(updates):
        system.update()
    chain = system.chain()
    ended = flat(chain) - flat(problem.weights) if len(chain) else np.zeros(0)
    return _displacement(system, problem), ended


def _displacement(system: System, problem: Problem) -> Any:
    return flat(system.weights()) - flat(problem.weights)


def fix_threads(threads: int) -> None:
    """Allows so many processors, which every library heeds; before any of them is loaded."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)


def _configure(threads: int, needs: tuple[str, ...]) -> None:
    if "torch" in needs:
        import torch  # type: ignore[import-not-found]

        torch.set_num_threads(threads)
    elif "jax" not in needs:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class _Answers:
    """The stream to answer on, while everything else printed goes to stderr."""

    def __enter__(self) -> TextIO:
        self._stream = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        return self._stream

    def __exit__(self, *error: object) -> None:
        self._stream.close()


def _answer(stream: TextIO, answer: dict[str, Any]) -> None:
    stream.write(" ".join(strict_json.dumps(answer).split("\n")) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
