import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from reproduce import parallel
from reproduce.records import Store
from reproduce.runner import Job
from reproduce.storage import StorageError
from tests.processes import Start, end_within
from tests.reproduce._crew import KILLED_SEED, Pids, plan, run
from tests.reproduce._invocation import FAILING_SEED

ROOT = Path(__file__).parents[2]


def _records(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "records").rglob("seed-*.json")}


def _command(folder: Path, seconds: float, processes: int, seeds: Sequence[int]) -> list[str]:
    words = [str(folder), str(seconds), str(processes), *map(str, seeds)]
    return [sys.executable, "-m", "tests.reproduce._crew", *words]


@pytest.fixture
def crew(start: Start) -> Start:
    """Starts `_command` with its output to be read."""

    def start_crew(*arguments: Any) -> "subprocess.Popen[str]":
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return start(_command(*arguments), cwd=ROOT, text=True, **pipes)

    return start_crew


def test_processes_make_each_run_once_and_a_failure_stops_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = (0, 1, 2)
    run(tmp_path, 0.0, 1, (1,))
    summary = run(tmp_path, 0.0, 2, (*seeds, FAILING_SEED, KILLED_SEED, 3))
    assert sorted(job.run.seed for job in summary.made) == [0, 2, 3]
    assert [job.run.seed for job in summary.reused] == [1]
    assert {job.run.seed for job in summary.failed} == {FAILING_SEED, KILLED_SEED}
    said = capsys.readouterr().out
    assert "RuntimeError: as asked" in said
    assert f"seed {KILLED_SEED} failed: its process was ended by SIGKILL" in said
    assert f"failed {KILLED_SEED}" in said
    run(tmp_path / "alone", 0.0, 1, (*seeds, 3))
    assert _records(tmp_path) == _records(tmp_path / "alone")


def test_storage_error_in_a_process_ends_all(tmp_path: Path) -> None:
    planned = plan(tmp_path, 0.0, (0, 1))
    jobs = planned.jobs()
    taken = Store(tmp_path, warn=pytest.fail).path(jobs[0].run).parent
    taken.parent.mkdir(parents=True)
    taken.write_text("no folder")
    store = Store(tmp_path / "elsewhere", warn=pytest.fail)
    with pytest.raises(StorageError, match=f"cannot .* {taken}"):
        parallel.run_missing(planned, jobs, store, 2, Pids())


def test_run_of_another_invocation_is_waited_for_and_taken_over(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    planned = plan(tmp_path, 0.0, (0, 1))
    claim = store.claim(planned.jobs()[0].run)
    assert claim.__enter__()
    waited: list[int] = []

    class GivesBack(Pids):
        def waiting(self, jobs: Sequence[Job]) -> None:
            waited.append(jobs[0].run.seed)
            claim.__exit__(None, None, None)

    other = Store(tmp_path, warn=pytest.fail)
    summary = parallel.run_missing(planned, planned.jobs(), other, 2, GivesBack())
    assert [job.run.seed for job in summary.made] == [1, 0]
    assert waited == [0]


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_signal_ends_all_processes(
    crew: Start, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = crew(tmp_path, 60, 2, (0, 1, 2, 3))
    assert process.stdout is not None
    assert [process.stdout.readline()[:5] for _ in range(2)] == ["began", "began"]
    children = psutil.Process(process.pid).children()
    assert len(children) >= 2
    # As a terminal does: Ctrl-C goes to the whole group.
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    # Long before they would next report.
    assert end_within(10.0, children)
    run(tmp_path, 0.0, 1, (0, 1, 2, 3))
    run(tmp_path / "whole", 0.0, 1, (0, 1, 2, 3))
    assert _records(tmp_path) == _records(tmp_path / "whole")


def test_interrupt_of_the_processes_alone_ends_none(crew: Start, tmp_path: Path) -> None:
    process = crew(tmp_path, 0.5, 2, (0, 1))
    assert process.stdout is not None
    assert [process.stdout.readline()[:5] for _ in range(2)] == ["began", "began"]
    for child in psutil.Process(process.pid).children():
        child.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert len(_records(tmp_path)) == 2


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_at_random_moments_and_run_again_ends_with_the_same_bytes(
    crew: Start, tmp_path: Path, processes: int
) -> None:
    moments = random.Random(processes)
    seeds = range(12)
    for _ in range(3):
        process = crew(tmp_path, 0.05, processes, seeds)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.3))
        process.kill()
        process.communicate(timeout=60)
    subprocess.run(_command(tmp_path, 0.0, processes, seeds), cwd=ROOT, check=True, timeout=60)
    run(tmp_path / "whole", 0.0, 1, seeds)
    assert _records(tmp_path) == _records(tmp_path / "whole")
