import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest
from distributed import LocalCluster

from reproduce import parallel
from reproduce.parallel import Workers
from reproduce.records import Store
from reproduce.runner import Fate, Job
from reproduce.storage import StorageError
from tests.processes import Start, end_within
from tests.reproduce._crew import KILLED_SEED, LOST_SEED, Pids, losses, plan, run
from tests.reproduce._examples import numbers
from tests.reproduce._invocation import FAILING_SEED

ROOT = Path(__file__).parents[2]


def _command(
    folder: Path, seconds: float, count: int, seeds: Sequence[int], scheduler: str = "-"
) -> list[str]:
    words = [str(folder), str(seconds), str(count), scheduler, *map(str, seeds)]
    return [sys.executable, "-m", "tests.reproduce._crew", *words]


def _wait_until_both_began(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert [process.stdout.readline()[:5] for _ in range(2)] == ["began", "began"]


def _signal(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    # As a terminal does: Ctrl-C goes to the whole group.
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)


@pytest.fixture
def crew(start: Start) -> Start:
    """Starts `_command` with its output to be read."""

    def start_crew(*arguments: Any) -> "subprocess.Popen[str]":
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return start(_command(*arguments), cwd=ROOT, text=True, **pipes)

    return start_crew


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A Dask scheduler with two workers, which are started again when they are killed."""
    with _cluster(workers=2) as cluster:
        yield cluster.scheduler_address


def _cluster(workers: int) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")


@pytest.fixture(params=["processes", "cluster"])
def two(request: pytest.FixtureRequest) -> Workers:
    """Two workers."""
    of_dask = request.param == "cluster"
    return Workers(2, request.getfixturevalue("scheduler") if of_dask else None)


def test_workers_make_each_run_once_and_a_failure_stops_no_other(
    two: Workers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = (0, 1, 2, LOST_SEED, 3)
    run(tmp_path, 0.0, Workers(), (1,))
    capsys.readouterr()
    summary = run(tmp_path, 0.0, two, (*seeds, FAILING_SEED, KILLED_SEED))
    assert sorted(job.run.seed for job in summary[Fate.MADE]) == [0, 2, 3, LOST_SEED]
    assert [job.run.seed for job in summary[Fate.REUSED]] == [1]
    assert {job.run.seed for job in summary[Fate.FAILED]} == {FAILING_SEED, KILLED_SEED}
    said = capsys.readouterr().out
    assert "RuntimeError: as asked" in said
    assert (losses(tmp_path, LOST_SEED), losses(tmp_path, KILLED_SEED)) == (1, 3)
    assert re.search(
        rf"seed {KILLED_SEED} failed: .*(lost 3 times|on 3 different workers)", said, re.S
    )
    assert f"\nfailed {KILLED_SEED}" in said
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / f"lost-{LOST_SEED}-0").touch()
    run(alone, 0.0, Workers(), seeds)
    assert numbers(tmp_path) == numbers(alone)


def test_storage_error_in_a_worker_ends_all(two: Workers, tmp_path: Path) -> None:
    planned = plan(tmp_path, 0.0, (0, 1))
    taken = Store(tmp_path, warn=pytest.fail).path(planned.jobs()[0].run).parent
    taken.parent.mkdir(parents=True)
    taken.write_text("no folder")
    with pytest.raises(StorageError, match=f"cannot .* {taken}"):
        parallel.run_missing(planned, planned.jobs(), two, Pids())


def test_worker_that_builds_other_runs_fails(
    two: Workers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned, jobs = plan(tmp_path, 0.0, (0,)), plan(tmp_path, 0.0, (1,)).jobs()
    assert parallel.run_missing(planned, jobs, two, Pids())[Fate.FAILED] == jobs
    assert "this worker has another version of the package" in capsys.readouterr().out


def test_run_of_another_invocation_is_waited_for_and_taken_over(
    two: Workers, tmp_path: Path
) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    planned = plan(tmp_path, 0.0, (0, 1))
    claim = store.claim(planned.jobs()[0].run)
    assert claim.__enter__()
    waited: list[int] = []
    others = set(psutil.Process().children())

    class GivesBack(Pids):
        def waiting(self, jobs: Sequence[Job]) -> None:
            waited.append(jobs[0].run.seed)
            # Nor does it matter that workers are lost that have nothing to do.
            for child in set(psutil.Process().children()) - others:
                if "resource_tracker" not in " ".join(child.cmdline()):
                    child.kill()
            claim.__exit__(None, None, None)

    summary = parallel.run_missing(planned, planned.jobs(), two, GivesBack())
    assert [job.run.seed for job in summary[Fate.MADE]] == [1, 0]
    assert waited == [0]


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_signal_ends_all_processes(
    crew: Start, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = crew(tmp_path, 60, 2, (0, 1, 2, 3))
    _wait_until_both_began(process)
    children = psutil.Process(process.pid).children()
    assert len(children) >= 2
    _signal(process, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    # Long before they would next report.
    assert end_within(10.0, children)
    run(tmp_path, 0.0, Workers(), (0, 1, 2, 3))
    run(tmp_path / "whole", 0.0, Workers(), (0, 1, 2, 3))
    assert numbers(tmp_path) == numbers(tmp_path / "whole")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_an_invocation_and_its_clusters_workers_are_free_again(
    crew: Start, scheduler: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = crew(tmp_path, 1.0, 2, range(8), scheduler)
    assert process.stdout is not None
    assert process.stdout.readline()[:5] == "began"
    _signal(process, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert len(numbers(tmp_path)) < 8
    run(tmp_path, 0.0, Workers(2, scheduler), range(8))
    assert len(numbers(tmp_path)) == 8


def test_lost_scheduler_ends_the_invocation(
    crew: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    with _cluster(workers=0) as cluster:
        process = crew(tmp_path, 0.0, 1, (0,), cluster.scheduler_address)
        while not cluster.scheduler.tasks:
            time.sleep(0.01)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith("reproduce: error: the scheduler was lost; finished runs")


def test_unreachable_scheduler_is_an_error(tmp_path: Path) -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "10ms"}),
        pytest.raises(OSError, match="Timed out"),
    ):
        run(tmp_path, 0.0, Workers(1, "tcp://127.0.0.1:1"), (0,))


def test_interrupt_of_the_processes_alone_ends_none(crew: Start, tmp_path: Path) -> None:
    process = crew(tmp_path, 0.5, 2, (0, 1))
    _wait_until_both_began(process)
    for child in psutil.Process(process.pid).children():
        child.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert len(numbers(tmp_path)) == 2


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_at_random_moments_and_run_again_ends_with_the_same_numbers(
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
    run(tmp_path / "whole", 0.0, Workers(), seeds)
    assert numbers(tmp_path) == numbers(tmp_path / "whole")


def test_eight_processes_share_one_folder(crew: Start, tmp_path: Path) -> None:
    moments = random.Random(0)
    orders = [moments.sample(range(12), 12) for _ in range(4)]
    invocations = [crew(tmp_path, 0.1, 2, order) for order in orders]
    lines = [line for one in invocations for line in one.communicate(timeout=60)[0].splitlines()]
    assert sorted(line for line in lines if line.startswith("began")) == sorted(
        f"began {seed}" for seed in range(12)
    )
    assert len(numbers(tmp_path)) == 12
