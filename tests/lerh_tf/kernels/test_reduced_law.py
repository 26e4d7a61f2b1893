"""In law: kernels in coordinates, over thousands of repetitions, against kernels on whole weights.

Each repetition is one update with the library's own noise. Compared are the means, variances and
all covariances of (weighted mean, end of the chain) in the subspace of the minibatch, in its
complement and across.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, LangevinSteps, RobbinsMonro
from lerh_tf.exact.subspace import find_subspace
from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.loss.objective import Weights
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.noise import Noise, PhiloxNoise

Array = npt.NDArray[np.float64]

REPETITIONS = 4000
# With fixed seeds this is no lottery; a sound kernel exceeds it in 1 of 16000 comparisons.
STANDARD_ERRORS = 4.0
TAU = 0.2

RNG = np.random.default_rng(4)
# Two rows see two of the four dimensions of each column of A: f = f(X A, b).
X = RNG.standard_normal((2, 4))
Y = RNG.standard_normal(2)
ANCHOR = [RNG.standard_normal((4, 2)), RNG.standard_normal(2)]
START = [w + 0.5 * RNG.standard_normal(w.shape) for w in ANCHOR]
# Rows that span what the minibatch sees, and what it does not.
BASIS = np.linalg.svd(X)[2]


def network(weights: Weights) -> tf.Tensor:
    A, b = weights
    return 3.0 * tf.reduce_mean((tf.linalg.matvec(tf.tanh(tf.constant(X) @ A), b) - Y) ** 2)


def flat_network(weights: Weights) -> tf.Tensor:
    return 1e-9 * network(weights)


def mild_network(weights: Weights) -> tf.Tensor:
    return 0.05 * network(weights)


# Rows 0 and 2 of the table are seen; the third coordinate stands for nothing.
INDICES = [2, 0, 2]


def embedding(weights: Weights) -> tf.Tensor:
    A, b = weights
    h = tf.tanh(tf.gather(A, tf.constant(INDICES)))
    return 3.0 * tf.reduce_mean((tf.linalg.matvec(h, b) - [*Y, 1.0]) ** 2)


BASES = {embedding: np.eye(4)[[0, 2, 1, 3]]}


class Draws(NamedTuple):
    """Per repetition, [REPETITIONS, ...]: (mean, chain end) in the basis and the diagnostics."""

    features: Array
    standard_error: Array

    @property
    def displacement(self) -> Array:
        return self.features[:, :10]

    @property
    def unseen(self) -> Array:
        """The part of the displacement in the complement."""
        return self.features[:, 4:8]

    @property
    def last(self) -> Array:
        return self.features[:, 10:]


def draw(kernel: Kernel, is_reduced: bool, loss: Any = network) -> Draws:
    """One update from the same weights and start of the chain, repeated with other noise."""
    seed = 1 if is_reduced else 2

    @tf.function(jit_compile=True, autograph=False)
    def repeated() -> Any:
        anchor, chain = ([tf.constant(w) for w in ws] for ws in (ANCHOR, START))
        objective = ReplayedLoss.of_function(loss, anchor)
        subspace = find_subspace(objective, [w.shape for w in anchor])
        assert subspace is not None
        start = chain if kernel.has_chain else []

        def once(k: tf.Tensor) -> Any:
            tau = tf.constant(TAU, tf.float64)

            def noise_for(tensors: Any) -> Noise:
                return PhiloxNoise(seed, k, tensors)

            if is_reduced:
                found = estimate_in_subspace(kernel, subspace, anchor, tau, noise_for, start)
            else:
                found = kernel(objective, anchor, tau, noise_for(anchor), start)
            error = found.diagnostics.get("standard_error", tf.zeros([], tf.float64))
            return found.displacement, found.chain, error

        signature = tf.nest.map_structure(lambda w: tf.float64, (anchor, start, 0.0))
        return tf.map_fn(once, tf.range(REPETITIONS), fn_output_signature=signature)

    displacement, chain, error = tf.nest.map_structure(lambda t: t.numpy(), repeated())
    basis = BASES.get(loss, BASIS)
    parts = [part for d in (displacement, chain) if d for part in _in_basis(basis, *d)]
    return Draws(np.concatenate(parts, 1), error)


def _in_basis(basis: Array, A: Array, b: Array) -> list[Array]:
    rotated = np.einsum("ij,njk->nik", basis, A)
    return [rotated.reshape(len(A), -1), b]


@functools.cache
def drawn(kernel: Kernel, is_reduced: bool) -> Draws:
    return draw(kernel, is_reduced)


def moments(features: Array) -> tuple[Array, Array]:
    """The means and covariances, and their standard errors."""
    n = len(features)
    centred = features - features.mean(0)
    products = np.einsum("ni,nj->nij", centred, centred).reshape(n, -1)
    entries = np.concatenate([features, products], 1)
    return entries.mean(0), entries.std(0) / np.sqrt(n)


def distance(a: Array, b: Array) -> float:
    """The largest difference of any mean or covariance, in standard errors."""
    (mean_a, error_a), (mean_b, error_b) = moments(a), moments(b)
    # Exactly constant entries have no error of their own.
    error = np.sqrt(error_a**2 + error_b**2) + 1e-12
    return float(np.max(np.abs(mean_a - mean_b) / error))


KERNELS: dict[str, Kernel] = {
    "sgld": SGLD(6, step_sizes=LangevinSteps(2.0)),
    "sgld-control-variate": SGLD(6, step_sizes=LangevinSteps(2.0), control_variate=True),
    "sgld-linear": SGLD(6, step_sizes=LangevinSteps(2.0), noise="linear"),
    "sgld-not-persistent": SGLD(6, step_sizes=LangevinSteps(2.0), persistent=False),
    "importance-sampling": ImportanceSampling(6),
    # Not with a control variate: in the complement it then keeps the mean, not the law.
    "importance-sampling-gradients": ImportanceSampling(6, estimator="gradients"),
    "robbins-monro": RobbinsMonro(4, 3),
}


@pytest.mark.parametrize("name", KERNELS)
def test_reduced_kernel_has_the_law_of_the_plain_one(name: str) -> None:
    plain, reduced = (drawn(KERNELS[name], is_reduced) for is_reduced in (False, True))
    assert distance(plain.features, reduced.features) < STANDARD_ERRORS


@pytest.mark.parametrize("name", ["sgld", "importance-sampling"])
def test_rows_of_an_embedding_have_the_law_of_the_plain_kernel(name: str) -> None:
    plain, reduced = (draw(KERNELS[name], is_reduced, embedding) for is_reduced in (False, True))
    assert distance(plain.features, reduced.features) < STANDARD_ERRORS
    # No row is taken for another one.
    swapped = reduced.features[:, [2, 3, 0, 1, *range(4, reduced.features.shape[1])]]
    assert distance(plain.features, swapped) > STANDARD_ERRORS


def test_comparison_looks_at_both_parts_and_across() -> None:
    features = drawn(KERNELS["sgld"], False).features
    assert features.shape == (REPETITIONS, 20)
    deviations = features.std(0)
    assert (deviations > 0.1).all()
    correlations: Array = np.asarray(np.corrcoef(features.T))
    assert abs(correlations[4:8, 14:18].diagonal()).min() > 0.3
    assert abs(correlations[:4, 8:10]).max() > 0.1


@dataclasses.dataclass(frozen=True)
class WrongSGLD(SGLD):
    """SGLD with another law of the complement."""

    mistake: str = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Estimate:
        found = super().__call__(*args, **kwargs)
        law = found.complement
        assert law is not None
        shared, own = law.last_noise
        mistakes = {
            "mean-too-wide": law._replace(mean_noise=1.1 * law.mean_noise),
            "end-too-narrow": law._replace(last_noise=(0.9 * shared, 0.9 * own)),
            "no-covariance": law._replace(
                last_noise=(tf.zeros_like(shared), tf.sqrt(shared**2 + own**2))
            ),
            "start-forgotten": law._replace(mean_start=tf.zeros_like(law.mean_start)),
        }
        return found._replace(complement=mistakes[self.mistake])


@dataclasses.dataclass(frozen=True)
class WrongImportanceSampling(ImportanceSampling):
    """Importance sampling whose complement is averaged as if all weights were equal."""

    def __call__(self, *args: Any, **kwargs: Any) -> Estimate:
        found = super().__call__(*args, **kwargs)
        assert found.complement is not None
        deviation = tf.constant(np.sqrt(TAU / self.samples))
        return found._replace(complement=found.complement._replace(mean_noise=deviation))


@pytest.mark.parametrize(
    "mistake", ["mean-too-wide", "end-too-narrow", "no-covariance", "start-forgotten"]
)
def test_wrong_complement_of_sgld_would_be_noticed(mistake: str) -> None:
    wrong = draw(WrongSGLD(6, step_sizes=LangevinSteps(2.0), mistake=mistake), is_reduced=True)
    assert distance(drawn(KERNELS["sgld"], False).features, wrong.features) > STANDARD_ERRORS


def test_wrong_complement_of_importance_sampling_would_be_noticed() -> None:
    wrong = draw(WrongImportanceSampling(6), is_reduced=True).features
    plain = drawn(KERNELS["importance-sampling"], False).features
    assert distance(plain, wrong) > STANDARD_ERRORS


def spread(draws: Draws) -> float:
    """The root of the displacement's total variance."""
    return float(np.sqrt(draws.displacement.var(0).sum()))


HONEST: dict[str, Kernel] = {
    "sgld": SGLD(6, step_sizes=LangevinSteps(2.0)),
    "importance-sampling": ImportanceSampling(200),
    "importance-sampling-control-variate": ImportanceSampling(200, control_variate=True),
    "importance-sampling-gradients": ImportanceSampling(200, estimator="gradients"),
}


@pytest.mark.parametrize("persistent", [False, True])
def test_standard_error_of_sgld_with_a_control_variate_is_the_spread(
    persistent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = SGLD(20, step_sizes=LangevinSteps(9.0), persistent=persistent, control_variate=True)

    def ratio() -> float:
        draws = draw(kernel, True, mild_network)
        return float(np.sqrt(np.mean(draws.standard_error**2))) / spread(draws)

    # Gradients are nearly linear functions of the chain.
    assert 0.8 < ratio() < 1.3
    # As if they were independent, which a chain's are not.
    monkeypatch.setattr(
        "lerh_tf.kernels.sgld.share_of_spread", lambda eps, s, c, *_: tf.reduce_sum(c**2)
    )
    assert not 0.8 < ratio() < 1.3


@pytest.mark.parametrize("name", HONEST)
def test_standard_error_is_the_spread_over_repetitions(name: str) -> None:
    # SGLD's is stated for a flat f.
    draws = draw(HONEST[name], True, flat_network if name.startswith("sgld") else network)
    error = float(np.sqrt(np.mean(draws.standard_error**2)))
    np.testing.assert_allclose(error, spread(draws), rtol=0.05)


def test_standard_error_counts_repeated_rows_of_an_embedding_once() -> None:
    indices = tf.constant([5, 1, 5, 5])
    kernel = SGLD(6, step_sizes=LangevinSteps(2.0), persistent=False)

    @tf.function(autograph=False)
    def errors() -> Any:
        table = [tf.zeros([9, 2])]
        objective = ReplayedLoss.of_function(
            lambda w: tf.reduce_sum(tf.gather(w[0], indices) ** 2), table
        )
        subspace = find_subspace(objective, [table[0].shape])
        assert subspace is not None

        def noise_for(tensors: Any) -> Noise:
            return PhiloxNoise(0, tf.constant(0, tf.int64), tensors)

        tau = tf.constant(TAU)
        plain = kernel(objective, table, tau, noise_for(table))
        reduced = estimate_in_subspace(kernel, subspace, table, tau, noise_for)
        return [found.diagnostics["standard_error"] for found in (plain, reduced)]

    plain, reduced = (float(error) for error in errors())
    assert reduced == pytest.approx(plain)
