"""The parent's side of a worker: starts it, asks it, ends it."""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.peers import gpu as device
from benchmarks.peers.work import Work
from reproduce import strict_json

_SHOWN_LINES = 12
_PATIENCE = 20.0


class WorkerError(Exception):
    """A worker ended before it answered."""


class Worker:
    """One system in a process of its own.

    Args:
        system: a key of `systems.SYSTEMS`.
        problem: file of the weights and the minibatch.
        work: the update.
        threads: how many processors it may use.
        seed: of its noise.
        gpu: whether it computes on the GPU.

    Attributes:
        system: its name.
        loading: seconds it took to load and build, and the peak memory then, in bytes.
    """

    def __init__(
        self,
        system: str,
        problem: Path,
        work: Work,
        *,
        threads: int,
        seed: int = 0,
        gpu: bool = False,
    ):
        self.system = system
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=_environment(gpu),
        )
        order = {
            "system": system,
            "problem": str(problem),
            "work": dataclasses.asdict(work),
            "threads": threads,
            "seed": seed,
            "gpu": gpu,
        }
        try:
            self.loading = self._exchange(order)
        except WorkerError:
            self.close()
            raise

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Returns the answer to a command.

        Raises:
            WorkerError: the worker failed.
        """
        return self._exchange({"command": command, **arguments})

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: reading says so
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.system} failed:\n{self._last_words()}")
        answer: dict[str, Any] = strict_json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker."""
        try:
            # One that computes does not see the end of its input: it is not waited for.
            self._process.kill()
            self._process.communicate(timeout=_PATIENCE)
        finally:
            self._log.close()

    def _last_words(self) -> str:
        self._process.wait(_PATIENCE)
        self._log.seek(0)
        return "".join(self._log.readlines()[-_SHOWN_LINES:])


def _environment(gpu: bool) -> dict[str, str]:
    """Returns the environment of a worker: its device, little talk, the code that runs here."""
    code = str(Path(__file__).resolve().parents[2])
    return {**os.environ, **device.environment(gpu)} | {
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONPATH": code,
    }
