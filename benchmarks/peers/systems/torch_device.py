# mypy: disable-error-code="import-not-found"
"""Where PyTorch's systems compute: on the GPU where their process sees one."""

from typing import Any

import torch

from benchmarks.peers.problem import Array

_DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tensor(array: Array) -> Any:
    """Returns an array's values where the systems compute."""
    return torch.from_numpy(array).to(_DEVICE)


def array(values: Any) -> Array:
    """Returns a tensor's values."""
    found: Array = values.cpu().numpy()
    return found


def finish() -> None:
    """Returns when all that was asked for is computed."""
    if _DEVICE.type == "cuda":
        torch.cuda.synchronize()
