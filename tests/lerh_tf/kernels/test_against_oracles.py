"""Algorithms 3 and 5 against exact values.

q_{x,tau} of a sum of functions of single coordinates is a product, and so is the law of the chain:
one call of a kernel on many copies of a function is as many independent repetitions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.optimizers.schedules import PiecewiseConstantDecay

from lerh_tf import SGLD, LangevinSteps, LocalEntropy, RobbinsMonro, RobbinsMonroSteps
from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.loss.objective import LossFunction
from lerh_tf.noise import Noise
from lerh_tf.oracles import Landscape, heat_step, local_entropy_step
from tests.lerh_tf.kernels._network import SeededNoise
from tests.lerh_tf.kernels._paper import Array
from tests.scenarios import SCENARIOS, Scenario

Loss = Callable[[tf.Tensor], tf.Tensor]

# Standard errors that an estimate may be off, and the most that one may be, in steps |x - m|.
ERRORS = 3.0
LARGEST_ERROR = 1 / 20


class Repetitions(NamedTuple):
    """The mean over the copies, shape (d,), and the norm of its standard error."""

    mean: Array
    error: float

    @classmethod
    def of(cls, copies: Any) -> "Repetitions":
        values = np.asarray(copies, np.float64)
        errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        return cls(values.mean(axis=0), float(np.linalg.norm(errors)))

    def distance(self, m: Array) -> float:
        return float(np.linalg.norm(self.mean - m))


def run(
    kernel: Kernel,
    loss: Loss,
    x: Array,
    tau: float,
    noise: Noise | None = None,
    burn_in: Kernel | None = None,
) -> Estimate:
    """One weight update of all copies; x has shape (copies, d)."""
    objective = LossFunction(lambda v: tf.reduce_sum(loss(v[0])), 1)

    @tf.function(autograph=False)
    def compiled() -> Estimate:
        anchor, variance = [tf.constant(x)], tf.constant(tau, tf.float64)
        chain = anchor
        if burn_in is not None:
            chain = burn_in(objective, anchor, variance, SeededNoise(0, x.shape), chain).chain
        return kernel(objective, anchor, variance, noise or SeededNoise(1, x.shape), chain)

    return compiled()


def loss_of(scenario: Scenario) -> Loss:
    return lambda v: scenario.loss(v, tf.exp)


def flat(v: tf.Tensor) -> tf.Tensor:
    """No function at all, so that what is left of a move is the pull to x and the noise."""
    return 0.0 * v[..., 0]


def copies(scenario: Scenario, number: int) -> Array:
    return np.tile(np.asarray(scenario.x), (number, 1))


def sgld_mean(scenario: Scenario, loss: Loss, noise: str = "langevin") -> Repetitions:
    """The mean that a long chain finds once it has forgotten where it started."""
    burn_in = SGLD(151, step_sizes=PiecewiseConstantDecay([0], [0.02, 0.02]), noise=noise)
    kernel = SGLD(1000, step_sizes=PiecewiseConstantDecay([0], [0.01, 0.01]), noise=noise)
    x = copies(scenario, 500)
    estimate = run(kernel, loss, x, scenario.tau, burn_in=burn_in)
    return Repetitions.of(x + estimate.displacement[0])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_long_chains_find_the_mean(scenario: Scenario) -> None:
    landscape, x = Landscape(scenario.f, scenario.tau), np.asarray(scenario.x)
    m = local_entropy_step(landscape, x).value
    step = float(np.linalg.norm(m - x))
    # Steps of size eps leave a bias of order eps = 0.01.
    allowed = 0.02 * step

    found = sgld_mean(scenario, loss_of(scenario))
    assert found.error < LARGEST_ERROR * step
    assert found.distance(m) < ERRORS * found.error + allowed

    wrong = {
        "gradient dropped": sgld_mean(scenario, flat),
        "linear": sgld_mean(scenario, loss_of(scenario), "linear"),
    }
    for name, other in wrong.items():
        assert other.distance(m) > 2 * (ERRORS * other.error + allowed), name
    swapped = heat_step(landscape, x).value
    assert found.distance(swapped) > 2 * (ERRORS * found.error + allowed)


SOLVER = RobbinsMonro(300, 8, step_sizes=RobbinsMonroSteps(0.3))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_robbins_monro_finds_the_minimiser(scenario: Scenario) -> None:
    landscape, x = Landscape(scenario.f, scenario.tau), np.asarray(scenario.x)
    m = heat_step(landscape, x).value
    step = float(np.linalg.norm(m - x))

    start = copies(scenario, 300)
    estimate = run(SOLVER, loss_of(scenario), start, scenario.tau)
    found = Repetitions.of(start + estimate.displacement[0])
    assert found.error < LARGEST_ERROR * step
    assert found.distance(m) < ERRORS * found.error

    swapped = local_entropy_step(landscape, x).value
    assert found.distance(swapped) > 10 * ERRORS * found.error
    no_noise = run(SOLVER, loss_of(scenario), start[:1], scenario.tau, Silence(start[:1].shape))
    assert np.linalg.norm(x + no_noise.displacement[0][0] - m) > 10 * ERRORS * found.error


class Silence:
    """Noise that is zero."""

    def __init__(self, shape: tuple[int, ...]):
        self._shape = shape

    def __call__(self, block: tf.Tensor, samples: Any) -> list[tf.Tensor]:
        return [tf.zeros([samples, *self._shape], tf.float64)]


S2 = 0.5
CENTRES = np.array([[-1.0], [0.3], [2.0]])


def quadratic(v: tf.Tensor) -> tf.Tensor:
    """|v - c|^2 / 2 s^2, its own c for each of three copies."""
    return tf.reduce_sum((v - CENTRES) ** 2, -1) / (2 * S2)


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("steps", [1, 3, 31])
def test_robbins_monro_without_noise_covers_the_product_formula(steps: int, growing: bool) -> None:
    tau, x = 0.2, np.zeros((3, 1))
    kernel = RobbinsMonro(steps, 2, step_sizes=RobbinsMonroSteps(0.1, 0.7, growing))
    estimate = run(kernel, quadratic, x, tau, Silence(x.shape))
    a = 0.1 * np.arange(1.0, steps + 1) ** (0.7 if growing else -0.7)
    left = np.prod(1 - a * (1 + tau / S2))
    m = CENTRES + (x - CENTRES) * S2 / (S2 + tau)
    np.testing.assert_allclose(estimate.displacement[0], (1 - left) * (m - x), rtol=1e-12)
    residual = np.linalg.norm((1 + tau / S2) * left / (1 - a[-1] * (1 + tau / S2)) * (m - x))
    np.testing.assert_allclose(estimate.diagnostics["residual"], residual, rtol=1e-11, atol=1e-14)


def test_noise_of_robbins_monro_differs_between_steps_and_samples() -> None:
    tau, x, samples = 0.2, np.zeros((20_000, 1)), 3
    kernel = RobbinsMonro(10, samples, step_sizes=RobbinsMonroSteps(0.5))
    estimate = run(kernel, lambda v: tf.reduce_sum(v**2, -1) / (2 * S2), x, tau)
    variance = 0.0
    for a in 0.5 * np.arange(1.0, 11.0) ** -0.7:
        variance = (1 - a * (1 + tau / S2)) ** 2 * variance + a**2 * tau**3 / S2**2 / samples
    # The standard error of a variance from 20,000 repetitions is 1 %.
    np.testing.assert_allclose(np.var(estimate.displacement[0]), variance, rtol=0.03)


def test_sgld_without_noise_is_the_mean_recursion() -> None:
    tau, x, samples = 0.2, np.zeros((3, 1)), 40
    eps = 1 / (10.0 + np.arange(1, samples + 1))
    estimate = run(
        SGLD(samples, step_sizes=LangevinSteps(10.0)), quadratic, x, tau, Silence(x.shape)
    )
    m = CENTRES + (x - CENTRES) * S2 / (S2 + tau)
    # From x the chain's mean covers 1 - prod(1 - eps_i / 2 (1 / tau + 1 / s^2)) of the way to m.
    left = np.cumprod(np.append(1.0, 1 - eps[:-1] / 2 * (1 / tau + 1 / S2)))
    np.testing.assert_allclose(
        estimate.displacement[0], np.average(1 - left, weights=eps) * (m - x), rtol=1e-12
    )


class Recursion(NamedTuple):
    """Expectations of x_k and of the chain over weight updates, for f = |v|^2 / 2 s^2 from 1.

    Attributes:
        persistent: whether the chain goes on.
        gradient: 0 drops grad f.
        moves: moves per update.
        skipped: leading states that are not averaged.
    """

    persistent: bool = True
    gradient: float = 1.0
    moves: int = 19
    skipped: int = 0

    def __call__(self, tau: float, eps: Array, updates: int) -> list[float]:
        x = [1.0]
        state = 1.0
        for _ in range(updates):
            states = [state if self.persistent else x[-1]]
            for eps_j in eps[: self.moves]:
                y = states[-1]
                states.append(y - eps_j / 2 * (self.gradient * y / S2 + (y - x[-1]) / tau))
            state, kept = states[-1], states[self.skipped :]
            x.append(float(np.average(kept, weights=eps[: len(kept)])))
        return x


@pytest.mark.parametrize("persistent", [True, False])
def test_chains_over_three_updates_have_the_exact_expectation(persistent: bool) -> None:
    tau, updates, samples = 0.5, 3, 20
    variable = keras.Variable(np.ones(400_000), dtype="float32")
    sampler = SGLD(samples, step_sizes=LangevinSteps(10.0), persistent=persistent)
    optimizer = LocalEntropy(tau, sampler, seed=3)

    def loss() -> tf.Tensor:
        return tf.reduce_sum(variable**2) / (2 * S2)

    found = [Repetitions(np.ones(1), 0.0)]
    for _ in range(updates):
        optimizer.step(loss, [variable])
        found.append(Repetitions.of(np.asarray(variable)[:, None]))

    eps = 1 / (10.0 + np.arange(1, samples + 2))
    expected = Recursion(persistent)(tau, eps, updates)
    for before, after, m in zip(expected, found[1:], expected[1:], strict=False):
        assert after.error < LARGEST_ERROR * abs(m - before)
        assert after.distance(np.array([m])) < ERRORS * after.error

    wrong = {
        "other persistence": Recursion(not persistent),
        "gradient dropped": Recursion(persistent, gradient=0.0),
        "first state left out": Recursion(persistent, skipped=1),
        "one move more, first state left out": Recursion(persistent, moves=20, skipped=1),
        "one move more": Recursion(persistent, moves=20),
    }
    for name, recursion in wrong.items():
        m = recursion(tau, eps, updates)[-1]
        assert found[-1].distance(np.array([m])) > ERRORS * found[-1].error, name
