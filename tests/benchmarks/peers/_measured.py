"""Made-up measurements."""

from typing import Any

from benchmarks.peers.rows import RaceRow, rows
from benchmarks.peers.work import PAPER


def raced(*seconds: float, first: float = 2.0) -> dict[str, Any]:
    return {
        "seconds": list(seconds),
        "first_seconds": first,
        "loaded_bytes": 300_000_000,
        "peak_bytes": 500_000_000,
        "floors": [],
        "versions": {"numpy": "2.4.6"},
    }


def some_rows(**agreements: Any) -> list[RaceRow]:
    races = {
        "sgld": {
            "sgd-keras": raced(0.002, 0.004),
            "sgld-subspace": raced(0.2, 0.2, 0.3),
            "sgld-plain": raced(3.0, 3.0, 3.3),
            "sgld-torch": raced(2.5, 2.4, 2.6),
            "sgld-blackjax": raced(4.0, 5.0, 6.0),
        },
        "hr": {"sgd-keras": raced(0.006, 0.008), "hr-jax": raced(2.0, 3.0)},
    }
    sizes = {name: work.size for name, work in PAPER.items()}
    return rows(races, sizes, {name.replace("_", "-"): found for name, found in agreements.items()})


def point(system: str, axis: str, value: int, **changes: Any) -> dict[str, Any]:
    return {
        "system": system,
        "axis": axis,
        "value": value,
        "first_seconds": 1.0,
        "seconds": [value / 100, value / 90],
        "counts_first": False,
        "loaded_bytes": 300_000_000,
        "peak_bytes": 600_000_000,
    } | changes


def left_out(system: str, axis: str, value: int) -> dict[str, Any]:
    return {"system": system, "axis": axis, "value": value, "left_out": "it would take too long"}
