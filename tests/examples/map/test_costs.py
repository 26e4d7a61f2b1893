"""Costs become numbers of updates; what is written reads back."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from examples.map import costs
from examples.map.jobs import Plan
from examples.map.protocol import PROTOCOL, QUICK, Task


def test_updates_fit_into_the_seconds() -> None:
    made = {"dense": {"sgd": 0.0011, "heat": 20.0}}
    plan = Plan(PROTOCOL, made, ("wrong-labels",))
    # 15 / 0.0011 = 13636, to two digits 14000.
    assert plan.updates(("wrong-labels", "sgd")) == 14000
    # 14 / 0.0011 = 12727, to two digits 13000, and a multiple of 7 rates times 10 checkpoints.
    assert plan.updates(("learning-rates", "sgd")) == 13020
    assert plan.updates(("wrong-labels", "heat")) == 10


def test_costs_are_measured_once_per_network_and_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "_FIRST", 2)
    asked = []
    original = costs.seconds_of

    def seconds_of(task: Task, method: str, *rest: object) -> float:
        asked.append((task.network, method))
        return original(task, method, QUICK, lambda: pytest.fail("MNIST was loaded"), 0.0)

    monkeypatch.setattr(costs, "seconds_of", seconds_of)
    task = replace(QUICK.task("inventory"), methods=("snes", "local_entropy"))
    protocol = replace(QUICK, tasks=(task, replace(task, name="again")))
    path = tmp_path / "costs.json"
    assert costs.read(path) is None
    found = costs.measure(protocol, pytest.fail, Console(quiet=True), path)
    assert asked == [("policy", "snes"), ("policy", "local_entropy")]
    assert costs.read(path) == found
    assert all(seconds > 0.0 for seconds in found["policy"].values())
