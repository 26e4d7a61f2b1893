"""Costs become numbers of updates; what is written reads back."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from examples.map import costs, training
from examples.map.jobs import Plan
from examples.map.protocol import PROTOCOL, QUICK, Task

PLAN = Plan(PROTOCOL, {"dense": {"sgd": 0.0011, "heat": 20.0}}, ("wrong-labels",))
SGD = ("wrong-labels", "sgd")


def test_updates_fit_into_the_seconds() -> None:
    # 15 / 0.0011 = 13636, to two digits 14000.
    assert PLAN.updates(SGD, {}) == PLAN.updates(SGD, {"length": 1.0}) == 14000
    # 14 / 0.0011 = 12727, to two digits 13000; a multiple of 7 rates, 10 checkpoints and 5.
    assert PLAN.updates(("learning-rates", "sgd"), {}) == 12950
    assert PLAN.updates(("wrong-labels", "heat"), {}) == 100


def test_length_is_a_share_of_them_that_checkpoints_and_calls_divide() -> None:
    assert PLAN.updates(SGD, {"length": 0.25}) == 3500
    for trial in PLAN.trials(SGD):
        updates = PLAN.updates(SGD, trial)
        assert updates == pytest.approx(14000 * trial["length"], abs=50)
        assert math.gcd(updates // PROTOCOL.checkpoints, training.PER_CALL) >= 10
        assert PLAN.configuration(SGD, trial)["updates"] == updates


def test_all_that_has_a_schedule_tries_the_same_lengths() -> None:
    methods = {name for task in PROTOCOL.tasks for name in task.methods}
    costs = {task.network: dict.fromkeys(methods, 0.001) for task in PROTOCOL.tasks}
    plan = Plan(PROTOCOL, costs, ())
    of_task = {
        task.name: {m: plan.trials((task.name, m)) for m in task.methods} for task in PROTOCOL.tasks
    }
    lengths = {
        (task, method): tuple(one.get("length") for one in trials)
        for task, methods in of_task.items()
        for method, trials in methods.items()
    }
    constant = {"snes", "random_search"}
    for (task, method), found in lengths.items():
        without = task in ("learning-rates", "inventory") or method in constant
        assert found == ((None,) * 16 if without else lengths[SGD])
    # Sixteen trials make less than eight of all the updates would.
    assert sum(one["length"] for one in PLAN.trials(SGD)) < 8.0


def test_no_trial_of_a_dear_method_is_too_short() -> None:
    # 15 s are 1,000 updates: of the lengths of others the shortest would be 30.
    plan = Plan(PROTOCOL, {"dense": {"sgd": 0.0074, "heat": 0.015}}, ())
    dear, cheap = (plan.trials(("wrong-labels", name)) for name in ("heat", "sgd"))
    assert all(0.3 <= one["length"] <= 1.0 for one in dear)
    assert min(one["length"] for one in cheap) < 0.04
    rank = [sorted(one["length"] for one in dear).index(each["length"]) for each in dear]
    assert rank == [sorted(one["length"] for one in cheap).index(c["length"]) for c in cheap]


def test_costs_are_measured_once_per_network_and_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "_FIRST", 2)
    asked = []
    original = costs.turn_of

    def turn_of(task: Task, method: str, *rest: object) -> Callable[[], float]:
        asked.append((task.network, method))
        return original(task, method, QUICK, lambda: pytest.fail("MNIST was loaded"), 0.0)

    monkeypatch.setattr(costs, "turn_of", turn_of)
    task = replace(QUICK.task("inventory"), methods=("snes", "local_entropy"))
    protocol = replace(QUICK, tasks=(task, replace(task, name="again")))
    path = tmp_path / "costs.json"
    assert costs.read(protocol, path) is None
    found = costs.measure(protocol, pytest.fail, Console(quiet=True), path)
    assert asked == [("policy", "snes"), ("policy", "local_entropy")]
    assert costs.read(protocol, path) == found
    assert all(seconds > 0.0 for seconds in found["policy"].values())
    # Of another method, or of another network, nothing is known: all are measured again.
    assert costs.read(replace(QUICK, tasks=(QUICK.task("inventory"),)), path) is None
    assert costs.read(replace(QUICK, tasks=(replace(task, network="dense"),)), path) is None


def test_methods_take_turns_and_the_least_counts() -> None:
    called = []

    def timed(name: str, *seconds: float) -> Callable[[], float]:
        left = iter(seconds)

        def turn() -> float:
            called.append(name)
            return next(left)

        return turn

    found = costs.least({"a": timed("a", 3.0, 1.0, 2.0), "b": timed("b", 1.0, 5.0, 9.0)})
    assert called == ["a", "b"] * 3
    assert found == {"a": 1.0, "b": 1.0}
