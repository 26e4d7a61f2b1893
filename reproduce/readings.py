"""The readings of the paper's text that can be chosen, in words; R3, R4 and R7 have one each.

A reading is a field of `Training` or of some methods, whose default is the protocol's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reproduce import checks
from reproduce.protocols import TABLE1, VARIANTS, Case, Comparison, Method, spelled


@dataclass(frozen=True)
class Reading:
    """A choice that the text leaves open.

    Args:
        number: R1 to R15, as the project counts them.
        name: The protocol's field, and its name on the command line.
        question: What is open.
        answers: What each value says, the default first; of a positive number, what is to be said.
    """

    number: str
    name: str
    question: str
    answers: Mapping[Any, str] | str

    @property
    def values(self) -> str:
        """The values to choose from, as the command line spells them."""
        return "NUMBER" if isinstance(self.answers, str) else "|".join(map(spelled, self.answers))

    def parse(self, text: str) -> Any:
        """Returns the value that the command line spells so.

        Raises:
            ValueError: It is none of this reading's.
        """
        if isinstance(self.answers, str):
            return _positive_number(self.name, text)
        values = {spelled(value): value for value in self.answers}
        checks.one_of(self.name, text, values)
        return values[text]

    def answer(self, value: Any) -> str:
        """Returns what a value says."""
        said = spelled(value) if isinstance(self.answers, str) else self.answers[value]
        return f"{self.question}: {said}"


_ALL = (
    Reading(
        "R1",
        "noise",
        "standard deviation of Algorithm 3's noise",
        {"langevin": "sqrt(eps_j), as printed", "linear": "eps_j"},
    ),
    Reading(
        "R2",
        "loss_multiplier",
        "factor on the minibatch's mean loss in Algorithm 4's weights",
        "1, the default, is equation (1)'s mean; 20, the batch size, makes the sum",
    ),
    Reading(
        "R5",
        "growing",
        "Algorithm 5's step sizes",
        {False: "decaying, c j^(-alpha)", True: "growing, c j^alpha, as printed"},
    ),
    Reading(
        "R6",
        "persistent",
        "start of Algorithm 3's chain",
        {
            True: "where the previous weight update ended, as Section 5.1.1 says",
            False: "the weights, as Algorithm 3 says",
        },
    ),
    Reading(
        "R8",
        "initialization",
        "initial weights",
        {
            "glorot_uniform": "Glorot uniform",
            "normal": "normal, standard deviation 0.1",
            "uniform": "uniform from -0.05 to 0.05",
        },
    ),
    Reading(
        "R9",
        "restart",
        "j in Algorithm 3's eps_j",
        {True: "from 1 at each weight update, as printed", False: "runs on over the training"},
    ),
    Reading(
        "R10",
        "test_draw",
        "random test images",
        {"per_seed": "drawn once per seed", "per_evaluation": "drawn at each evaluation"},
    ),
    Reading(
        "R13",
        "activation",
        "the hidden layer's activation",
        {"relu": "ReLU", "tanh": "tanh", "sigmoid": "sigmoid"},
    ),
    Reading(
        "R14",
        "sampling",
        "minibatches",
        {
            "epochs": "run through permutations of the training images",
            "replacement": "drawn with replacement",
        },
    ),
    Reading(
        "R15",
        "pixels",
        "pixels",
        {"unit": "from 0 to 1", "standardised": "of mean 0 and variance 1"},
    ),
)

READINGS: Mapping[str, Reading] = {reading.name: reading for reading in _ALL}
"""By name, in the order of their numbers."""


def explained() -> str:
    """Returns what the command line says of them, a line each."""
    return "\n".join(
        f"{one.number} {one.name}={one.values} ({_concerned(one.name)}): {_explained(one)}."
        for one in READINGS.values()
    )


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Returns the values chosen by words such as `noise=linear`.

    Raises:
        ValueError: A word is no NAME=VALUE, a name or value is unknown, or a name occurs twice.
    """
    pairs = [_pair(word) for word in words]
    checks.distinct("reading", [name for name, _ in pairs])
    return {name: READINGS[name].parse(value) for name, value in pairs}


def choose(comparison: Comparison, chosen: Mapping[str, Any]) -> Comparison:
    """Returns the comparison under the readings chosen.

    Variants keep the reading they are named after; a row that a choice makes equal to an earlier
    one is dropped.

    Args:
        comparison: Training set-up and methods.
        chosen: Values by reading.

    Raises:
        ValueError: A reading concerns none of the methods.
    """
    for name in chosen:
        _check_concerns(name, comparison)
    training = _with(comparison.training, chosen)
    methods: dict[str, Method] = {}
    for row, method in comparison.methods.items():
        own = VARIANTS.get(row, {})
        read = _with(method, {name: chosen[name] for name in chosen if name not in own})
        if read not in methods.values():
            methods[row] = read
    return replace(comparison, training=training, methods=methods)


def of(case: Case) -> dict[str, Any]:
    """Returns the values in force for one row, by reading."""
    fields = vars(case.training) | vars(case.method)
    return {name: fields[name] for name in READINGS if name in fields}


def in_force(comparison: Comparison) -> list[str]:
    """Returns the readings of a comparison, a line for each value and the rows it holds for."""
    lines = []
    for name, reading in READINGS.items():
        rows: dict[Any, list[str]] = {}
        for row, case in comparison.cases().items():
            if name in of(case):
                rows.setdefault(of(case)[name], []).append(row)
        for value, which in rows.items():
            where = f"{name}={spelled(value)}; {' '.join(which)}"
            lines.append(f"{reading.number}: {reading.answer(value)} ({where})")
    return lines


def _explained(reading: Reading) -> str:
    if isinstance(reading.answers, str):
        return f"{reading.question}; {reading.answers}"
    said = "; ".join(f"{spelled(value)}, {text}" for value, text in reading.answers.items())
    return f"{reading.question}: {said}"


def _concerned(name: str) -> str:
    if name in vars(TABLE1.training):
        return "all methods"
    return " ".join(row for row, method in TABLE1.methods.items() if _is_open(name, row, method))


def _pair(word: str) -> tuple[str, str]:
    name, separator, value = word.partition("=")
    if not (name and separator and value):
        raise ValueError(f"`reading` must be NAME=VALUE. Received: {word}")
    checks.one_of("reading", name, READINGS)
    return name, value


def _check_concerns(name: str, comparison: Comparison) -> None:
    rows = comparison.methods.items()
    if name in vars(comparison.training):
        return
    if not any(_is_open(name, row, method) for row, method in rows):
        raise ValueError(
            f"`reading` {name} must concern a method that runs, one of {_concerned(name)}. "
            f"Received: methods {' '.join(comparison.methods)}"
        )


def _is_open(name: str, row: str, method: Method) -> bool:
    return name in vars(method) and name not in VARIANTS.get(row, {})


def _with(settings: Any, chosen: Mapping[str, Any]) -> Any:
    return replace(settings, **{name: chosen[name] for name in chosen if name in vars(settings)})


def _positive_number(name: str, text: str) -> float:
    try:
        value: object = float(text)
    except ValueError:
        value = text
    checks.positive_number(name, value)
    return float(text)
