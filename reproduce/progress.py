"""Progress on stderr: bars with time left on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from reproduce.runner import Job

_LINE_SECONDS = 30.0


class Display:
    """Shows how far the runs are, each and all of them.

    Args:
        jobs: Every job that will be looked at.
        console: Where to; stderr in use.
    """

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        self._console = console
        self._total_steps = sum(job.steps for job in jobs)
        self._count = len(jobs)
        self._settled: set[str] = set()
        self._steps_settled = 0
        self._steps_timed = 0
        self._last_line = time.monotonic()
        self._last_step: float | None = None
        self._stepping = 0.0
        self._waited = False
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            speed_estimate_period=300,
        )
        self._overall = self._bars.add_task("all runs", total=self._total_steps)
        self._current: TaskID | None = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def reused(self, job: Job) -> None:
        """Counts a run whose record was there."""
        self._settle(job)
        self._console.print(f"{self._place()} {job.run.label}: recorded already")

    def began(self, job: Job) -> None:
        """Opens the run's bar."""
        self._last_line, self._last_step = time.monotonic(), None
        if self._console.is_terminal:
            self._current = self._bars.add_task(job.run.label, total=job.steps)
        else:
            self._console.print(f"{self._place(1)} {job.run.label}: begins")

    def advanced(self, job: Job, steps: int) -> None:
        """Moves both bars; without a terminal, prints a line now and then."""
        self._time_step()
        self._bars.update(self._overall, completed=self._steps_settled + steps)
        if self._current is not None:
            self._bars.update(self._current, completed=steps)
        elif time.monotonic() - self._last_line > _LINE_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(
                f"{self._place(1)} {job.run.label}: {steps} of {job.steps}, "
                f"about {self._left(steps)} left for all runs"
            )

    def ended(self, job: Job, outcome: str) -> None:
        """Closes the run's bar and says how it ended."""
        self._settle(job)
        if self._current is not None:
            self._bars.remove_task(self._current)
            self._current = None
        self._console.print(f"{self._place()} {job.run.label}: {outcome}")

    def waiting(self, jobs: Sequence[Job]) -> None:
        """Says once that other processes make what is left."""
        if not self._waited:
            self._waited = True
            self._console.print(f"waiting for {len(jobs)} runs that other processes are making")

    def error(self, text: str) -> None:
        """Prints a failed run's traceback."""
        self._console.print(text, markup=False, highlight=False)

    def _settle(self, job: Job) -> None:
        self._settled.add(job.run.key)
        self._steps_settled += job.steps
        self._bars.update(self._overall, completed=self._steps_settled)

    def _time_step(self) -> None:
        # From the second step of a run on: its first compiles.
        now = time.monotonic()
        if self._last_step is not None:
            self._stepping += now - self._last_step
            self._steps_timed += 1
        self._last_step = now

    def _place(self, begun: int = 0) -> str:
        return f"({len(self._settled) + begun}/{self._count})"

    def _left(self, steps: int) -> str:
        to_go = self._total_steps - self._steps_settled - steps
        seconds = to_go * self._stepping / max(self._steps_timed, 1)
        return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
