import re
from pathlib import Path
from typing import Any

import pytest

from reproduce import readings
from reproduce.protocols import TABLE1, LocalEntropyBySGLD, spelled
from reproduce.readings import READINGS

NUMBERS = ["R1", "R2", "R5", "R6", "R8", "R9", "R10", "R13", "R14", "R15"]
OTHERS = {
    "noise": "linear",
    "loss_multiplier": 20.0,
    "growing": True,
    "persistent": False,
    "initialization": "normal",
    "restart": False,
    "test_draw": "per_evaluation",
    "activation": "tanh",
    "sampling": "replacement",
    "pixels": "standardised",
}


def test_every_reading_that_can_be_chosen_is_there() -> None:
    assert list(READINGS) == list(OTHERS)
    assert [one.number for one in READINGS.values()] == NUMBERS


def test_page_of_the_readings_names_each_with_its_values() -> None:
    page = (Path(__file__).parents[2] / "docs" / "readings.md").read_text(encoding="utf-8")
    assert [f"| R{number} |" in page for number in range(1, 16)] == [True] * 15
    for one in READINGS.values():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {one.number} |")]
        assert all(f"`{one.name}={value}`" in row for value in _spelled(one))


def _spelled(reading: readings.Reading) -> list[str]:
    return ["1", "20"] if isinstance(reading.answers, str) else reading.values.split("|")


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_choose_changes_the_rows_it_concerns_and_no_others(name: str, value: Any) -> None:
    word = f"{name}={spelled(value)}"
    assert readings.parse([word]) == {name: value}
    chosen = readings.choose(TABLE1, {name: value})
    (difference,) = chosen.differences(TABLE1)
    assert str(difference).startswith(word)
    others = chosen.cases().keys() - set(difference.methods)
    if difference.methods:
        assert all(chosen.methods[row] == TABLE1.methods[row] for row in others)
    assert f"({word}; " in " ".join(readings.in_force(chosen))


@pytest.mark.parametrize("name", OTHERS)
def test_default_is_the_first_answer(name: str) -> None:
    (default,) = {
        readings.of(case)[name]
        for row, case in TABLE1.cases().items()
        if name in readings.of(case) and row != "sgld-linear"
    }
    reading = READINGS[name]
    assert default == (1.0 if isinstance(reading.answers, str) else next(iter(reading.answers)))


def test_choose_of_a_variants_own_reading_drops_the_repeated_row() -> None:
    linear = readings.choose(TABLE1, {"noise": "linear"})
    assert list(linear.methods) == ["sgd", "is", "sgld", "hr"]
    assert linear.methods["sgld"] == LocalEntropyBySGLD(noise="linear")
    assert readings.choose(TABLE1, {"noise": "langevin"}) == TABLE1
    both = readings.choose(TABLE1, {"persistent": False}).methods
    assert both["sgld-linear"] == LocalEntropyBySGLD(noise="linear", persistent=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["noise"], "`reading` must be NAME=VALUE. Received: noise"),
        (["noise="], "`reading` must be NAME=VALUE. Received: noise="),
        (["nose=linear"], "`reading` must be one of noise, loss_multiplier, growing, persistent, "),
        (["noise=white"], "`noise` must be one of langevin, linear. Received: noise='white'"),
        (["restart=no"], "`restart` must be one of true, false. Received: restart='no'"),
        (["loss_multiplier=x"], "`loss_multiplier` must be positive and finite. Received: "),
        (["loss_multiplier=0"], "`loss_multiplier` must be positive and finite. Received: "),
        (["noise=linear", "noise=langevin"], "`reading` must be one or more distinct values."),
    ],
)
def test_parse_refuses(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        readings.parse(words)


@pytest.mark.parametrize("rows", [("sgd", "is"), ("sgld-linear",)])
def test_choose_refuses_a_reading_that_would_do_nothing(rows: tuple[str, ...]) -> None:
    message = "`reading` noise must concern a method that runs, one of sgld. Received: methods "
    with pytest.raises(ValueError, match=message + " ".join(rows)):
        readings.choose(TABLE1.with_methods(rows), {"noise": "linear"})


def test_explained_names_each_reading_with_number_and_values() -> None:
    lines = readings.explained().splitlines()
    assert len(lines) == len(READINGS)
    assert "R6 persistent=true|false (sgld sgld-linear): " in readings.explained()
    assert "R2 loss_multiplier=NUMBER (is): " in readings.explained()
