"""Processes that tests start."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
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


def printed_by(module: str) -> dict[str, Any]:
    """What a module prints as JSON, run in a process: logical devices are set before TensorFlow
    starts."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=Path(__file__).resolve().parents[1],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


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
