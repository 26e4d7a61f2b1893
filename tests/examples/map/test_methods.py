"""Every method's optimizer is the one that its settings say."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from examples.map.entropy_sgd import EntropySGD
from examples.map.methods import METHODS, SIGN_METHODS
from examples.map.sam import SAM
from lerh_tf import ImportanceSampling, LossFunction, PhiloxNoise, RobbinsMonro

SETTINGS: Mapping[str, float] = {
    "learning_rate": 0.2,
    "momentum": 0.9,
    "weight_decay": 0.05,
    "forgetting": 0.01,
    "rho": 0.3,
    "tau": 0.04,
    "gamma": 0.5,
    "step_size": 0.1,
    "sigma": 0.1,
    "loss_multiplier": 30.0,
}


def made(name: str) -> keras.optimizers.Optimizer:
    return METHODS[name].scheduled(SETTINGS, 100, 3)


def after(optimizer: keras.optimizers.Optimizer, updates: int) -> float:
    """Returns where constant gradients of 1 bring a weight that starts at 2."""
    weight = keras.Variable(2.0)
    for _ in range(updates):
        optimizer.apply([tf.constant(1.0)], [weight])
    return float(weight)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_rate_and_decay_are_those_of_the_long_run(momentum: float) -> None:
    settings = {**SETTINGS, "momentum": momentum, "weight_decay": 0.0}
    optimizer = METHODS["sgd"].optimizer(settings, 1e-3, 0)
    # Momentum is behind by p / (1 - p) gradients, 9, less what Nesterov looks ahead.
    assert after(optimizer, 400) == pytest.approx(2.0 - 0.4, abs=0.01)
    settings = {**SETTINGS, "momentum": momentum}
    optimizer = METHODS["sgd"].optimizer(settings, 0.1, 0)
    weight = keras.Variable(2.0)
    optimizer.apply([tf.constant(0.0)], [weight])
    assert float(weight) == pytest.approx(2.0 * (1.0 - 0.1 * 0.05))


def test_the_rate_falls_to_zero() -> None:
    optimizer = made("sgd")
    rates = []
    weight = keras.Variable(1.0)
    for _ in range(100):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([tf.constant(0.0)], [weight])
    # A tenth, since momentum makes ten of a gradient.
    assert rates[0] == pytest.approx(0.02)
    assert rates[50] == pytest.approx(0.01)
    assert float(optimizer.learning_rate) == pytest.approx(0.0, abs=1e-9)


def test_adam_decays_as_sgd_does_per_update() -> None:
    optimizer = METHODS["adam"].optimizer(SETTINGS, 0.1, 0)
    weight = keras.Variable(2.0)
    optimizer.apply([tf.constant(0.0)], [weight])
    assert isinstance(optimizer, keras.optimizers.AdamW)
    assert float(optimizer.learning_rate) == pytest.approx(0.001)
    assert float(weight) == pytest.approx(2.0 * (1.0 - 0.1 * 0.05))


def test_the_average_is_kerass() -> None:
    optimizer = made("average")
    assert optimizer.use_ema
    assert optimizer.ema_momentum == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("name", "kernel", "tau"),
    [
        ("sam", SAM(0.3), 1.0),
        ("weight_noise", ImportanceSampling(1, estimator="gradients"), 0.04),
        ("entropy_sgd", EntropySGD(0.5, 0.1 * (1.0 - 0.9), 0.9), 1.0),
        ("local_entropy", ImportanceSampling(10, estimator="gradients"), 0.04),
    ],
)
def test_what_goes_through_the_open_core(name: str, kernel: Any, tau: float) -> None:
    optimizer: Any = made(name)
    assert optimizer.sampler == kernel
    assert float(optimizer.tau) == pytest.approx(tau)
    assert optimizer.seed == 3
    inner = optimizer.inner_optimizer
    assert type(inner) is keras.optimizers.SGD
    assert (inner.momentum, inner.weight_decay) == (0.9, pytest.approx(0.5))


def test_heat_has_as_many_gradients_as_local_entropy() -> None:
    optimizer: Any = made("heat")
    assert isinstance(optimizer.solver, RobbinsMonro)
    assert optimizer.solver.steps * optimizer.solver.samples == 10


def test_one_draw_of_weight_noise_is_the_gradient_there() -> None:
    x = [tf.constant([0.5, -1.0], tf.float64)]
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), x)
    loss = LossFunction(lambda w: tf.reduce_sum(w[0] ** 4), 1)
    kernel = ImportanceSampling(1, estimator="gradients")
    found = kernel(loss, x, tf.constant(0.04, tf.float64), noise)
    z = noise(tf.constant(0, tf.int64), 1)[0][0].numpy()
    gradient = 4.0 * (x[0].numpy() + 0.2 * z) ** 3
    np.testing.assert_allclose(-found.displacement[0].numpy() / 0.04, gradient, rtol=1e-9)


def test_the_sign_networks_local_entropy_moves_by_tau() -> None:
    settings = {**SETTINGS, "learning_rate": 1.0, "momentum": 0.0}
    optimizer: Any = SIGN_METHODS["local_entropy"].scheduled(settings, 100, 3)
    assert float(optimizer.tau) == pytest.approx(0.01)
    assert float(optimizer.learning_rate) == pytest.approx(0.01)
    assert optimizer.sampler.control_variate
    assert optimizer.sampler.loss_multiplier == 30.0
