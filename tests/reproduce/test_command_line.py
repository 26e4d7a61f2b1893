"""The command line as a process: its records, its signals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from distributed import LocalCluster

from tests.processes import Start
from tests.reproduce._examples import numbers

ROOT = Path(__file__).parents[2]
TINY = ["--updates", "4", "--samples", "3"]


def _reproduce(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "reproduce", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_with_their_code(start: Start, number: signal.Signals, code: int) -> None:
    script = (
        "import sys, time\n"
        "from reproduce import cli\n"
        "from reproduce.cli import app\n"
        "def train(*arguments):\n"
        "    print('training', flush=True)\n"
        "    time.sleep(60)\n"
        "app._train = train\n"
        "sys.exit(cli.main(['table1']))\n"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start([sys.executable, "-c", script], cwd=ROOT, **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == b"training\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"the same command goes on from there" in errors
    assert b"Traceback" not in errors


def test_table1_end_to_end(tmp_path: Path, mnist_dir: Path) -> None:
    common = ["--seeds", 0, *TINY, "--data-dir", mnist_dir, "--output"]
    first = _reproduce("table1", "--methods", "is", *common, tmp_path / "a")
    assert first.returncode == 0, first.stderr
    assert "NOT the paper's budget: updates=4, samples=3 (is)" in first.stdout
    before = numbers(tmp_path / "a")
    assert len(before) == 1
    second = _reproduce("table1", "--methods", "is", "--jobs", 2, *common, tmp_path / "b")
    with LocalCluster(1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        elsewhere = ["--scheduler", cluster.scheduler_address]
        third = _reproduce("table1", "--methods", "is", *elsewhere, *common, tmp_path / "c")
    for made, folder in ((second, tmp_path / "b"), (third, tmp_path / "c")):
        assert made.returncode == 0, made.stderr
        assert numbers(folder) == before
        assert (folder / "figures" / "figure4-updates-4-samples-3.png").exists()
