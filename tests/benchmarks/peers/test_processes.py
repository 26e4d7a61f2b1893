"""A worker answers, and its failure is told with its last words."""

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from benchmarks.peers import curves
from benchmarks.peers import race as racing
from benchmarks.peers.agreement import small_problem
from benchmarks.peers.curves import Point
from benchmarks.peers.problem import Array, random_minibatch
from benchmarks.peers.processes import Worker, WorkerError
from benchmarks.peers.work import QUICK, SMALL, Work


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.npz"
    small_problem().save(path)
    return path


def test_unknown_system_fails_with_its_last_words(problem: Path) -> None:
    with pytest.raises(WorkerError, match=r"(?s)nix failed:.*KeyError: 'nix'"):
        Worker("nix", problem, Work("is"), threads=1)


def test_a_worker_loads_no_library_that_its_system_does_not_need() -> None:
    # TensorFlow in a peer's process would be in its memory and its first update.
    libraries = "{'tensorflow', 'keras', 'torch', 'jax', 'pandas'}"
    script = f"import sys, benchmarks.peers.worker; sys.exit(str({libraries} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == "set()\n"


class Answering:
    """A worker that answers at once: the first update takes 2 s, the later ones 1 s."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, system: str, problem: Path, work: Work, *, threads: int, gpu: bool) -> None:
        self.system = system
        self.loading = {"seconds": 3.0, "bytes": 60_000_000}
        self._seconds = 2.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def ask(self, what: str) -> Any:
        self.asked.append((self.system, what))
        seconds, self._seconds = self._seconds, 1.0
        update = {"seconds": seconds, "bytes": 70_000_000}
        return {"update": update, "floor": {"noise": 0.1}, "versions": {"numpy": "2"}}[what]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What workers are asked, which all answer at once."""
    for module in (curves, racing):
        monkeypatch.setattr(module, "Worker", Answering)
    monkeypatch.setattr(Answering, "asked", [])
    return Answering.asked


def test_race_times_each_system_in_turn(asked: list[tuple[str, str]]) -> None:
    said: list[str] = []
    measure = racing.Measure(threads=1, repeats=3, pause=0.0)
    systems = ["sgd-keras", "is-subspace"]
    result = racing.race(systems, SMALL, small_problem(), measure, said.append)
    updates = [system for system, what in asked if what == "update"]
    assert updates[:2] == systems
    # Each twice in every turn, one after another, and not always in one order.
    turns = [tuple(updates[place : place + 4]) for place in range(2, len(updates), 4)]
    first, second = systems
    assert {*turns} == {(first, first, second, second), (second, second, first, first)}
    assert len(turns) == 5
    assert list(result) == systems
    for system, found in result.items():
        floors = [{"noise": 0.1}] * 3 if system == "is-subspace" else []
        assert found == {
            "loading_seconds": 3.0,
            "loaded_bytes": 60_000_000,
            "first_seconds": 2.0,
            "seconds": [1.0] * 3,
            "floors": floors,
            "peak_bytes": 70_000_000,
            "versions": {"numpy": "2"},
        }
    assert said[-1] == "round 5 of 5"


def test_point_of_a_curve_has_times_and_memory(asked: list[tuple[str, str]]) -> None:
    batches: list[int] = []

    def minibatch(batch: int) -> tuple[Array, Array]:
        batches.append(batch)
        return random_minibatch(batch)

    point = Point("hr-tensorflow", "batch", 3)
    found = curves.measure(point, QUICK["hr"], minibatch, threads=1, repeats=2)
    assert batches == [3]
    assert found == {
        "first_seconds": 2.0,
        "seconds": [1.0, 1.0],
        "counts_first": False,
        "loaded_bytes": 60_000_000,
        "peak_bytes": 70_000_000,
    }


def test_long_first_update_is_the_only_one(
    asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "_SECONDS", 2.0)
    point = Point("sgd-keras", "batch", 3)
    found = curves.measure(point, QUICK["sgd"], random_minibatch, threads=1, repeats=2)
    assert (found["seconds"], found["counts_first"]) == ([2.0], True)
    assert len(asked) == 1
