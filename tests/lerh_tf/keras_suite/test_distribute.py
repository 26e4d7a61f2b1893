"""Keras's own tests on two replicas, in a process of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TESTS = Path(__file__).with_name("_distribute.py")


@pytest.mark.feature(
    "keras",
    "Keras's tests on two replicas",
    "yes; of one eager gradient that both hand over, TensorFlow's sum is that "
    "gradient, and so is ours",
)
def test_keras_s_tests_on_two_replicas_run() -> None:
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, str(TESTS)]
    found = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert found.returncode == pytest.ExitCode.OK, found.stdout
    # Ten of Keras's, less the one of the table.
    assert "9 passed" in found.stdout
    assert "skipped" not in found.stdout
