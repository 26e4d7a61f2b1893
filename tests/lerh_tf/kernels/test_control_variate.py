"""Control variates: the same expectation, a smaller variance, and no other estimator does both."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import chi2

from lerh_tf import SGLD, ImportanceSampling, LangevinSteps
from lerh_tf.exact.subspace import find_subspace
from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.loss.objective import LossFunction
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.noise import Noise, PhiloxNoise
from tests.lerh_tf.kernels.test_reduced_law import ANCHOR, START, TAU, Array, network

REPETITIONS = 2000
# A sound estimator exceeds it in one of 10,000 comparisons; with fixed seeds this is no lottery.
LEVEL = 0.9999

Found = Callable[[Estimate], list[tf.Tensor]]


def as_found(estimate: Estimate) -> list[tf.Tensor]:
    return estimate.displacement


def draws(kernel: Kernel, is_reduced: bool, seed: int = 1, of: Found = as_found) -> Array:
    """The displacement of one update, repeated with other noise, [REPETITIONS, 10]."""

    @tf.function(jit_compile=True, autograph=False)
    def repeated() -> Any:
        anchor, chain = ([tf.constant(w) for w in ws] for ws in (ANCHOR, START))
        objective = ReplayedLoss.of_function(lambda w: 0.2 * network(w), anchor)
        subspace = find_subspace(objective, [w.shape for w in anchor])
        assert subspace is not None
        start = chain if kernel.has_chain else []

        def once(k: tf.Tensor) -> Any:
            tau = tf.constant(TAU, tf.float64)

            def noise_for(tensors: Any) -> Noise:
                return PhiloxNoise(seed, k, tensors)

            if is_reduced:
                return of(estimate_in_subspace(kernel, subspace, anchor, tau, noise_for, start))
            return of(kernel(objective, anchor, tau, noise_for(anchor), start))

        signature = [tf.float64] * len(anchor)
        return tf.map_fn(once, tf.range(REPETITIONS), fn_output_signature=signature)

    # A concrete function: of many `tf.function`s TensorFlow warns.
    found = repeated.get_concrete_function()()
    return np.concatenate([part.numpy().reshape(REPETITIONS, -1) for part in found], 1)


def chi_square(differences: Array) -> float:
    """Hotelling's statistic of a mean of zero: chi-square where it is zero."""
    mean = differences.mean(0)
    covariance = np.cov(differences.T) / len(differences)
    return float(mean @ np.linalg.solve(covariance, mean))


def is_zero(differences: Array) -> bool:
    return chi_square(differences) < chi2.ppf(LEVEL, differences.shape[1])


def sgld(control_variate: bool, noise: str, persistent: bool) -> SGLD:
    return SGLD(
        12,
        step_sizes=LangevinSteps(4.0),
        noise=noise,
        persistent=persistent,
        control_variate=control_variate,
    )


PAIRS: dict[str, Callable[[bool], Kernel]] = {
    "importance sampling": lambda cv: ImportanceSampling(200, control_variate=cv),
    **{
        f"sgld, {noise}, from {'the chain' if persistent else 'x'}": functools.partial(
            sgld, noise=noise, persistent=persistent
        )
        for noise in ("langevin", "linear")
        for persistent in (True, False)
    },
}
each_pair = pytest.mark.parametrize("name", PAIRS)
plain_and_reduced = pytest.mark.parametrize("is_reduced", [False, True], ids=["plain", "subspace"])


@functools.cache
def drawn(name: str, control_variate: bool, is_reduced: bool) -> Array:
    return draws(PAIRS[name](control_variate), is_reduced)


@plain_and_reduced
@each_pair
def test_expectation_is_the_same_and_the_variance_smaller(name: str, is_reduced: bool) -> None:
    plain, varied = (drawn(name, cv, is_reduced) for cv in (False, True))
    assert is_zero(varied - plain)
    assert varied.var(0).sum() < SHARES["sgld" in name] * plain.var(0).sum()
    # The mean is far more than what the comparison resolves.
    resolved = np.sqrt((varied - plain).var(0).sum() / REPETITIONS)
    assert np.linalg.norm(varied.mean(0)) > 4.0 * resolved


# Of the variance, what may be left at these numbers of samples.
SHARES = {False: 0.2, True: 0.01}


def start_share(estimate: Estimate) -> list[tf.Tensor]:
    """What the start of the chain has in the mean."""
    share = estimate.diagnostics["mean_start"]
    return [share * (s - x) for s, x in zip(START, ANCHOR, strict=True)]


@plain_and_reduced
@pytest.mark.parametrize("times", [-1.0, 1.0], ids=["left out", "twice"])
def test_wrong_means_would_be_noticed(times: float, is_reduced: bool) -> None:
    name = "sgld, langevin, from the chain"

    def wrong(estimate: Estimate) -> list[tf.Tensor]:
        shares = start_share(estimate)
        return [d + times * s for d, s in zip(estimate.displacement, shares, strict=True)]

    varied = draws(PAIRS[name](True), is_reduced, of=wrong)
    assert not is_zero(varied - drawn(name, False, is_reduced))


@plain_and_reduced
@pytest.mark.parametrize("name", ["importance sampling", "sgld, langevin, from x"])
def test_wrong_coefficients_and_other_noise_would_be_noticed(name: str, is_reduced: bool) -> None:
    plain, varied = (drawn(name, cv, is_reduced) for cv in (False, True))
    flat = plain - varied
    other = draws(PAIRS[name](False), is_reduced, seed=2) - draws(
        PAIRS[name](True), is_reduced, seed=2
    )
    bound = SHARES["sgld" in name] * plain.var(0).sum()
    for wrong in (plain - 2.0 * flat, plain - other):
        assert is_zero(wrong - plain)
        assert wrong.var(0).sum() > bound


@pytest.mark.parametrize("name", ["importance sampling", "sgld, langevin, from x"])
def test_a_drawn_complement_would_be_noticed(name: str) -> None:
    plain, varied = drawn(name, False, True), drawn(name, True, True)
    # What the kernel itself sees is varied, the rest, in the complement, as in the plain mean.
    seen = np.linalg.svd(np.cov(varied.T))[0][:, :6]
    wrong = varied + (plain - varied) @ (np.eye(10) - seen @ seen.T)
    assert wrong.var(0).sum() > SHARES["sgld" in name] * plain.var(0).sum()


def test_no_weight_is_positive_and_nothing_moves() -> None:
    anchor = [tf.zeros([3], tf.float64)]
    objective = LossFunction(lambda w: tf.reduce_sum(w[0]) * np.inf, 1)
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), anchor)
    kernel = ImportanceSampling(5, control_variate=True)
    found = tf.function(
        lambda: kernel(objective, anchor, tf.constant(0.1, tf.float64), noise), autograph=False
    )()
    assert not found.is_valid
    np.testing.assert_array_equal(found.displacement[0], 0.0)
