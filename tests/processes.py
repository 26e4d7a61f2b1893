"""Processes that tests start."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil

Start = Callable[..., "subprocess.Popen[Any]"]
"""Takes a command and `subprocess.Popen`'s options."""


@contextmanager
def processes() -> Iterator[Start]:
    """Yields what starts a process as a terminal does; at the end whatever is left is killed.

    Where the tests run in the background SIGINT is ignored, and children inherit that.
    """
    started: list[subprocess.Popen[Any]] = []

    def start(command: list[str], **options: Any) -> "subprocess.Popen[Any]":
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            started.append(subprocess.Popen(command, start_new_session=True, **options))
        finally:
            signal.signal(signal.SIGINT, before)
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            with suppress(ProcessLookupError), process:
                os.killpg(process.pid, signal.SIGKILL)


def end_within(seconds: float, waited_for: Sequence[psutil.Process]) -> bool:
    """Whether all end in time; one that only its parent has yet to take note of has ended."""
    deadline = time.monotonic() + seconds
    while any(map(_is_alive, waited_for)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
