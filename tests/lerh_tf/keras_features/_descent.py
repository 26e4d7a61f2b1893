"""Training that has to be what Keras's SGD does.

Where the noise is zero, one move of Robbins-Monro of size 1 is

m = x - tau / M sum_m grad f(x) = x - tau grad f(x),

so that with learning rate tau, or another one, the update is SGD's. The mean is over M = 2
evaluations: whatever should happen once per weight update and happens once per evaluation shows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from lerh_tf import HeatRegularization, RobbinsMonro, RobbinsMonroSteps

Array = npt.NDArray[Any]
TAU = 0.125


def descent(learning_rate: Any = None, **arguments: Any) -> HeatRegularization:
    """SGD by Algorithm 2, where the noise is zero."""
    solver = RobbinsMonro(1, 2, step_sizes=RobbinsMonroSteps(1.0))
    return HeatRegularization(TAU, solver, seed=0, learning_rate=learning_rate, **arguments)


def sgd(learning_rate: Any = None, **arguments: Any) -> keras.optimizers.SGD:
    """Keras's own."""
    return keras.optimizers.SGD(TAU if learning_rate is None else learning_rate, **arguments)


class Training(NamedTuple):
    """What a training leaves.

    Attributes:
        state: the model's variables, trained or not.
        logs: the history's numbers by name.
    """

    state: list[Array]
    logs: dict[str, Any]


def training(
    optimizer: keras.optimizers.Optimizer,
    build: Callable[[], keras.Model],
    train: Callable[[keras.Model, keras.optimizers.Optimizer], Any],
) -> Training:
    """Builds a model of the same initial weights always and trains it.

    `train` compiles and trains, and may return logs if it does not call `fit`.
    """
    keras.utils.set_random_seed(1)
    model = build()
    logs = train(model, optimizer)
    return Training(
        [np.array(v.numpy()) for v in model.variables],
        model.history.history if logs is None else logs,
    )


def assert_same(actual: Training, expected: Training, tolerance: float = 3e-6) -> None:
    for a, e in zip(actual.state, expected.state, strict=True):
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)
    assert actual.logs.keys() == expected.logs.keys()
    for name, values in expected.logs.items():
        np.testing.assert_allclose(actual.logs[name], values, rtol=tolerance)
