"""Estimates of F_tau and F^H_tau against NumPy on the same noise, and against closed forms."""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import logsumexp

from lerh_tf import SGLD, RobbinsMonro
from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.kernels.regularized import RegularizedLosses, regularized_losses
from lerh_tf.loss.objective import LossFunction, Weights
from lerh_tf.noise import DIAGNOSTICS_BLOCK, PhiloxNoise
from lerh_tf.oracles import Quadratic
from tests.lerh_tf.kernels._network import InjectedNoise, SeededNoise

TAU = 0.3
X = np.array([0.8, -0.5, 0.2])
RNG = np.random.default_rng(4)
# 64 evaluations are two samples.
KERNELS: dict[str, Kernel] = {
    "sgld": SGLD(64),
    "sgld, linear": SGLD(64, noise="linear"),
    "robbins-monro": RobbinsMonro(4, 16),
}


def quadratic() -> Quadratic:
    root = RNG.standard_normal((3, 3))
    return Quadratic(root @ root.T, np.array([0.1, 0.2, -0.4]), TAU)


QUADRATIC = quadratic()


def loss(weights: Weights) -> tf.Tensor:
    u = weights[0] - tf.constant(QUADRATIC.centre, weights[0].dtype)
    hessian = tf.constant(QUADRATIC.hessian, u.dtype)
    return 0.5 * tf.reduce_sum(u * tf.linalg.matvec(hessian, u))


def losses(
    evaluations: int,
    noise: Callable[..., list[tf.Tensor]],
    function: Callable[..., tf.Tensor] = loss,
) -> RegularizedLosses:
    @tf.function(autograph=False)
    def compiled() -> RegularizedLosses:
        objective = LossFunction(function, 1)
        return regularized_losses(
            objective, [tf.constant(X)], tf.constant(TAU, tf.float64), noise, evaluations
        )

    return compiled()


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_tell_them_of_two_samples_in_64_evaluations(name: str) -> None:
    z = RNG.standard_normal((8, 64, 3))

    @tf.function(autograph=False)
    def update() -> Estimate:
        anchor = [tf.constant(X)]
        noise = InjectedNoise([z])
        return KERNELS[name](
            LossFunction(loss, 1), anchor, tf.constant(TAU, tf.float64), noise, anchor
        )

    f = QUADRATIC.f(X + np.sqrt(TAU) * z[0, :2])
    told = update().diagnostics
    np.testing.assert_allclose(told["local_entropy"], np.log(2) - logsumexp(-f), rtol=1e-12)
    if name == "robbins-monro":
        np.testing.assert_allclose(told["heat_regularization"], f.mean(), rtol=1e-12)


# Full blocks only, and a part of one.
@pytest.mark.parametrize("samples", [6, 7])
def test_samples_go_through_their_blocks(samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lerh_tf.noise._LARGEST_BLOCK", 3)
    z = RNG.standard_normal((3, 3, 3))
    f = QUADRATIC.f(X + np.sqrt(TAU) * z.reshape(-1, 3)[:samples])
    found = losses(32 * samples, InjectedNoise([z]))
    np.testing.assert_allclose(found.local_entropy, np.log(samples) - logsumexp(-f), rtol=1e-12)
    np.testing.assert_allclose(found.heat_regularization, f.mean(), rtol=1e-12)


def test_estimates_are_those_of_the_closed_forms() -> None:
    n, noise = 4000, SeededNoise(3, (3,))
    found = losses(32 * n, noise)
    z = np.concatenate(
        [noise(tf.constant(DIAGNOSTICS_BLOCK + b, tf.int64), 1024)[0] for b in range(4)]
    )[:n]
    f = QUADRATIC.f(X + np.sqrt(TAU) * z)
    heat_error = f.std() / n**0.5
    entropy_error = np.exp(-f).std() / np.exp(-f).mean() / n**0.5
    entropy, heat = QUADRATIC.local_entropy(X), QUADRATIC.heat(X)
    assert abs(found.local_entropy - entropy) < 3 * entropy_error
    assert abs(found.heat_regularization - heat) < 3 * heat_error
    # Neither is the other, nor f at the weights.
    assert heat - entropy > 20 * max(heat_error, entropy_error)
    assert abs(QUADRATIC.f(X) - entropy) > 10 * entropy_error
    assert abs(QUADRATIC.f(X) - heat) > 10 * heat_error


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_samples_without_a_finite_loss_weigh_nothing(bad: float) -> None:
    z = RNG.standard_normal((1, 5, 3))
    f = QUADRATIC.f(X + np.sqrt(TAU) * z[0])
    limit = np.sort(f)[2]

    def broken(weights: Weights) -> tf.Tensor:
        value = loss(weights)
        return tf.where(value > limit * (1 + 1e-9), tf.constant(bad, value.dtype), value)

    found = losses(32 * 5, InjectedNoise([z]), broken)
    expected = np.log(5) - logsumexp(-f[f <= limit])
    np.testing.assert_allclose(found.local_entropy, expected, rtol=1e-9)
    assert not np.isfinite(found.heat_regularization)


def test_without_a_finite_loss_the_estimate_is_infinite() -> None:
    found = losses(64, SeededNoise(1, (3,)), lambda weights: loss(weights) + np.inf)
    assert found.local_entropy == np.inf


def test_few_evaluations_are_one_sample() -> None:
    z = RNG.standard_normal((1, 1, 3))
    found = losses(2, InjectedNoise([z]))
    f = QUADRATIC.f(X + np.sqrt(TAU) * z[0, 0])
    np.testing.assert_allclose(found, [f, f], rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_their_draws_are_nobody_else_s(name: str) -> None:
    drawn: list[int] = []
    seeded = PhiloxNoise(0, tf.constant(0, tf.int64), [tf.constant(X)])

    def watched(block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        tf.py_function(lambda b: drawn.append(int(b)), [block], [])
        return seeded(block, samples)

    @tf.function(autograph=False)
    def update() -> Estimate:
        anchor = [tf.constant(X)]
        tau = tf.constant(TAU, tf.float64)
        return KERNELS[name](LossFunction(loss, 1), anchor, tau, watched, anchor)

    update()
    assert drawn.count(DIAGNOSTICS_BLOCK) == 1
    assert len(drawn) == len(set(drawn)) > 1
