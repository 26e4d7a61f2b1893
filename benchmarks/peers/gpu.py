"""What puts every system on one GPU, and keeps its products in full float32."""

import shutil
import subprocess
from collections.abc import Mapping

_NONE: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"}
_SHARED: Mapping[str, str] = {
    # Many processes share the memory: each takes what it needs.
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "JAX_PLATFORMS": "cuda",
    # As nvidia-smi counts them.
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "JAX_DEFAULT_MATMUL_PRECISION": "highest",
}


def name() -> str | None:
    """Returns the name of the first GPU; None where there is none.

    No library is asked: this process loads none, since a worker's peak memory counts from its
    parent's.
    """
    if shutil.which("nvidia-smi") is None:
        return None
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return found.stdout.partition("\n")[0].strip() or None if found.returncode == 0 else None


def required_name() -> str:
    """Returns the name of the first GPU.

    Raises:
        UsageError: there is none.
    """
    # Workers, which need none of it, load this module too.
    from reproduce.arguments import UsageError

    found = name()
    if found is None:
        raise UsageError("`gpu` needs a GPU that nvidia-smi finds. Received: none")
    return found


def environment(gpu: bool) -> Mapping[str, str]:
    """Returns the variables that show a process the GPU, or hide it, before it loads a library."""
    return _SHARED if gpu else _NONE


def use(needs: tuple[str, ...]) -> None:
    """Turns TF32 off, whose products have 10 bits after the point, in the library that is raced.

    Args:
        needs: of the system, as in `systems.Entry`; JAX is told by `environment`.

    Raises:
        RuntimeError: the library finds no GPU, and would compute elsewhere.
    """
    if "torch" in needs:
        import torch  # type: ignore[import-not-found]

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        found = torch.cuda.is_available()
    elif "jax" in needs:
        import jax  # type: ignore[import-not-found]

        found = jax.default_backend() == "gpu"
    else:
        import tensorflow as tf

        tf.config.experimental.enable_tensor_float_32_execution(False)
        found = bool(tf.config.list_physical_devices("GPU"))
    if not found:
        raise RuntimeError(f"{(*needs, 'tensorflow')[0]} finds no GPU")
