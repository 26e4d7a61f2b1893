"""What `make estimators` does, once its arguments are known to be good."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.estimators import accuracy, costs, landscapes, report
from benchmarks.estimators.protocol import Protocol
from reproduce.experiments import base
from reproduce.making import make, mnist
from reproduce.parallel import Workers
from reproduce.records import Store
from reproduce.runner import Job

_TIMED_THREADS = (1, 2)


def compare(
    protocol: Protocol,
    seeds: Sequence[int],
    *,
    threads: int,
    workers: Workers,
    output: Path,
    figures: Path,
    data_dir: Path | None,
    console: Console,
) -> tuple[int, str]:
    """Makes the missing measurements of the estimators, writes the report and returns it.

    Args:
        protocol: What is measured and trained.
        seeds: Of the trainings.
        threads: Threads per run.
        workers: Who makes the runs.
        output: Folder of the records and the report.
        figures: Folder of the figure.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code, and the report.
    """
    data = partial(mnist, data_dir)
    code = make(partial(jobs, protocol, seeds, data_dir), threads, workers, output, console, data)
    for count in _TIMED_THREADS:
        # A process of its own, as threads are set once, and alone: others would take its time.
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            timed = alone.submit(_time, protocol.turns, count, output, data_dir)
            code = max(code, timed.result())
    store = Store(output, warn=console.print)
    text, written = report.render(store, protocol, seeds, output, figures)
    for path in written:
        console.print(f"wrote {path}")
    return code, text


def _time(turns: int, threads: int, output: Path, data_dir: Path | None) -> int:
    data = partial(mnist, data_dir)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    return make(partial(costs.jobs, turns, data), threads, Workers(), output, console, data)


def jobs(
    protocol: Protocol, seeds: Sequence[int], data_dir: Path | None, execution: Mapping[str, Any]
) -> list[Job]:
    """Returns the runs of the comparison of estimators."""
    data = partial(mnist, data_dir)
    return [
        *accuracy.jobs(protocol.accuracy, data, execution),
        *landscapes.jobs(protocol.bias, execution),
        *base.jobs(protocol.training, seeds, "auto", data, execution),
    ]
