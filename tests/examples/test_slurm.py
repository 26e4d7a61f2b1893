"""The script of the SLURM jobs, and the command that is given to them; no SLURM is needed."""

import re
import subprocess
import sys

import pytest
from dask_jobqueue.slurm import SLURMCluster

from examples import slurm


def test_jobs_are_workers_of_one_thread_and_the_command_goes_to_their_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(slurm.CLUSTER, "scheduler_options", {"dashboard_address": "127.0.0.1:0"})
    started: list[tuple[SLURMCluster, int]] = []
    made: list[tuple[list[str], str, str]] = []

    def adapt(cluster: SLURMCluster, minimum_jobs: int, maximum_jobs: int) -> None:
        # That many at all times: one that ends is submitted again.
        assert minimum_jobs == maximum_jobs
        started.append((cluster, minimum_jobs))

    def call(command: list[str]) -> int:
        cluster, _ = started[0]
        made.append((command, cluster.scheduler_address, cluster.job_script()))
        return 3

    monkeypatch.setattr(SLURMCluster, "adapt", adapt)
    monkeypatch.setattr(subprocess, "call", call)
    assert slurm.main("64", "table1", "--quick") == 3
    [(command, address, script)] = made
    assert started[0][1] == 64
    words = ["table1", "--quick", "--jobs", "64", "--scheduler", address]
    assert command == [sys.executable, "-m", "reproduce", *words]
    asked = {"-n 1", "--cpus-per-task=1", "--mem=4G", "-t 04:00:00"}
    assert {f"#SBATCH {option}" for option in asked} <= set(script.splitlines())
    assert re.search(rf"-m distributed.cli.dask_worker {address} .*--nthreads 1 ", script)
