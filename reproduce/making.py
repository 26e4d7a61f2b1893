"""Which runs a command needs, and making those that have no record."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console

from reproduce import environment, parallel, runner, verification
from reproduce.data import Mnist
from reproduce.experiments import illustration, table2, theory
from reproduce.experiments.registry import FURTHER, ILLUSTRATIONS, TRAINING
from reproduce.parallel import Plan, Workers
from reproduce.records import Store
from reproduce.runner import Fate, Job
from reproduce.theory.protocol import QUICK_THEORY, THEORY
from reproduce.tidy import Tables

DONE, FAILED = 0, 1

CONSOLE = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
"""Where progress goes."""

Data = Callable[[], Mnist]
"""Loads MNIST; called only if a run is made, and pickles."""


def everything(
    seeds: Sequence[int], quick: bool, data: Data, execution: Mapping[str, Any]
) -> list[Job]:
    """Returns the runs of every table and figure, each once, those of Table 2 apart."""
    jobs = theory.jobs(QUICK_THEORY if quick else THEORY, seeds, execution)
    jobs += illustration.jobs(ILLUSTRATIONS, execution)
    for one in TRAINING:
        jobs += one.jobs(one.QUICK if quick else one.PROTOCOL, seeds, "auto", data, execution)
    return list({job.run.key: job for job in jobs}.values())


def reference_jobs(seeds: Sequence[int], execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs of the reference: everything at the paper's budget, Table 2 included."""
    data = partial(mnist, None)
    timed = table2.jobs(table2.PROTOCOL, data, execution)
    return everything(seeds, False, data, execution) + timed


def further_jobs(
    seeds: Sequence[int], data: Data, execution: Mapping[str, Any], others: Sequence[Job]
) -> list[Job]:
    """Returns the runs beyond the paper, readings and accurate means, that are not among others."""
    keys = {job.run.key for job in others}
    return [
        job
        for one in FURTHER
        for job in one.jobs(one.PROTOCOL, seeds, "auto", data, execution)
        if job.run.key not in keys
    ]


def verified_jobs(share: float, data: Data, execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs that are recomputed to confirm a share of the reference."""
    records = verification.chosen(Tables(verification.REFERENCE), share)
    seeds = sorted({record.run.seed for record in records})
    jobs = everything(seeds, False, data, execution)
    jobs += further_jobs(seeds, data, execution, jobs)
    return [job for job in jobs if verification.counterpart(job.run, records)]


def make(plan: Plan, workers: Workers) -> int:
    """Makes the runs of a plan that have no record yet.

    Args:
        plan: What the runs are, and where their records lie.
        workers: Who makes them.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
        DataError: MNIST is damaged or cannot be prepared.
    """
    store = Store(plan.output, warn=CONSOLE.print)
    store.prepare()
    CONSOLE.print("loading TensorFlow ...")
    from reproduce.progress import Display

    jobs = plan.jobs()
    missing = not all(store.path(job.run).exists() for job in jobs)
    # Ahead of the first run, whose clock it would fall under.
    if missing:
        plan.data()
    with Display(jobs, CONSOLE) as display:
        if missing and workers != Workers():
            settled = parallel.run_missing(plan, jobs, workers, display)
        else:
            settled = runner.run_missing(jobs, store, environment.describe(), display)
    for job in settled[Fate.FAILED]:
        CONSOLE.print(f"failed, no record: {job.run.label}")
    return FAILED if settled[Fate.FAILED] else DONE


@cache
def mnist(data_dir: Path | None) -> Mnist:
    """Returns MNIST, loaded once per process; `None`: the default folder."""
    from reproduce.data import load_mnist

    return load_mnist(data_dir)
