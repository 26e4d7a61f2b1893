import subprocess
import sys
from pathlib import Path

from reproduce import environment

ROOT = Path(__file__).parents[2]

PREPARE = """
import sys
from reproduce import environment
execution = environment.prepare(1)
import tensorflow as tf
assert execution == {"threads": 1, "device": "cpu", "jit_compile": False}, execution
assert tf.config.threading.get_intra_op_parallelism_threads() == 1
assert environment.prepare(1) == execution
from threadpoolctl import threadpool_info
threads = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
# On macOS NumPy may use Accelerate, which threadpoolctl does not know.
assert set(threads) == {1} or (sys.platform == "darwin" and not threads), threads
try:
    environment.prepare(2)
except RuntimeError:
    print("refused")
"""


def test_prepare_fixes_threads_quietly_and_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREPARE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "refused")
    assert done.stderr == ""


def test_describe_names_what_decides_the_numbers() -> None:
    described = environment.describe()
    assert {"tensorflow", "keras", "numpy", "python", "processor"} <= set(described)
    assert all(described.values())
