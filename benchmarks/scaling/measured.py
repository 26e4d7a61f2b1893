"""The seconds of the weight updates, in turns."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from typing import NamedTuple

from benchmarks.scaling.cases import Case, Costs
from benchmarks.scaling.replicas import Replicas

_PAUSE = 0.1


class Measured(NamedTuple):
    """What was measured of one weight update.

    Attributes:
        case: which.
        one: seconds on one replica, those of each round.
        two: on two, likewise.
        costs: what one replica's measurements alone say of more.
    """

    case: Case
    one: Sequence[float]
    two: Sequence[float]
    costs: Costs

    @property
    def efficiency(self) -> float:
        """Seconds of one replica over twice those of two, medians."""
        return median(self.one) / (2 * median(self.two))


def measure(cases: Sequence[Case], rounds: int, say: Callable[[str], None]) -> list[Measured]:
    """Times each update on one and on two replicas, and what the model needs.

    Args:
        cases: the updates.
        rounds: updates of each, after a first, which compiles.
        say: called with a line about each step.
    """
    with ExitStack() as stack:
        one, two = (stack.enter_context(Replicas(count)) for count in (1, 2))
        return [_measured(case, one, two, rounds, say) for case in cases]


def _measured(
    case: Case, one: Replicas, two: Replicas, rounds: int, say: Callable[[str], None]
) -> Measured:
    sent, exchanges = two.exchanged(case)
    questions: dict[str, Callable[[], float]] = {
        "one": lambda: one.update(case),
        "two": lambda: two.update(case),
        "part": lambda: one.update(case.part),
        "noise": lambda: one.noise(case),
    }
    for ask in questions.values():
        ask()
    seconds: dict[str, list[float]] = {name: [] for name in questions}
    for turn in range(rounds):
        for name, ask in questions.items():
            time.sleep(_PAUSE)
            seconds[name].append(ask())
        say(f"{case.title}: round {turn + 1} of {rounds}")
    alone, part, noise = (median(seconds[name]) for name in ("one", "part", "noise"))
    # All losses are known before the first weight is: noise is drawn once more.
    repeated = noise if case.parallel == "batch" else 0.0
    costs = Costs(
        alone=alone,
        # A part is alone - shared / 2 + repeated.
        shared=min(max(2 * (alone + repeated - part), 0.0), alone),
        repeated=repeated,
        bytes=sent,
        exchanges=exchanges,
    )
    return Measured(case, seconds["one"], seconds["two"], costs)
