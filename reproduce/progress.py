"""Progress on stderr: bars with time left on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

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

from reproduce.runner import Job, Watcher

_LINE_SECONDS = 30.0


@dataclass
class _Going:
    """A run in progress."""

    bar: TaskID
    steps: int = 0
    last_step: float | None = None


class Display(Progress, Watcher):
    """Shows how far the runs are, each and all of them.

    Args:
        jobs: Every job that will be looked at.
        console: Where to; stderr in use.
    """

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        super().__init__(
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
        self._total_steps = sum(job.steps for job in jobs)
        self._count = len(jobs)
        self._settled: set[str] = set()
        self._steps_settled = 0
        self._steps_timed = 0
        self._last_line = time.monotonic()
        self._stepping = 0.0
        self._waited = False
        self._overall = self.add_task("all runs", total=self._total_steps)
        self._going: dict[str, _Going] = {}

    def stop(self) -> None:
        """Ends the display, if there is one: where not, rich before 14.3 prints an empty line."""
        if not self.disable:
            super().stop()

    def reused(self, job: Job) -> None:
        """Counts a run whose record was there."""
        self._settle(job)
        self.console.print(f"{self._place()} {job.run.label}: recorded already")

    def began(self, job: Job) -> None:
        """Opens the run's bar, anew if its worker was lost."""
        self._last_line = time.monotonic()
        begins = "begins again" if self._close(job) else "begins"
        self._going[job.run.key] = _Going(self.add_task(job.run.label, total=job.steps))
        if self.disable:
            self.console.print(f"{self._place(len(self._going))} {job.run.label}: {begins}")

    def advanced(self, job: Job, steps: int) -> None:
        """Moves both bars; without a terminal, prints a line now and then."""
        going = self._going[job.run.key]
        self._time_step(going, steps)
        self.update(self._overall, completed=self._steps_done())
        self.update(going.bar, completed=steps)
        if self.disable and time.monotonic() - self._last_line > _LINE_SECONDS:
            self._last_line = time.monotonic()
            self.console.print(
                f"{self._place(len(self._going))} {job.run.label}: {steps} of {job.steps}, "
                f"about {self._left()} left for all runs"
            )

    def ended(self, job: Job, outcome: str) -> None:
        """Closes the run's bar and says how it ended."""
        self._close(job)
        self._settle(job)
        self.console.print(f"{self._place()} {job.run.label}: {outcome}")

    def waiting(self, jobs: Sequence[Job]) -> None:
        """Says once that other processes make what is left."""
        if not self._waited:
            self._waited = True
            self.console.print(f"waiting for {len(jobs)} runs that other processes are making")

    def error(self, text: str) -> None:
        """Prints a failed run's traceback."""
        self.console.print(text, markup=False, highlight=False)

    def _close(self, job: Job) -> bool:
        going = self._going.pop(job.run.key, None)
        if going is not None:
            self.remove_task(going.bar)
        return going is not None

    def _settle(self, job: Job) -> None:
        self._settled.add(job.run.key)
        self._steps_settled += job.steps
        self.update(self._overall, completed=self._steps_done())

    def _steps_done(self) -> int:
        return self._steps_settled + sum(going.steps for going in self._going.values())

    def _time_step(self, going: _Going, steps: int) -> None:
        # From the second step of a run on: its first compiles.
        now = time.monotonic()
        if going.last_step is not None:
            self._stepping += now - going.last_step
            self._steps_timed += steps - going.steps
        going.last_step, going.steps = now, steps

    def _place(self, going: int = 0) -> str:
        return f"({len(self._settled) + going}/{self._count})"

    def _left(self) -> str:
        to_go = self._total_steps - self._steps_done()
        at_a_time = max(len(self._going), 1)
        seconds = to_go * self._stepping / max(self._steps_timed, 1) / at_a_time
        return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
