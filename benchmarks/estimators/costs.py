"""What a weight update costs by every way that a user would take, in turns with SGD's."""

from collections.abc import Callable, Mapping
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from benchmarks.estimators import problem
from reproduce import methods, networks
from reproduce.protocols import (
    TABLE1,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByControlledSGLD,
    LocalEntropyByGradients,
    LocalEntropyByImportanceSampling,
    Method,
)
from reproduce.records import Run
from reproduce.runner import Job, Outcome, Report
from reproduce.timing import Turn
from reproduce.training import Clock

if TYPE_CHECKING:
    from reproduce.data import Mnist

NAME = "estimators-costs"
SGD = "SGD"

METHODS: Mapping[str, Method] = {
    SGD: GradientDescent(),
    "10 gradients": LocalEntropyByGradients(samples=10),
    "30 gradients, the default": LocalEntropyByGradients(samples=30),
    "100 gradients": LocalEntropyByGradients(samples=100),
    "importance sampling, 1000 losses": LocalEntropyByImportanceSampling(),
    "SGLD, 300 gradients": LocalEntropyByControlledSGLD(),
    "Robbins-Monro, 30 x 30 gradients": HeatRegularizationByRobbinsMonro(),
}
"""What is timed, on Table 1's protocol."""

_SEED = 0
_UPDATES = 30
"""Weight updates in a turn."""


def jobs(turns: int, data: Callable[[], "Mnist"], execution: Mapping[str, Any]) -> list[Job]:
    """Returns the one run; to be made with nothing else running."""
    run = Run(NAME, "updates", _SEED, {"turns": turns, "execution": dict(execution)})
    return [Job(run, turns + 1, partial(measure, turns, data))]


def measure(turns: int, data: Callable[[], "Mnist"], report: Report) -> Outcome:
    """Trains a network by each method, a turn of updates each, after one turn that compiles.

    Returns:
        A result without numbers, and the seconds of an update by method, the mean over turns.
    """
    batches = problem.batches(data(), _SEED, 0, _UPDATES)
    x, y = (tf.concat(part, 0) for part in zip(*batches, strict=True))
    trained = {name: _model(method) for name, method in METHODS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for turn in range(turns + 1):
        for name, model in trained.items():
            clock = Clock()
            model.fit(
                x,
                y,
                batch_size=TABLE1.training.batch_size,
                shuffle=False,
                verbose=0,
                callbacks=[clock],
            )
            if turn:
                seconds[name].append(Turn(clock.seconds).median)
        report(turn + 1)
    return {"status": "completed"}, {
        "updates": {name: mean(values) for name, values in seconds.items()}
    }


def _model(method: Method) -> keras.Model:
    setup = TABLE1.training
    keras.utils.set_random_seed(_SEED)
    model = networks.build(setup.network, setup.initialization, _SEED)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(methods.optimizer(method, _SEED), loss, jit_compile=False)
    return model
