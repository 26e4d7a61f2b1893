"""One process per library, whose systems take turns of two updates."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from multiprocessing.connection import Connection
from random import Random
from statistics import median
from typing import Any

import numpy as np

from benchmarks.asked import Asked
from benchmarks.peers import gpu as device
from benchmarks.peers.networks.problem import problem
from benchmarks.peers.problem import flat
from benchmarks.peers.race import UPDATES
from benchmarks.peers.worker import fix_threads
from reproduce.timing import Turn

LIBRARIES = {"library": (), "torch_loops": ("torch",), "jax_loops": ("jax",)}
"""What each module needs beyond this project's own dependencies."""
LARGEST_ERROR = 1e-4
"""Largest relative difference of the losses' gradients from this library's."""
_PAUSE = 0.1


def race(
    network: str, threads: int, repeats: int, say: Callable[[str], None], *, gpu: bool = False
) -> list[dict[str, Any]]:
    """Returns a row per algorithm and system.

    Args:
        network: a key of `problem.SHAPES`.
        threads: processors that a system may use.
        repeats: timed updates of each system, after the first, which compiles.
        say: called with a line about each step.
        gpu: whether they compute on the GPU.

    Raises:
        ValueError: a library's loss or gradient is another one.
    """
    with ExitStack() as stack:
        processes = [
            stack.enter_context(Asked(_serve, library, network, threads, gpu))
            for library in LIBRARIES
        ]
        _check([process.ask("check") for process in processes])
        systems = [(process, *each) for process in processes for each in process.ask("systems")]
        first = []
        for process, algorithm, name in systems:
            first.append(process.ask("update", algorithm, name))
            say(f"{network}, {algorithm}, {name}: first update {first[-1]:.1f} s")
        seconds: list[list[float]] = [[] for _ in systems]
        for turn in range(repeats):
            # Who comes before a system leaves it caches and threads: none has a place of its own,
            # and the update before the timed one is its own, as in a training.
            for place in Random(turn).sample(range(len(systems)), len(systems)):
                process, algorithm, name = systems[place]
                time.sleep(_PAUSE)
                own = [process.ask("update", algorithm, name) for _ in range(UPDATES)]
                seconds[place].append(Turn(own).median)
            say(f"{network}: round {turn + 1} of {repeats}")
    return [
        {
            "network": network,
            "algorithm": algorithm,
            "system": name,
            "seconds": median(own),
            "spread": (min(own), max(own)),
            "first": compiled,
        }
        for (_, algorithm, name), own, compiled in zip(systems, seconds, first, strict=True)
    ]


def _check(found: Sequence[tuple[float, Any]]) -> None:
    (value, gradient), *others = found
    for library, (other, theirs) in zip([*LIBRARIES][1:], others, strict=True):
        error = np.linalg.norm(gradient - theirs) / np.linalg.norm(gradient)
        if not (abs(other - value) < LARGEST_ERROR * abs(value) and error < LARGEST_ERROR):
            raise ValueError(
                f"`{library}` computes another loss, {other} and not {value}, or another gradient, "
                f"by {error:.1e} of its norm"
            )


def _serve(connection: Connection, library: str, network: str, threads: int, gpu: bool) -> None:
    """Answers until the other side closes."""
    fix_threads(threads)
    os.environ.update(device.environment(gpu))
    if gpu:
        device.use(LIBRARIES[library])
    module = import_module(f"benchmarks.peers.networks.{library}")
    start = problem(network)
    systems = module.systems(network, start)
    while True:
        try:
            match connection.recv():
                case ("check",):
                    value, gradient = module.value_and_gradient(network, start)
                    connection.send((value, flat(gradient)))
                case ("systems",):
                    connection.send(list(systems))
                case ("update", algorithm, name):
                    started = time.perf_counter()
                    systems[algorithm, name]()
                    connection.send(time.perf_counter() - started)
        except EOFError:
            return
