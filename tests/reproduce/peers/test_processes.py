"""A worker answers, and its failure is told with its last words."""

from pathlib import Path

import pytest

from reproduce.peers import curves
from reproduce.peers.agreement import small_problem
from reproduce.peers.curves import Point
from reproduce.peers.problem import Array, random_minibatch
from reproduce.peers.processes import Worker, WorkerError
from reproduce.peers.race import Measure, race
from reproduce.peers.work import QUICK, SMALL, Work


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.npz"
    small_problem().save(path)
    return path


def test_unknown_system_fails_with_its_last_words(problem: Path) -> None:
    with pytest.raises(WorkerError, match=r"(?s)nix failed:.*KeyError: 'nix'"):
        Worker("nix", problem, Work("is"), threads=1)


def test_race_times_each_system_in_turn() -> None:
    said: list[str] = []
    measure = Measure(threads=1, repeats=3, pause=0.0)
    result = race(["sgd-keras", "hr-tensorflow"], SMALL, small_problem(), measure, said.append)
    assert list(result) == ["sgd-keras", "hr-tensorflow"]
    for found in result.values():
        assert len(found["seconds"]) == 3
        assert all(0 < seconds < found["first_seconds"] for seconds in found["seconds"])
        assert 50e6 < found["loaded_bytes"] <= found["peak_bytes"]
        assert {"tensorflow", "keras", "numpy"} == set(found["versions"])
    assert said[-1] == "round 5 of 5"


def test_point_of_a_curve_has_times_and_memory() -> None:
    batches: list[int] = []

    def minibatch(batch: int) -> tuple[Array, Array]:
        batches.append(batch)
        return random_minibatch(batch)

    point = Point("hr-tensorflow", "batch", 3)
    found = curves.measure(point, QUICK["hr"], minibatch, threads=1, repeats=2)
    assert batches == [3]
    assert len(found["seconds"]) == 2
    assert found["counts_first"] is False
    assert found["peak_bytes"] >= found["loaded_bytes"]


def test_long_first_update_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "_SECONDS", 0.0)
    point = Point("sgd-keras", "batch", 3)
    found = curves.measure(point, QUICK["sgd"], random_minibatch, threads=1, repeats=2)
    assert found["seconds"] == [found["first_seconds"]]
    assert found["counts_first"] is True
