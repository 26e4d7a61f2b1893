"""Two real worker processes on this machine: `MultiWorkerMirroredStrategy`, TF_CONFIG, a loop."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from examples.two_workers import cluster
from tests.processes import Start, processes

ROOT = Path(__file__).parents[2]
PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
# More than are made before a kill arrives.
UPDATES = 100

Worker = subprocess.Popen[str]
Digests = dict[int, str]


def command(folder: Path, *options: object) -> list[str]:
    return [sys.executable, "-m", "examples.two_workers", str(folder), *map(str, options)]


def digests(lines: list[str], index: int) -> Digests:
    """What a worker printed: the weights after each update."""
    printed = [line.split() for line in lines]
    return {int(number): weights for worker, number, weights in printed if int(worker) == index}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    """The weights after each update of a training that ends as it should, of both workers."""
    words = command(tmp_path_factory.mktemp("whole"), "--updates", UPDATES)
    with processes() as start:
        launcher = start(words, cwd=ROOT, **PIPES)
        output, errors = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, errors
    first, second = (digests(output.splitlines(), index) for index in range(2))
    # A worker that moved by its own rows alone would be elsewhere.
    assert first == second
    assert len(set(first.values())) == UPDATES
    return first


def start_both(start: Start, folder: Path, timeout: float) -> list[Worker]:
    words = command(folder, "--timeout", timeout, "--updates", 10**6)
    return [start(words, cwd=ROOT, env=environment, **PIPES) for environment in cluster(2)]


def read(worker: Worker, index: int, updates: int) -> Digests:
    assert worker.stdout is not None
    return digests([worker.stdout.readline() for _ in range(updates)], index)


def test_lost_workers_end_the_other_one_and_the_checkpoint_goes_on_as_if_uninterrupted(
    start: Start, tmp_path: Path, uninterrupted: Digests
) -> None:
    killed, survivor = start_both(start, tmp_path, 60.0)
    read(killed, 0, 3)
    killed.kill()
    output, errors = survivor.communicate(timeout=120)
    assert survivor.returncode == 1
    assert "UnavailableError" in errors
    made = digests(output.splitlines(), 1)

    # TensorFlow misses heartbeats, and aborts, from five seconds on.
    survivor, stopped = start_both(start, tmp_path, 4.0)
    going_on = read(survivor, 0, 3)
    assert min(going_on) > 3
    assert min(going_on) in (max(made), max(made) + 1)
    stopped.send_signal(signal.SIGSTOP)
    output, errors = survivor.communicate(timeout=120)
    assert survivor.returncode == 1
    assert "Collective ops is aborted" in errors or "timed out" in errors
    going_on |= digests(output.splitlines(), 0)
    shared = uninterrupted.keys() & going_on.keys()
    assert len(shared) >= 3
    assert {number: going_on[number] for number in shared} == {
        number: uninterrupted[number] for number in shared
    }


def trained(start: Start, folder: Path, workers: int, *how: str) -> npt.NDArray[Any]:
    """The weights after three updates, bit-identical on all workers."""
    words = command(folder, "--updates", 3, "--parallel", *how)
    started = [start(words, cwd=ROOT, env=each, **PIPES) for each in cluster(workers)]
    ended = [worker.communicate(timeout=200) for worker in started]
    assert [worker.returncode for worker in started] == [0] * workers, ended
    printed = [digests(out.splitlines(), index) for index, (out, _) in enumerate(ended)]
    assert all(each == printed[0] and len(each) == 3 for each in printed)
    checkpoint = tf.train.load_checkpoint(str(folder / "worker-0"))
    # Where the graph of objects first meets the weights.
    names = sorted(n for n in checkpoint.get_variable_to_shape_map() if "trainable_variables" in n)
    return np.concatenate([np.ravel(checkpoint.get_tensor(name)) for name in names])


def test_workers_that_share_samples_or_rows_make_the_update_of_one(
    start: Start, tmp_path: Path
) -> None:
    alone = trained(start, tmp_path / "alone", 1, "batch")
    for parallel in ("samples", "batch"):
        together = trained(start, tmp_path / parallel, 2, parallel)
        np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)


def test_workers_meet_in_each_move_of_heat_regularization(start: Start, tmp_path: Path) -> None:
    alone = trained(start, tmp_path / "alone", 1, "batch", "--heat")
    for parallel in ("samples", "batch"):
        together = trained(start, tmp_path / parallel, 2, parallel, "--heat")
        np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)


def test_peer_that_never_arrives_is_waited_for_until_the_start_timeout(
    start: Start, tmp_path: Path
) -> None:
    first, _ = cluster(2)
    alone = start(command(tmp_path, "--start-timeout", 1), cwd=ROOT, env=first, **PIPES)
    output, errors = alone.communicate(timeout=120)
    assert (alone.returncode, output) == (1, "")
    assert "Timeout (0:00:01)!" in errors
