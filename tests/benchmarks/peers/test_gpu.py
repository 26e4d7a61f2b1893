"""The GPU is shown to a process or hidden, and asked for by name; none is needed here."""

import os
from pathlib import Path

import pytest
import tensorflow as tf

from benchmarks.peers import gpu
from benchmarks.peers.__main__ import USAGE, main
from benchmarks.peers.agreement import small_problem
from benchmarks.peers.networks import __main__ as networks
from benchmarks.peers.processes import Worker, WorkerError
from benchmarks.peers.session import RacePlan
from benchmarks.peers.work import SMALL


def smi(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "found"),
    [("echo 'NVIDIA H200'; echo other", "NVIDIA H200"), ("exit 9", None), ("true", None)],
)
def test_name_is_that_of_the_first(
    script: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert gpu.name() == found


def test_a_gpu_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "name", lambda: None)
    assert main(["--gpu", "--systems", "sgd-keras"]) == USAGE
    assert networks.main(["--gpu"]) == USAGE
    assert capsys.readouterr().err.count("`gpu` needs a GPU that nvidia-smi finds") == 2


def test_another_device_is_another_measurement() -> None:
    plans = [RacePlan((), False, True, 2, 9, name) for name in (None, "NVIDIA H200")]
    assert [plan.on_gpu for plan in plans] == [False, True]
    assert plans[0].settings != plans[1].settings


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="there is a GPU")
def test_a_worker_without_the_gpu_does_not_compute_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "problem.npz"
    small_problem().save(path)
    with pytest.raises(WorkerError, match="tensorflow finds no GPU"):
        Worker("sgd-keras", path, SMALL["sgd"], threads=1, gpu=True)
