"""Which runs a command needs, and making those that have no record."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from reproduce import parallel, runner, verification
from reproduce.experiments import illustration, readings, table2, theory
from reproduce.experiments.base import Experiment
from reproduce.experiments.registry import ILLUSTRATIONS, TRAINING
from reproduce.parallel import Plan, Workers
from reproduce.records import Store
from reproduce.runner import Job
from reproduce.theory.protocol import QUICK_THEORY, THEORY
from reproduce.tidy import Tables

if TYPE_CHECKING:
    from reproduce.data import Mnist

DONE, FAILED = 0, 1

JobsOf = Callable[[Mapping[str, Any]], list[Job]]
"""Takes how a process executes to runs; pickles."""


def named(name: str) -> Experiment[Any]:
    """Returns the training experiment of a name."""
    return next(one for one in (*TRAINING, readings) if name == one.NAME)


def timing_jobs(timing: table2.Timing, data_dir: Path | None) -> JobsOf:
    """Returns what builds the runs of Table 2."""
    return partial(table2.jobs, timing, partial(mnist, data_dir))


def everything(
    seeds: Sequence[int], quick: bool, data_dir: Path | None, execution: Mapping[str, Any]
) -> list[Job]:
    """Returns the runs of every table and figure, each once, those of Table 2 apart."""
    data = partial(mnist, data_dir)
    measured = partial(theory.jobs, QUICK_THEORY if quick else THEORY, seeds)
    trained = [
        partial(one.jobs, one.QUICK if quick else one.PROTOCOL, seeds, "auto", data)
        for one in TRAINING
    ]
    illustrated = map(illustration_jobs, ILLUSTRATIONS)
    builders: list[JobsOf] = [measured, *illustrated, *trained]
    jobs = chain.from_iterable(build(execution) for build in builders)
    return list({job.run.key: job for job in jobs}.values())


def reference_jobs(seeds: Sequence[int], execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs of the reference: everything at the paper's budget, Table 2 included."""
    timed = timing_jobs(table2.PROTOCOL, None)(execution)
    return everything(seeds, False, None, execution) + timed


def verified_jobs(share: float, data_dir: Path | None, execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs that are recomputed to confirm a share of the reference."""
    records = verification.chosen(Tables(verification.REFERENCE), share)
    seeds = sorted({record.run.seed for record in records})
    jobs = everything(seeds, False, data_dir, execution)
    return [job for job in jobs if verification.counterpart(job.run, records)]


def illustration_jobs(name: str) -> JobsOf:
    """Returns what builds the run of Figure 1, 2 or 3."""
    return partial(illustration.jobs, {name: ILLUSTRATIONS[name]})


def make(
    jobs_of: JobsOf,
    threads: int,
    workers: Workers,
    output: Path,
    console: Console,
    before_first: Callable[[], object],
) -> int:
    """Makes the runs that have no record yet.

    Args:
        jobs_of: Builds them.
        threads: Threads per run.
        workers: Who makes the runs.
        output: Folder of the records.
        console: Where progress goes.
        before_first: Called in every process that makes a run, ahead of its first; pickles.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
        DataError: MNIST is damaged or cannot be prepared.
    """
    store = Store(output, warn=console.print)
    store.prepare()
    console.print("loading TensorFlow ...")
    from reproduce import environment
    from reproduce.progress import Display

    plan = Plan(jobs_of, threads, output.absolute(), before_first)
    jobs = plan.jobs()
    missing = not all(store.path(job.run).exists() for job in jobs)
    # Ahead of the first run, whose clock it would fall under.
    if missing:
        before_first()
    with Display(jobs, console) as display:
        if missing and workers != Workers():
            summary = parallel.run_missing(plan, jobs, workers, display)
        else:
            summary = runner.run_missing(jobs, store, environment.describe(), display)
    for job in summary.failed:
        console.print(f"failed, no record: {job.run.label}")
    return FAILED if summary.failed else DONE


def nothing() -> None:
    """What a run without data needs before it."""


@cache
def mnist(data_dir: Path | None) -> "Mnist":
    """Returns MNIST, loaded once per process; `None`: the default folder."""
    from reproduce.data import load_mnist

    return load_mnist(data_dir)
