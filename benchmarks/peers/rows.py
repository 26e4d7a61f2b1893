"""What the table and the figures show, computed once from what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import pandas as pd

from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import ALGORITHMS


@dataclass(frozen=True)
class RaceRow:
    """One system in the race.

    Args:
        system: a key of `SYSTEMS`.
        size: how much work an update is, for reading.
        seconds: the timed updates.
        first_seconds: the first update, compilation included.
        loaded_bytes: peak memory before it.
        peak_bytes: peak memory after the last.
        versions: of what it is made with.
        subspace_seconds: median of this library's default in the same race, if it took part.
        agreement: what `agreement.check` found, if it was asked.
        floors: seconds of noise and products alone, by name, for this library's default.
    """

    system: str
    size: str
    seconds: Sequence[float]
    first_seconds: float
    loaded_bytes: int
    peak_bytes: int
    versions: Mapping[str, str]
    subspace_seconds: float | None
    agreement: Mapping[str, Any] | None
    floors: Sequence[Mapping[str, float]] = ()

    @property
    def floor(self) -> float | None:
        """Median of the least seconds that the update can take."""
        return median(sum(parts.values()) for parts in self.floors) if self.floors else None

    @property
    def algorithm(self) -> str:
        """A key of `ALGORITHMS`."""
        return SYSTEMS[self.system].algorithm

    @property
    def median(self) -> float:
        """Median seconds per update."""
        return median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Lower and upper quartile of the seconds per update."""
        if len(self.seconds) < 2:
            return self.median, self.median
        lower, _, upper = quantiles(self.seconds, n=4, method="inclusive")
        return lower, upper

    @property
    def ratio(self) -> float | None:
        """How many of this library's updates one of this system's takes."""
        return self.median / self.subspace_seconds if self.subspace_seconds else None


def rows(
    races: Mapping[str, Mapping[str, Any]],
    sizes: Mapping[str, str],
    agreements: Mapping[str, Mapping[str, Any]],
) -> list[RaceRow]:
    """Returns the rows of all races, by algorithm; SGD, which ran in each, is pooled.

    Args:
        races: what `race` returned, by algorithm.
        sizes: the work's size, by algorithm.
        agreements: what `agreement.check` returned, by system.
    """
    found = []
    for algorithm in ALGORITHMS:
        if algorithm == "sgd":
            continue
        results = races.get(algorithm, {})
        ours = results.get(f"{algorithm}-subspace")
        found += [
            _row(system, sizes[algorithm], [result], ours, agreements)
            for system, result in results.items()
            if SYSTEMS[system].algorithm == algorithm
        ]
    for system in [name for name, entry in SYSTEMS.items() if entry.algorithm == "sgd"]:
        pooled = [results[system] for results in races.values() if system in results]
        if pooled:
            found.append(_row(system, sizes["sgd"], pooled, None, agreements))
    return found


def fastest_peers(found: Sequence[RaceRow]) -> dict[str, str]:
    """Returns the fastest system that is not this library, by algorithm."""
    fastest: dict[str, str] = {}
    for row in sorted(found, key=lambda row: row.median):
        if not SYSTEMS[row.system].is_ours and row.algorithm != "sgd":
            fastest.setdefault(row.algorithm, row.system)
    return fastest


def race_frame(found: Sequence[RaceRow]) -> pd.DataFrame:
    """Returns the race in long form, numbers unrounded."""
    return pd.DataFrame([_line(row) for row in found])


def curve_frame(points: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Returns the curves in long form; a point that was left out says why.

    Args:
        points: per point its `system`, `axis` and `value`, and what `curves.measure` returned or
            the reason in `left_out`.
    """
    return pd.DataFrame([_point(point) for point in points])


def _row(
    system: str,
    size: str,
    results: Sequence[Mapping[str, Any]],
    ours: Mapping[str, Any] | None,
    agreements: Mapping[str, Mapping[str, Any]],
) -> RaceRow:
    return RaceRow(
        system=system,
        size=size,
        seconds=[value for result in results for value in result["seconds"]],
        first_seconds=median(result["first_seconds"] for result in results),
        loaded_bytes=max(result["loaded_bytes"] for result in results),
        peak_bytes=max(result["peak_bytes"] for result in results),
        versions=results[0]["versions"],
        subspace_seconds=median(ours["seconds"]) if ours else None,
        agreement=agreements.get(system),
        floors=[parts for result in results for parts in result["floors"]],
    )


def _line(row: RaceRow) -> dict[str, object]:
    lower, upper = row.quartiles
    return {
        "algorithm": row.algorithm,
        "system": row.system,
        "work": row.size,
        "median_seconds": row.median,
        "lower_quartile": lower,
        "upper_quartile": upper,
        "updates": len(row.seconds),
        "ratio_to_subspace": row.ratio,
        "floor_seconds": row.floor,
        "first_seconds": row.first_seconds,
        "loaded_bytes": row.loaded_bytes,
        "peak_bytes": row.peak_bytes,
        "versions": " ".join(f"{name}={number}" for name, number in row.versions.items()),
        **{name: (row.agreement or {}).get(name) for name in ("agrees", "z", "error")},
        "same_noise_error": (row.agreement or {}).get("same_noise_error"),
    }


def _point(point: Mapping[str, Any]) -> dict[str, object]:
    seconds = point.get("seconds")
    return {
        "system": point["system"],
        "axis": point["axis"],
        "value": point["value"],
        "median_seconds": median(seconds) if seconds else None,
        "updates": len(seconds) if seconds else 0,
        "counts_first": point.get("counts_first"),
        "first_seconds": point.get("first_seconds"),
        "loaded_bytes": point.get("loaded_bytes"),
        "peak_bytes": point.get("peak_bytes"),
        "left_out": point.get("left_out"),
    }
