"""Runs what has no record yet; any number of invocations may share one folder."""

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from reproduce.records import Record, Run, Store
from reproduce.storage import StorageError

POLL_SECONDS = 1.0

Report = Callable[[int], None]
"""Called with the number of steps of a run that are done."""

Outcome = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A run's result, which has a `status`, and its timings."""


@dataclass(frozen=True)
class Job:
    """A run and how to make it.

    Args:
        run: What the record will be of.
        steps: How many steps `execute` reports.
        execute: Makes the run.
    """

    run: Run
    steps: int
    execute: Callable[[Report], Outcome]


class Watcher:
    """Whose methods are called as runs begin, advance and end; this one's do nothing."""

    def reused(self, job: Job) -> None:
        """The record was there."""

    def began(self, job: Job) -> None:
        """The run begins."""

    def advanced(self, job: Job, steps: int) -> None:
        """So many of its steps are done."""

    def ended(self, job: Job, outcome: str) -> None:
        """The run ended: completed, diverged or failed."""

    def waiting(self, jobs: Sequence[Job]) -> None:
        """Only runs that other processes are making are left."""

    def error(self, text: str) -> None:
        """A run failed, with this traceback."""


class Fate(Enum):
    """What became of a job, at one attempt."""

    MADE = auto()
    REUSED = auto()
    FAILED = auto()
    BUSY = auto()


Settled = Mapping[Fate, list[Job]]
"""Jobs by what became of them: made here, reused, or failed, which have no record."""


def none_settled() -> Settled:
    """Returns empty lists, to be filled."""
    return {fate: [] for fate in Fate}


def run_missing(
    jobs: Sequence[Job], store: Store, environment: Mapping[str, Any], watcher: Watcher
) -> Settled:
    """Makes every job that has no record, one at a time, and returns when none is left.

    A job that another process is making is left to it and looked at again later: its record is
    then reused, or, if that process ended without one, the job is made here. A job that raises
    is reported and the others go on.

    Args:
        jobs: What to make, in this order.
        store: Where the records are.
        environment: Recorded with every run.
        watcher: Its methods are called as runs begin, advance and end.

    Returns:
        What became of each job.

    Raises:
        StorageError: A record cannot be read or written.
    """
    settled = none_settled()
    pending = list(jobs)
    while pending:
        busy: list[Job] = []
        for job in pending:
            fate = attempt(job, store, environment, watcher)
            (busy if fate is Fate.BUSY else settled[fate]).append(job)
        if len(busy) == len(pending):
            watcher.waiting(busy)
            time.sleep(POLL_SECONDS)
        pending = busy
    return settled


def attempt(job: Job, store: Store, environment: Mapping[str, Any], watcher: Watcher) -> Fate:
    """Makes a job, unless its record is there or another process is making it.

    Args:
        job: What to make.
        store: Where the records are.
        environment: Recorded with the run.
        watcher: Its methods are called as runs begin, advance and end.

    Returns:
        What became of it; `BUSY` if another process is making it.

    Raises:
        StorageError: A record cannot be read or written.
    """
    with store.claim(job.run) as claimed:
        if not claimed:
            return Fate.BUSY
        if store.load(job.run) is not None:
            watcher.reused(job)
            return Fate.REUSED
        with store.reserved(job.run):
            return _make(job, store, environment, watcher)


def _make(job: Job, store: Store, environment: Mapping[str, Any], watcher: Watcher) -> Fate:
    watcher.began(job)
    started = time.time()
    try:
        result, timings = job.execute(lambda steps: watcher.advanced(job, steps))
    except StorageError:
        raise
    except Exception:
        watcher.error(f"{job.run.label} failed:\n{traceback.format_exc()}")
        watcher.ended(job, "failed")
        return Fate.FAILED
    span = {"started": started, "seconds": time.time() - started}
    store.save(Record(job.run, environment, result, {**timings, **span}))
    watcher.ended(job, str(result["status"]))
    return Fate.MADE
