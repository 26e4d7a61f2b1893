"""Makes runs several at a time; what each worker makes it holds by the store's own claim.

A worker makes one run after another, as a single invocation would, with the same number of
threads, so that no record depends on how many workers there are. One that is lost in the middle
of a run costs no run: it is made again, at most twice.
"""

import pickle
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from reproduce import environment
from reproduce.pools import LOSSES, Pool, Tell, cluster, processes
from reproduce.records import Store
from reproduce.runner import POLL_SECONDS, Fate, Job, Settled, Watcher, attempt, none_settled
from reproduce.storage import StorageError

_LISTEN_SECONDS = 0.1
_TELL_SECONDS = 0.2

# A cluster's worker may have several threads, but runs share their process's seeds.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Workers:
    """Who makes the runs.

    Args:
        count: At most so many runs at a time.
        scheduler: Address of the Dask scheduler whose workers make them. `None`: processes of this
            machine.
    """

    count: int = 1
    scheduler: str | None = None


JobsOf = Callable[[Mapping[str, Any]], list[Job]]
"""Takes how a process executes to runs, in order, each once; pickles."""


def nothing() -> None:
    """What runs without data need before them."""


@dataclass(frozen=True)
class Plan:
    """What an invocation makes and how; pickles, so that every worker builds the same jobs.

    Args:
        jobs_of: Builds the runs.
        threads: Threads per run.
        output: Folder of the records.
        data: Loads what they need; called in each process that makes a run, ahead of its first.
    """

    jobs_of: JobsOf
    threads: int
    output: Path
    data: Callable[[], object] = nothing

    def jobs(self) -> list[Job]:
        """Loads TensorFlow into this process and returns the jobs."""
        return self.jobs_of(environment.prepare(self.threads))


def run_missing(plan: Plan, jobs: Sequence[Job], workers: Workers, watcher: Watcher) -> Settled:
    """Makes every job that has no record, several at a time, and returns when none is left.

    As `runner.run_missing`; besides, a run whose worker is lost is made again, at most twice, and
    then reported as failed.

    Args:
        plan: What the jobs are built from.
        jobs: What to make, in this order.
        workers: Who makes them.
        watcher: Its methods are called as runs begin, advance and end.

    Returns:
        What became of each job.

    Raises:
        StorageError: A record cannot be read or written; what is running is stopped.
        OSError: The scheduler cannot be reached or was lost.
    """
    with processes() if workers.scheduler is None else cluster(workers.scheduler) as pool:
        crew = _Crew(plan, jobs, pool, watcher)
        crew.make(min(workers.count, len(jobs)))
    return crew.settled


class _Crew:
    """The jobs on their way from pending to settled."""

    def __init__(self, plan: Plan, jobs: Sequence[Job], pool: Pool, watcher: Watcher) -> None:
        self.settled = none_settled()
        # A worker may have another current folder.
        self._plan = pickle.dumps(replace(plan, output=plan.output.absolute()))
        self._pool, self._watcher = pool, watcher
        self._pending = deque(jobs)
        self._elsewhere: list[Job] = []
        self._looked = time.monotonic()
        self._working: dict[Future[_Messenger], tuple[Job, Executor]] = {}
        self._losses: Counter[str] = Counter()

    def make(self, count: int) -> None:
        """Hands the jobs out, so many at a time, until all are settled."""
        free = [self._pool.executor() for _ in range(count)]
        while self._pending or self._elsewhere or self._working:
            self._look_again()
            while self._pending and free:
                self._hand_out(self._pending.popleft(), free.pop())
            if not self._working:
                self._watcher.waiting(self._elsewhere)
                time.sleep(POLL_SECONDS)
            done = wait(self._working, _LISTEN_SECONDS, FIRST_COMPLETED).done
            self._listen()
            free += [self._settle(future) for future in done]

    def _look_again(self) -> None:
        if not self._pending and time.monotonic() - self._looked > POLL_SECONDS:
            self._pending.extend(self._elsewhere)
            self._elsewhere.clear()
            self._looked = time.monotonic()

    def _hand_out(self, job: Job, executor: Executor) -> None:
        call = partial(_attempt, self._plan, job.run.key, self._pool.tell)
        try:
            future = executor.submit(call)
        except BrokenProcessPool:  # its process ended while it had nothing to do
            executor = self._pool.executor()
            future = executor.submit(call)
        self._working[future] = (job, executor)

    def _listen(self) -> None:
        working = {job.run.key: job for job, _ in self._working.values()}
        for key, steps in self._pool.heard():
            if key not in working:  # it came after the run's end
                continue
            if steps is None:
                self._watcher.began(working[key])
            else:
                self._watcher.advanced(working[key], steps)

    def _settle(self, future: "Future[_Messenger]") -> Executor:
        """Takes note of how an attempt ended and returns what the next one is handed to."""
        job, executor = self._working.pop(future)
        try:
            self._note(job, future.result())
        except StorageError:
            raise
        except CancelledError:
            raise ConnectionError(
                "the scheduler was lost; finished runs are recorded, the same command goes on"
            ) from None
        except BrokenProcessPool:
            self._lose(job)
            return self._pool.executor()
        except Exception as error:
            self._fail(job, "\n" + "".join(traceback.format_exception(error)))
        return executor

    def _note(self, job: Job, messenger: "_Messenger") -> None:
        for text in messenger.errors:
            self._watcher.error(text)
        match messenger.fate:
            case Fate.BUSY:
                self._elsewhere.append(job)
                return
            case Fate.REUSED:
                self._watcher.reused(job)
            case _:
                self._watcher.ended(job, messenger.outcome)
        self.settled[messenger.fate].append(job)

    def _lose(self, job: Job) -> None:
        self._losses[job.run.key] += 1
        if self._losses[job.run.key] < LOSSES:
            self._pending.appendleft(job)
        else:
            self._fail(job, f"its process was lost {LOSSES} times")

    def _fail(self, job: Job, why: str) -> None:
        self._watcher.error(f"{job.run.label} failed: {why}")
        self._watcher.ended(job, "failed")
        self.settled[Fate.FAILED].append(job)


@dataclass
class _Messenger(Watcher):
    """Tells the invocation how far a worker's job is, and keeps how it ended."""

    key: str
    tell: Tell
    fate: Fate = Fate.BUSY
    outcome: str = ""
    errors: list[str] = field(default_factory=list)
    told: float = -_TELL_SECONDS

    def began(self, job: Job) -> None:
        self.tell(self.key, None)

    def advanced(self, job: Job, steps: int) -> None:
        if time.monotonic() - self.told >= _TELL_SECONDS:
            self.told = time.monotonic()
            self.tell(self.key, steps)

    def ended(self, job: Job, outcome: str) -> None:
        self.outcome = outcome

    def error(self, text: str) -> None:
        self.errors.append(text)


def _attempt(pickled: bytes, key: str, tell: Tell) -> _Messenger:
    """Makes a run in a worker, unless it is made already or elsewhere."""
    messenger = _Messenger(key, tell)
    with _ONE_AT_A_TIME:
        plan, jobs = _prepared(pickled)
        if key not in jobs:
            raise RuntimeError("this worker has another version of the package, or another device")
        store = Store(plan.output, warn=messenger.error)
        messenger.fate = attempt(jobs[key], store, environment.describe(), messenger)
    return messenger


@lru_cache(maxsize=1)
def _prepared(pickled: bytes) -> tuple[Plan, dict[str, Job]]:
    plan: Plan = pickle.loads(pickled)
    jobs = {job.run.key: job for job in plan.jobs()}
    plan.data()
    return plan, jobs
