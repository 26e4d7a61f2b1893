"""The race on other networks: its problems, that unequal losses are refused, and its tables."""

from typing import Any, ClassVar, Self

import numpy as np
import pytest

from benchmarks.peers.networks import __main__ as command
from benchmarks.peers.networks import library, race
from benchmarks.peers.networks.problem import SHAPES, problem
from lerh_tf import ImportanceSampling


@pytest.mark.parametrize("network", SHAPES)
def test_keras_takes_the_weights(network: str) -> None:
    start = problem(network)
    value, gradient = library.value_and_gradient(network, start)
    # Not far from the logarithm of ten classes.
    assert 1.0 < value < 6.0
    assert [g.shape for g in gradient] == list(SHAPES[network])
    again = problem(network)
    for one, other in zip([*start.weights, start.x], [*again.weights, again.x], strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_update_moves_the_weights() -> None:
    start = problem("convolutional")
    kernel = ImportanceSampling(2)
    model, update = library._update("convolutional", start, kernel, {"inner_jit_compile": False})
    update()
    for old, new in zip(start.weights, model.get_weights(), strict=True):
        assert (old != new).any()


GRADIENT = np.array([3.0, 4.0])


@pytest.mark.parametrize(
    ("value", "gradient", "agrees"),
    [(2.0, GRADIENT, True), (2.001, GRADIENT, False), (2.0, GRADIENT + 1e-3, False)],
)
def test_another_loss_or_gradient_is_refused(value: float, gradient: Any, agrees: bool) -> None:
    found = [(2.0, GRADIENT), (2.0, GRADIENT), (value, gradient)]
    if agrees:
        race._check(found)
    else:
        with pytest.raises(ValueError, match="`jax_loops` computes another loss"):
            race._check(found)


class Answering:
    """A library's process that answers at once: an update takes 9 s behind another's, 1 s else."""

    updates: ClassVar[list[tuple[str, ...]]] = []

    def __init__(self, serve: Any, library: str, *settings: Any) -> None:
        self._library = library

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def ask(self, what: str, *system: str) -> Any:
        if what != "update":
            own = [("is", self._library), ("hr", self._library)]
            return {"check": (2.0, GRADIENT), "systems": own}[what]
        self.updates.append(system)
        return 1.0 if self.updates[-2:-1] == [system] else 9.0


def test_the_second_of_two_updates_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "Asked", Answering)
    monkeypatch.setattr(race, "_PAUSE", 0.0)
    monkeypatch.setattr(Answering, "updates", [])
    said: list[str] = []
    rows = race.race("wide", 1, 4, said.append)
    systems = [(row["algorithm"], row["system"]) for row in rows]
    assert len({*systems}) == 2 * len(race.LIBRARIES)
    assert [(row["first"], row["spread"]) for row in rows] == [(9.0, (1.0, 1.0))] * len(rows)
    # Each twice in every turn, one after another, and not always in one order.
    updates = Answering.updates[len(rows) :]
    pairs = list(zip(updates[::2], updates[1::2], strict=True))
    assert all(one == other for one, other in pairs)
    turns = [tuple(pairs[place : place + len(rows)]) for place in range(0, len(pairs), len(rows))]
    assert all({one for one, _ in turn} == {*systems} for turn in turns)
    assert len({*turns}) > 1
    assert said[-1] == "wide: round 4 of 4"


def test_tables_begin_with_the_fastest() -> None:
    rows = [
        {
            "network": "wide",
            "algorithm": "is",
            "system": name,
            "seconds": seconds,
            "spread": (seconds, 2 * seconds),
            "first": 1.0,
        }
        for name, seconds in (("PyTorch", 0.4), ("lerh_tf", 0.1))
    ]
    lines = command.section("wide", rows).splitlines()
    assert lines[0] == "## 784-1024-1024-10"
    assert [line.split("|")[1].strip() for line in lines[-2:]] == ["lerh_tf", "PyTorch"]
    assert lines[-1].split("|")[4].strip() == "4.00"


@pytest.mark.parametrize("words", [["--networks", "deep"], ["--repeats", "0"], ["--threads", "x"]])
def test_bad_arguments(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 2
    assert words[0].removeprefix("--") in capsys.readouterr().err
