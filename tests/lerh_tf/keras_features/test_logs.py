"""What is logged is Keras's own at the same weights, whatever the number of evaluations."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from lerh_tf import HeatRegularization, ImportanceSampling, LocalEntropy, RobbinsMonro

pytestmark = pytest.mark.usefixtures("plain_loops")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)).astype("float32")
Y = RNG.standard_normal((6, 2)).astype("float32")
OPTIMIZERS: dict[str, Any] = {
    "1-evaluation": lambda: HeatRegularization(0.1, RobbinsMonro(1, 1), seed=0),
    "12-evaluations": lambda: HeatRegularization(0.1, RobbinsMonro(4, 3), seed=0),
    "50-evaluations": lambda: LocalEntropy(0.1, ImportanceSampling(50), seed=0),
}


def build(*body: Any) -> keras.Model:
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((4,)), *body, layers.Dense(2, kernel_regularizer="l2")])


def compiled(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse", metrics=["mae"], weighted_metrics=["mse"])
    return model


@pytest.mark.feature("training", "`train_on_batch`", "yes")
@pytest.mark.feature(
    "logs", "logged loss and metrics", "Keras's own at the weights before the update"
)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_logs_are_those_of_evaluate_before_the_update(name: str) -> None:
    model = compiled(build(), OPTIMIZERS[name]())
    seen = []
    for _ in range(3):
        expected = model.evaluate(X, Y, return_dict=True, verbose=0)
        logs = model.train_on_batch(X, Y, return_dict=True)
        assert logs.keys() == expected.keys() == {"loss", "mae", "mse"}
        np.testing.assert_allclose([*logs.values()], [*expected.values()], rtol=1e-6)
        model.reset_metrics()
        seen.append(logs["loss"])
    assert len(set(map(float, seen))) == 3


@pytest.mark.feature(
    "logs", "statistics of `BatchNormalization`, seeds of `Dropout`", "move once per weight update"
)
def test_statistics_and_seeds_move_once_per_update() -> None:
    def with_state(optimizer: keras.optimizers.Optimizer) -> keras.Model:
        body = layers.BatchNormalization(), layers.Dropout(0.5, seed=3)
        return compiled(build(*body), optimizer)

    # They see the inputs alone, which stay, whatever the weights do.
    model, stock = with_state(OPTIMIZERS["50-evaluations"]()), with_state(keras.optimizers.SGD(0.0))
    for _ in range(2):
        logs = [each.train_on_batch(X, Y, return_dict=True)["loss"] for each in (model, stock)]
    state = [[v.numpy() for v in each.non_trainable_variables] for each in (model, stock)]
    assert len(state[0]) == 3
    for actual, expected in zip(*state, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert logs[0] != logs[1]
