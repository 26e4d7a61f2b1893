"""What a run runs on: threads, device, versions; set once per process and recorded."""

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

# Two runs at a time on one thread each take less time than one after the other on two.
DEFAULT_THREADS = 1
_RECORDED = ("tensorflow", "keras", "numpy")
_QUIET_LEVEL = "2"


def prepare(threads: int) -> dict[str, Any]:
    """Loads TensorFlow, quietly, with fixed threads and deterministic operations.

    Args:
        threads: Threads per operation, and operations at a time, NumPy's and SciPy's matrix
            products included: they round differently with other numbers of threads.

    Returns:
        How runs of this process are executed: part of their configuration.

    Raises:
        RuntimeError: TensorFlow runs already, with other threads.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"
    with _quiet_imports():
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.experimental.enable_op_determinism()
        accelerated = bool(tf.config.list_logical_devices("GPU"))
        import keras  # noqa: F401
    _limit_linear_algebra(threads)
    return {"threads": threads, "device": "gpu" if accelerated else "cpu", "jit_compile": False}


def _limit_linear_algebra(threads: int) -> None:
    # Without it the libraries take as many threads as there are cores.
    import scipy.linalg  # noqa: F401  # loads SciPy's own library beside NumPy's
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads, user_api="blas")


def describe() -> dict[str, str]:
    """Returns the versions and the machine's kind, as recorded with every run."""
    versions = {name: version(name) for name in _RECORDED}
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    return versions | machine | {"system": platform.system(), "processor": _processor()}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    except OSError:
        models = []
    return models[0] if models else platform.processor()


@contextmanager
def _quiet_imports() -> Iterator[None]:
    """Holds back what TensorFlow's libraries write to stderr before they heed its log level.

    Shown after all when loading fails, and never held back at a log level below 2.
    """
    if int(os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _QUIET_LEVEL)) < int(_QUIET_LEVEL):
        yield
        return
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            held.seek(0)
            os.write(original, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
