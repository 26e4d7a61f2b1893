"""Algorithms 1 and 2 over several weight updates: NumPy on the same noise, and what noise it is."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, HeatRegularization, LangevinSteps, LocalEntropy, RobbinsMonro
from tests.lerh_tf.kernels._network import (
    ANCHOR,
    SIZE,
    TOLERANCES,
    flat,
    gradient,
    loss,
    relative_error,
    split,
)
from tests.lerh_tf.kernels._paper import Array, robbins_monro, sgld

# A number that float32 holds exactly: the optimizer's tau is a float32 variable.
TAU = 0.25
UPDATES = 3
DTYPES = sorted(TOLERANCES)
Optimizer = LocalEntropy | HeatRegularization


def inject(monkeypatch: pytest.MonkeyPatch, z: Array) -> None:
    """Exchanges the optimizers' noise for z, shape [updates, blocks, samples per block, d]."""

    def noise_of(seed: int, update: tf.Tensor, like: Sequence[tf.Tensor]) -> Callable[..., Any]:
        del seed
        mine = [tf.constant(part, x.dtype)[update] for part, x in zip(split(z), like, strict=True)]
        return lambda block, samples: [part[block][:samples] for part in mine]

    monkeypatch.setattr("lerh_tf.optimizers._update.PhiloxNoise", noise_of)


def iterates(optimizer: Optimizer, dtype: str, updates: int = UPDATES) -> list[Array]:
    """x_1, x_2, ... of the network, flat."""
    variables = [keras.Variable(part, dtype=dtype) for part in split(ANCHOR)]

    def network() -> tf.Tensor:
        return loss([tf.convert_to_tensor(v) for v in variables])

    found = []
    for _ in range(updates):
        optimizer.step(network, variables)
        found.append(flat([v.numpy() for v in variables]))
    return found


def assert_equal(found: Sequence[Array], expected: Sequence[Array], dtype: str) -> None:
    before = ANCHOR
    for x, m in zip(found, expected, strict=True):
        # The weights themselves are rounded to their dtype.
        rounding = 4 * float(np.finfo(dtype).eps) * float(np.linalg.norm(m))
        tolerance = TOLERANCES[dtype] * float(np.linalg.norm(m - before)) + rounding
        assert np.linalg.norm(x - m) < tolerance
        before = m


def moments(z: Array, persistent: bool, updates: int = UPDATES) -> list[Array]:
    """The means of Algorithm 3 at x_k, x_{k+1} = mean, in NumPy."""
    eps = 1 / (10.0 + np.arange(1, 12))
    x = [ANCHOR]
    state = ANCHOR
    for k in range(updates):
        eta = np.sqrt(eps[:-1, None]) * z[k, 0, :10]
        chain = sgld(gradient, x[-1], TAU, eps, eta, state if persistent else x[-1])
        state = chain.states[-1]
        x.append(chain.mean)
    return x[1:]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("persistent", [True, False])
def test_algorithm_1_by_algorithm_3(
    persistent: bool, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = np.random.default_rng(2).standard_normal((UPDATES, 1, 32, SIZE))
    inject(monkeypatch, z)
    sampler = SGLD(11, step_sizes=LangevinSteps(10.0), persistent=persistent)
    found = iterates(LocalEntropy(TAU, sampler, seed=0, subspace=False), dtype)
    assert_equal(found, moments(z, persistent), dtype)
    wrong = moments(z, not persistent)
    assert relative_error([found[-1]], wrong[-1]) > 1e-2


@pytest.mark.parametrize("dtype", DTYPES)
def test_algorithm_2_by_algorithm_5(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(2).standard_normal((UPDATES, 4, 3, SIZE))
    inject(monkeypatch, z)
    solver = RobbinsMonro(4, 3)
    found = iterates(HeatRegularization(TAU, solver, seed=0, subspace=False), dtype)

    expected, x = [], ANCHOR
    for k in range(UPDATES):
        x = robbins_monro(gradient, x, TAU, np.asarray(0.1 * np.arange(1.0, 5.0) ** -0.7), z[k]).x
        expected.append(x)
    assert_equal(found, expected, dtype)


@pytest.mark.feature("update", "`gradient_accumulation_steps`")
def test_chain_and_noise_go_on_at_every_raw_update_under_accumulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z = np.random.default_rng(2).standard_normal((4, 1, 32, SIZE))
    inject(monkeypatch, z)
    optimizer = LocalEntropy(
        TAU,
        SGLD(11, step_sizes=LangevinSteps(10.0)),
        seed=0,
        subspace=False,
        gradient_accumulation_steps=2,
    )
    found = iterates(optimizer, "float64", 4)

    eps = 1 / (10.0 + np.arange(1, 12))
    x = state = ANCHOR
    expected, means = [], []
    for k in range(4):
        chain = sgld(gradient, x, TAU, eps, np.sqrt(eps[:-1, None]) * z[k, 0, :10], state)
        state = chain.states[-1]
        means.append(chain.mean)
        if k % 2:
            x = np.mean(means[-2:], axis=0)
        expected.append(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def linear(variables: Sequence[keras.Variable]) -> Callable[[], tf.Tensor]:
    """On a linear loss SGLD's displacement from x is the noise and a constant."""

    def sum_of_all() -> tf.Tensor:
        return tf.add_n([tf.reduce_sum(tf.convert_to_tensor(v)) for v in variables])

    return sum_of_all


def displacements(seed: int, updates: int = 2, moves: int = 2) -> Array:
    """Of two variables of equal shape, shape [updates, 2, 1000]."""
    variables = [keras.Variable(np.zeros(1000), dtype="float32") for _ in range(2)]
    optimizer = LocalEntropy(TAU, SGLD(moves + 1, persistent=False), seed=seed)
    closure, x = linear(variables), [np.zeros((2, 1000))]
    for _ in range(updates):
        optimizer.step(closure, variables)
        x.append(np.stack([v.numpy() for v in variables]))
    return np.diff(x, axis=0)


def test_noise_differs_between_updates_variables_and_seeds() -> None:
    draws = np.concatenate([displacements(0).reshape(4, -1), displacements(1).reshape(4, -1)])
    correlations = np.corrcoef(draws)
    # The standard error of a correlation of 1000 independent pairs is 0.03.
    assert np.abs(correlations - np.eye(len(draws))).max() < 0.15


def test_noise_differs_between_the_moves_of_one_update() -> None:
    # A walk of J moves with one and the same noise would spread as J, not as its root.
    variable = keras.Variable(np.zeros(20_000), dtype="float32")
    optimizer = LocalEntropy(1e6, SGLD(51, step_sizes=LangevinSteps(1e3)), seed=0)
    optimizer.step(linear([variable]), [variable])
    chain = next(v for v in optimizer.variables if v.path.endswith("_chain"))
    variance = np.sum(1 / (1e3 + np.arange(1, 51)))
    np.testing.assert_allclose(np.var(chain.numpy()), variance, rtol=0.05)


def test_one_seed_is_one_run() -> None:
    np.testing.assert_array_equal(displacements(4), displacements(4))
    assert not np.array_equal(displacements(4), displacements(5))
