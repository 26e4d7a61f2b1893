"""What the tests themselves start, and how it ends."""

import signal
import subprocess
import sys

import psutil
import pytest

from tests.processes import Start, end_within, processes

HANDLER = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"
PARENT = """
import subprocess, sys, time
print(subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL).pid, flush=True)
time.sleep(60)
"""


def test_child_heeds_interrupts_where_the_tests_ignore_them(start: Start) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = start([sys.executable, "-c", HANDLER], stdout=subprocess.PIPE, text=True)
        ignored = subprocess.run([sys.executable, "-c", HANDLER], capture_output=True, check=False)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.communicate()[0] == "default_int_handler\n"
    assert b"default_int_handler" not in ignored.stdout


def test_failed_test_leaves_no_process() -> None:
    with pytest.raises(ZeroDivisionError), processes() as start:  # noqa: PT012
        parent = start([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
        assert parent.stdout is not None
        grandchild = psutil.Process(int(parent.stdout.readline()))
        1 / 0  # noqa: B018
    assert end_within(10.0, [grandchild])
    assert parent.returncode == -signal.SIGKILL
