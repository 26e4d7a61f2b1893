"""Makes runs in several processes at a time; what each makes it holds by the store's own claim.

A process makes one run after another, as a single invocation would, with the same number of
threads, so that no record depends on how many processes there are.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any

from reproduce.records import Store
from reproduce.runner import POLL_SECONDS, Fate, Job, Summary, Watcher, attempt
from reproduce.storage import StorageError

_GRACE_SECONDS = 10.0

_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Plan:
    """What an invocation makes and how; pickles, so that every process builds the same jobs.

    Args:
        jobs_of: Takes how a process executes to the runs, in order, each once.
        threads: Threads per run.
        output: Folder of the records.
        before_first: Called in each process that makes a run, ahead of its first.
    """

    jobs_of: Callable[[Mapping[str, Any]], list[Job]]
    threads: int
    output: Path
    before_first: Callable[[], object]

    def jobs(self) -> list[Job]:
        """Loads TensorFlow into this process and returns the jobs."""
        from reproduce import environment

        return self.jobs_of(environment.prepare(self.threads))


def run_missing(
    plan: Plan, jobs: Sequence[Job], store: Store, processes: int, watcher: Watcher
) -> Summary:
    """Makes every job that has no record, several at a time, and returns when none is left.

    As `runner.run_missing`; besides, a process that ends in the middle of a run is reported as
    that run's failure, and another one takes its place for the runs that are left.

    Args:
        plan: What the jobs are built from.
        jobs: What to make, in this order.
        store: Where the records are.
        processes: At most so many runs at a time.
        watcher: Its methods are called as runs begin, advance and end.

    Returns:
        What became of each job.

    Raises:
        StorageError: A record cannot be read or written; all processes are stopped.
    """
    crew = _Crew(plan, jobs, watcher)
    try:
        crew.reuse(store)
        while crew.is_busy:
            crew.hand_out(processes)
            crew.listen()
    finally:
        crew.stop()
    return crew.summary


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: int


class _Crew:
    """The processes and the jobs, which both sides know by their place in the plan."""

    def __init__(self, plan: Plan, jobs: Sequence[Job], watcher: Watcher) -> None:
        self.summary = Summary()
        self._plan, self._jobs, self._watcher = plan, jobs, watcher
        self._pending = deque(range(len(jobs)))
        self._elsewhere: list[int] = []
        self._looked = time.monotonic()
        self._working: list[_Worker] = []
        self._idle: list[_Worker] = []

    @property
    def is_busy(self) -> bool:
        """Whether any job is not settled yet."""
        return bool(self._pending or self._elsewhere or self._working)

    def reuse(self, store: Store) -> None:
        """Settles the jobs whose record is there."""
        missing = []
        for index in self._pending:
            with store.claim(self._jobs[index].run) as claimed:
                found = claimed and store.load(self._jobs[index].run) is not None
            if found:
                self._watcher.reused(self._jobs[index])
                self.summary.add(self._jobs[index], Fate.REUSED)
            else:
                missing.append(index)
        self._pending = deque(missing)

    def hand_out(self, processes: int) -> None:
        """Gives every process that could work a job."""
        if time.monotonic() - self._looked > POLL_SECONDS and not self._pending:
            self._pending.extend(self._elsewhere)
            self._elsewhere.clear()
            self._looked = time.monotonic()
        while self._pending and len(self._working) < processes:
            worker = self._free()
            worker.job = self._pending.popleft()
            self._working.append(worker)
            # One that has ended is found out about by listening.
            with suppress(OSError):
                worker.connection.send(worker.job)

    def listen(self) -> None:
        """Takes what the processes report; waits for it a moment."""
        if not self._working and self._elsewhere:
            self._watcher.waiting([self._jobs[index] for index in self._elsewhere])
            time.sleep(POLL_SECONDS)
        connections = [worker.connection for worker in self._working]
        heard = wait(connections, POLL_SECONDS) if connections else ()
        for worker in [one for one in self._working if one.connection in heard]:
            try:
                self._take(worker, *worker.connection.recv())
            except (EOFError, ConnectionError):
                self._lose(worker)

    def stop(self) -> None:
        """Ends all processes, whatever they are doing."""
        workers = self._working + self._idle
        for worker in workers:
            worker.process.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for worker in workers:
            worker.process.join(max(deadline - time.monotonic(), 0.0))
            worker.process.kill()
            worker.process.join()
            worker.connection.close()

    def _free(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            worker.connection.close()
        return _start(self._plan)

    def _take(self, worker: _Worker, what: str, content: Any) -> None:
        job = self._jobs[worker.job]
        match what:
            case "settled":
                self._settle(worker, content)
            case "unusable":
                raise StorageError(content)
            case "began":
                self._watcher.began(job)
            case "advanced":
                self._watcher.advanced(job, content)
            case "ended":
                self._watcher.ended(job, content)
            case "reused":
                self._watcher.reused(job)
            case "error":
                self._watcher.error(content)

    def _settle(self, worker: _Worker, fate: Fate) -> None:
        self._working.remove(worker)
        self._idle.append(worker)
        if fate is Fate.BUSY:
            self._elsewhere.append(worker.job)
        else:
            self.summary.add(self._jobs[worker.job], fate)

    def _lose(self, worker: _Worker) -> None:
        self._working.remove(worker)
        worker.process.join()
        worker.connection.close()
        job = self._jobs[worker.job]
        self._watcher.error(f"{job.run.label} failed: {_how_ended(worker.process)}")
        self._watcher.ended(job, "failed")
        self.summary.add(job, Fate.FAILED)


def _start(plan: Plan) -> _Worker:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(plan, theirs), daemon=True)
    with _interrupts_held():
        process.start()
    theirs.close()
    return _Worker(process, ours, -1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process started meanwhile never sees Ctrl-C, which a terminal sends to all; we stop it."""
    # The first process would start it, which lets go of the signals that are held.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how_ended(process: SpawnProcess) -> str:
    code = process.exitcode or 0
    return (
        f"its process was ended by {signal.Signals(-code).name}"
        if code < 0
        else f"its process ended with exit code {code}"
    )


class _Messenger:
    """Tells the invocation what happens to the job in hand."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def reused(self, job: Job) -> None:
        self.send("reused", None)

    def began(self, job: Job) -> None:
        self.send("began", None)

    def advanced(self, job: Job, steps: int) -> None:
        self.send("advanced", steps)

    def ended(self, job: Job, outcome: str) -> None:
        self.send("ended", outcome)

    def waiting(self, jobs: Sequence[Job]) -> None:
        """A process of many never waits: it hands the job back."""

    def error(self, text: str) -> None:
        self.send("error", text)

    def send(self, what: str, content: Any) -> None:
        """Sends a message; ends the process, and gives the claim back, if nobody listens."""
        try:
            self._connection.send((what, content))
        except OSError:
            raise SystemExit from None


def _serve(plan: Plan, connection: Connection) -> None:
    """The life of a process: makes the jobs it is told to, until it is stopped."""
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from reproduce import environment

    messenger = _Messenger(connection)
    store = Store(plan.output, warn=messenger.error)
    jobs = plan.jobs()
    plan.before_first()
    described = environment.describe()
    with suppress(EOFError):
        while True:
            job = jobs[connection.recv()]
            try:
                messenger.send("settled", attempt(job, store, described, messenger))
            except StorageError as error:
                messenger.send("unusable", str(error))


def _end_with_parent() -> None:
    # A killed parent stops nobody, and a run may be far from its next report.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
