import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduce import runner
from reproduce.records import Store
from reproduce.runner import Fate, Job, run_missing
from reproduce.storage import StorageError
from tests.processes import Start
from tests.reproduce._examples import numbers
from tests.reproduce._invocation import FAILING_SEED, Lines, job

ROOT = Path(__file__).parents[2]


@pytest.fixture
def invoke(start: Start) -> Start:
    """Starts an invocation of the runner: folder, seconds, seeds."""

    def start_runner(*arguments: object) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", "tests.reproduce._invocation", *map(str, arguments)]
        return start(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    return start_runner


def _lines(process: "subprocess.Popen[str]") -> list[str]:
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output.splitlines()


def _read_until(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdout is not None
    for received in process.stdout:
        if received.strip() == line:
            return
    pytest.fail(f"{line!r} never came")


def test_run_missing_makes_each_once(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    first = run_missing([job(0, 0), job(1, 0)], store, {}, Lines())
    second = run_missing([job(0, 0), job(1, 0), job(2, 0)], store, {}, Lines())
    assert [one.run.seed for one in first[Fate.MADE]] == [0, 1]
    assert [one.run.seed for one in second[Fate.REUSED]] == [0, 1]
    assert [one.run.seed for one in second[Fate.MADE]] == [2]


def test_run_missing_goes_on_after_a_failure_and_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    summary = run_missing([job(FAILING_SEED, 0), job(1, 0)], store, {}, Lines())
    assert [one.run.seed for one in summary[Fate.FAILED]] == [FAILING_SEED]
    assert [one.run.seed for one in summary[Fate.MADE]] == [1]
    assert "RuntimeError: as asked" in capsys.readouterr().err
    assert len(numbers(tmp_path)) == 1


def test_run_missing_runs_a_damaged_record_again(tmp_path: Path) -> None:
    warnings: list[str] = []
    store = Store(tmp_path, warn=warnings.append)
    run_missing([job(0, 0)], store, {}, Lines())
    whole = numbers(tmp_path)
    store.path(job(0, 0).run).write_bytes(b"{")
    assert len(run_missing([job(0, 0)], store, {}, Lines())[Fate.MADE]) == 1
    assert numbers(tmp_path) == whole
    assert len(warnings) == 1


def test_run_missing_stops_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    store = Store(tmp_path / "taken", warn=pytest.fail)
    with pytest.raises(StorageError, match="cannot make"):
        run_missing([job(0, 0)], store, {}, Lines())


def test_run_missing_leaves_a_claimed_run_and_takes_it_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    claim = store.claim(job(0, 0).run)
    assert claim.__enter__()
    waited = []

    def give_back(seconds: float) -> None:
        waited.append(seconds)
        claim.__exit__(None, None, None)

    monkeypatch.setattr(time, "sleep", give_back)
    other = Store(tmp_path, warn=pytest.fail)
    jobs = [Job(job(seed, 0).run, 1, lambda report: ({"status": "done"}, {})) for seed in (0, 1)]
    summary = run_missing(jobs, other, {}, Lines())
    assert [one.run.seed for one in summary[Fate.MADE]] == [1, 0]
    assert waited == [runner.POLL_SECONDS]


def test_killed_invocation_loses_only_the_run_in_progress(invoke: Start, tmp_path: Path) -> None:
    killed = invoke(tmp_path / "killed", 0.3, 0, 1, 2)
    _read_until(killed, "began 1")
    killed.kill()
    killed.communicate()
    assert len(numbers(tmp_path / "killed")) == 1
    resumed = _lines(invoke(tmp_path / "killed", 0, 0, 1, 2))
    assert resumed == ["reused 0", "began 1", "completed 1", "began 2", "completed 2"]
    _lines(invoke(tmp_path / "whole", 0, 0, 1, 2))
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")


def test_concurrent_invocations_share_the_work(invoke: Start, tmp_path: Path) -> None:
    seeds = range(6)
    both = [invoke(tmp_path, 0.1, *order) for order in (seeds, reversed(seeds))]
    lines = [line for process in both for line in _lines(process)]
    made = sorted(line for line in lines if line.startswith("began"))
    assert made == [f"began {seed}" for seed in seeds]
    assert len(numbers(tmp_path)) == len(seeds)


def test_invocation_waits_for_a_run_of_another_and_takes_it_over_when_killed(
    invoke: Start, tmp_path: Path
) -> None:
    first = invoke(tmp_path, 60, 0)
    _read_until(first, "began 0")
    second = invoke(tmp_path, 0, 0, 1)
    _read_until(second, "completed 1")
    first.kill()
    first.communicate()
    _read_until(second, "completed 0")
    second.communicate(timeout=60)
    assert second.returncode == 0
