"""Where several runs are made at a time: processes of this machine, or a Dask scheduler's workers.

Each worker makes one run at a time and tells by a channel of the pool's how far it is.
"""

import logging
import multiprocessing
import os
import signal
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

LOSSES = 3
"""A run that was lost with its worker so many times has failed."""

_SPAWN = multiprocessing.get_context("spawn")

Progress = tuple[str, int | None]
"""A run's key, and how many of its steps are done; `None`: it begins."""

Tell = Callable[[str, int | None], None]
"""Sends a `Progress`; pickles."""


@dataclass(frozen=True)
class Pool:
    """Workers: what gives an executor of one call at a time, what calls tell by, what was told."""

    executor: Callable[[], Executor]
    tell: Tell
    heard: Callable[[], Iterator[Progress]]


@contextmanager
def processes() -> Iterator[Pool]:
    """Yields processes of this machine, one per executor: none ends another's call.

    What they are doing at the end is stopped.
    """
    # What is this short is written at once: there is no lock that a killed process could hold.
    progress, writer = _SPAWN.Pipe(duplex=False)
    # Nothing is ever sent: it closes when the invocation ends, however it ends.
    lifeline, life = _SPAWN.Pipe(duplex=False)

    def heard() -> Iterator[Progress]:
        while progress.poll():
            yield progress.recv()

    with progress, writer, lifeline, ExitStack() as started:
        start = partial(_Process, 1, _SPAWN, _begin, (writer, lifeline))
        with life:
            yield Pool(lambda: started.enter_context(start()), _send, heard)


class _Process(ProcessPoolExecutor):
    """A pool of one, whose process never sees Ctrl-C, which a terminal sends to all."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        # The first process would start it, which lets go of the signals that are held.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_writer: Connection
"""A process's end of the channel."""


def _begin(writer: Connection, lifeline: Connection) -> None:
    global _writer
    _writer = writer
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    # In the middle of anything: the system gives claims back, and records are whole or not there.
    os.kill(os.getpid(), signal.SIGKILL)


def _send(key: str, steps: int | None) -> None:
    _writer.send((key, steps))


@contextmanager
def cluster(address: str) -> Iterator[Pool]:
    """Yields the workers of a Dask scheduler; what they are doing at the end goes on.

    Args:
        address: The scheduler's.

    Raises:
        OSError: It cannot be reached.
    """
    from distributed import Client

    # It logs a lost scheduler with tracebacks; the invocation says so in a line.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    topic, told = f"reproduce-{uuid.uuid4()}", deque[Progress]()

    def heard() -> Iterator[Progress]:
        while told:
            yield told.popleft()

    with Client(address, set_as_default=False) as client:
        client.run_on_scheduler(_allow_losses)
        client.subscribe_topic(topic, lambda event: told.append(event[1]))
        executor = client.get_executor(pure=False)
        try:
            yield Pool(lambda: executor, partial(_log, topic), heard)
        finally:
            executor.shutdown(wait=False)


def _allow_losses(dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = LOSSES - 1


def _log(topic: str, key: str, steps: int | None) -> None:
    from distributed import get_worker

    get_worker().log_event(topic, (key, steps))
