"""Small data and ready-made records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.data import Mnist
from reproduce.experiments.base import RECORDS
from reproduce.protocols import Comparison
from reproduce.records import Record, Run

ENVIRONMENT = {"tensorflow": "2.21.0", "keras": "3.15.1", "processor": "a processor"}


def stripes() -> Mnist:
    """Returns 400 + 100 images of MNIST's shape whose class is the place of a bright stripe."""
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=500).astype(np.uint8)
    images = rng.integers(60, size=(500, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 3] += 150
    return Mnist(images[:400], labels[:400], images[400:], labels[400:])


def record(
    comparison: Comparison,
    case: str,
    seed: int,
    accuracies: Mapping[int, float],
    diverged_at: int | None = None,
    threads: int = 2,
    subspace: str | bool = "auto",
    timings: Mapping[str, Any] | None = None,
) -> Record:
    """Returns the record of a run with this curve."""
    execution: dict[str, Any] = {"threads": threads, "device": "cpu", "jit_compile": False}
    execution["subspace"] = subspace
    configuration = comparison.cases()[case].configuration() | {"execution": execution}
    curve = {
        "update": list(accuracies),
        "accuracy": list(accuracies.values()),
        "loss": [None for _ in accuracies],
    }
    status = "completed" if diverged_at is None else "diverged"
    diagnostics = {
        "dimensions": [159010.0, 159010.0],
        "sampled_dimensions": [6210.0, 6010.0],
        "compiled": [1.0, 1.0],
    }
    result = {
        "status": status,
        "diverged_at": diverged_at,
        "curve": curve,
        "diagnostics": {} if case == "sgd" else diagnostics,
    }
    run = Run(RECORDS, comparison.cases()[case].name, seed, configuration)
    return Record(run, ENVIRONMENT, result, timings or {})


def numbers(folder: Path) -> dict[Path, str]:
    """Returns what equal runs have in common of every record of a store."""
    records = folder / "records"
    return {
        path.relative_to(records): Record.parse(path.read_bytes()).numbers()
        for path in records.rglob("seed-*.json")
    }
