"""What a weight update costs, measured once, which decides how many a run makes.

In seconds of the processor, all threads together, which other work on the machine hardly changes.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console

from examples.map import jobs
from examples.map.data import Mnists
from examples.map.protocol import PROTOCOL, Protocol, Task
from examples.map.search import Settings, Space
from reproduce import storage, strict_json
from reproduce.datasets import gathered
from reproduce.sampling import minibatches

PATH = Path(__file__).parent / "costs.json"
"""Seconds of a weight update, by network and method."""

Costs = Mapping[str, Mapping[str, float]]

_TURNS = 3
_SECONDS = 2.0
"""Of a turn."""
_FIRST = 50
"""Updates before the turns, in which TensorFlow and XLA compile."""
_MIDDLE = 0.5
"""Where in the ranges of the search the settings are that are timed."""


def read(protocol: Protocol = PROTOCOL, path: Path = PATH) -> Costs | None:
    """Returns the measured costs, None if those of any network and method are not there."""
    found: Costs = strict_json.loads(path.read_bytes()) if path.exists() else {}
    timed = {network: set(methods) for network, methods in _timed_methods(protocol).items()}
    is_whole = all(methods <= set(found.get(network, {})) for network, methods in timed.items())
    return found if is_whole else None


def measure(protocol: Protocol, mnist: Mnists, console: Console, path: Path = PATH) -> Costs:
    """Times a weight update of every network and method, and writes the seconds."""
    found: dict[str, dict[str, float]] = {}
    for network, tasks in _timed_methods(protocol).items():
        turns = {m: turn_of(task, m, protocol, mnist) for m, task in tasks.items()}
        found[network] = {name: float(f"{s:.3g}") for name, s in least(turns).items()}
        for method, seconds in found[network].items():
            console.print(f"{network} {method}: {1e3 * seconds:.2f} ms")
    text = strict_json.dumps(found)
    storage.write(path, text.encode(), path.with_name(f".{path.name}.part"))
    return found


def _timed_methods(protocol: Protocol) -> dict[str, dict[str, Task]]:
    """Returns by network and method the first task that has both."""
    found: dict[str, dict[str, Task]] = {}
    for task in protocol.tasks:
        for method in task.methods:
            found.setdefault(task.network, {}).setdefault(method, task)
    return found


def least(turns: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Returns each method's least seconds of three turns, which the methods take in turn.

    What slows the machine for a while slows all of them, and no one's least.
    """
    rounds = [{name: turn() for name, turn in turns.items()} for _ in range(_TURNS)]
    return {name: min(each[name] for each in rounds) for name in turns}


def turn_of(
    task: Task, method: str, protocol: Protocol, mnist: Mnists, turn: float = _SECONDS
) -> Callable[[], float]:
    """Returns what times a weight update, compilation and evaluations excluded.

    Args:
        task: Whose network and data are taken.
        method: What is timed, with settings from the middle of its ranges.
        protocol: The population of strategies.
        mnist: Loads MNIST.
        turn: About how many seconds each call takes.
    """
    make = _by_fit if jobs.trains_by_fit(task, method) else _by_losses
    updates_in = make(task, method, protocol, mnist)
    updates_in(_FIRST)
    updates = _FIRST * max(1, round(turn / _timed(updates_in, _FIRST)))
    return lambda: _timed(updates_in, updates) / updates


def _timed(updates_in: Callable[[int], None], updates: int) -> float:
    started = time.process_time()
    updates_in(updates)
    return time.process_time() - started


def _by_fit(task: Task, method: str, protocol: Protocol, mnist: Mnists) -> Callable[[int], None]:
    """Returns what makes a number of updates, a multiple of `_FIRST`, by `fit`."""
    from examples.map import training

    settings = middle(jobs.space_of(task, method))
    way = training.method_of(task, method)
    model = training.build(task, method, 0, way.scheduled(settings, 10**6, 0))
    model.steps_per_execution = training.PER_CALL
    split = training.split_of(task, 0, protocol, mnist)

    def updates_in(updates: int) -> None:
        order = minibatches(0, task.training, task.batch, updates)
        model.fit(gathered(split.training, order), shuffle=False, verbose=0)

    return updates_in


def _by_losses(task: Task, method: str, protocol: Protocol, mnist: Mnists) -> Callable[[int], None]:
    """Returns what makes a number of updates by losses alone; their minibatches repeat."""
    from examples.map.gradient_free import problem_of, strategy_of

    problem = problem_of(task, 0, protocol, mnist, _FIRST)
    settings = middle(jobs.space_of(task, method))
    strategy = strategy_of(task, method, problem.start(), settings, 10**6, 0, protocol)

    def updates_in(updates: int) -> None:
        for update in range(updates):
            strategy.update(partial(problem.losses, update % _FIRST))

    return updates_in


def middle(space: Space) -> Settings:
    """Returns the settings in the middle of the ranges."""
    return {name: values.at(_MIDDLE) for name, values in space.items()}
