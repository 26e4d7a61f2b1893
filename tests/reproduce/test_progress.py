import io
import time

import pytest
from rich.console import Console

from reproduce.progress import Display
from reproduce.records import Run
from reproduce.runner import Job


def _job(seed: int) -> Job:
    return Job(Run("table1", "is", seed, {}), 100, lambda report: ({}, {}))


def _console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, highlight=False)


def _text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_display_plain_lines_count_runs_and_estimate_from_steady_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    console, jobs = _console(terminal=False), [_job(seed) for seed in range(3)]
    with Display(jobs, console) as display:
        display.reused(jobs[0])
        display.began(jobs[1])
        now[0] = 20.0  # the first step compiles
        display.advanced(jobs[1], 1)
        now[0] = 44.0
        display.advanced(jobs[1], 3)
        display.began(jobs[1])  # its worker was lost
        display.ended(jobs[1], "diverged")
        display.waiting(jobs[2:])
        display.waiting(jobs[2:])
        display.error("a [bracketed] traceback")
    assert _text(console).splitlines() == [
        "(1/3) table1 is seed 0: recorded already",
        "(2/3) table1 is seed 1: begins",
        "(2/3) table1 is seed 1: 3 of 100, about 39 min left for all runs",
        "(2/3) table1 is seed 1: begins again",
        "(2/3) table1 is seed 1: diverged",
        "waiting for 1 runs that other processes are making",
        "a [bracketed] traceback",
    ]


def test_display_on_a_terminal_has_a_bar_for_the_run_and_one_for_all() -> None:
    console, job = _console(terminal=True), _job(0)
    with Display([job], console) as display:
        display.began(job)
        display.advanced(job, 50)
    assert "all runs" in _text(console)
    assert "table1 is seed 0" in _text(console)
    assert "50/100" in _text(console)
