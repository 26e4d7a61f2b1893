"""`estimate`: kernels on plain functions of tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, Kernel, LossFunction, RobbinsMonro, estimate, sample
from lerh_tf.noise import PhiloxNoise
from lerh_tf.oracles import Landscape

TAU = 0.4
X = np.array([0.8, 0.3])
# Standard errors that an estimate may be off.
ERRORS = 3.0


def f(weights: Sequence[tf.Tensor]) -> tf.Tensor:
    """A function of two weights of different shapes, whose mean and mode differ."""
    u, v = weights[0][0], weights[1][0, 0]
    return 2.0 * (u**2 - 1.0) ** 2 + u + tf.sin(2.0 * v) * u


def weights() -> list[Any]:
    return [X[:1], X[1:, None]]


def test_mean_is_that_of_quadrature() -> None:
    def same(v: Any) -> Any:
        u, v = v[..., 0], v[..., 1]
        return 2.0 * (u**2 - 1.0) ** 2 + u + np.sin(2.0 * v) * u

    m = Landscape(same, TAU).mean(X).value
    found = estimate(ImportanceSampling(20_000), f, weights(), tau=TAU, seed=1)
    error = found.diagnostics["standard_error"]
    assert found.is_valid
    assert [w.shape for w in found.mean] == [(1,), (1, 1)]
    assert np.linalg.norm(np.concatenate([np.ravel(w) for w in found.mean]) - m) < ERRORS * error
    assert np.linalg.norm(X - m) > 5 * ERRORS * error


@pytest.mark.parametrize(
    "kernel", [SGLD(6), ImportanceSampling(6), RobbinsMonro(3, 2)], ids=lambda k: type(k).__name__
)
def test_it_is_the_kernel_by_itself(kernel: Kernel) -> None:
    anchor = [tf.constant(w) for w in weights()]
    noise = PhiloxNoise(3, tf.constant(0, tf.int64), anchor)
    tau = tf.constant(TAU, tf.float64)
    chain = anchor if kernel.has_chain else []

    @tf.function(autograph=False)
    def alone() -> list[tf.Tensor]:
        return kernel(LossFunction(f, 2), anchor, tau, noise, chain).displacement

    found = estimate(kernel, LossFunction(f, 2), weights(), tau=TAU, seed=3)
    for m, x, d in zip(found.mean, anchor, alone(), strict=True):
        np.testing.assert_allclose(m, x + d, rtol=1e-12)
    assert found.diagnostics.keys() == set(kernel.diagnostic_names)
    other = estimate(kernel, f, weights(), tau=TAU)
    assert not np.isclose(other.mean[0], found.mean[0])


def test_nothing_finite_is_not_valid() -> None:
    found = estimate(
        ImportanceSampling(5), lambda w: tf.reduce_sum(w[0]) / 0.0, [tf.ones([2])], tau=1.0
    )
    assert not found.is_valid
    np.testing.assert_array_equal(found.mean[0], [1.0, 1.0])
    assert found.mean[0].dtype == tf.float32


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"kernel": "sgld"},
            TypeError,
            r"`kernel` must be an instance of a `lerh_tf\.Kernel`.*kernel='sgld'",
        ),
        ({"f": 3.0}, TypeError, r"`f` must be a function .* Received: f=3\.0"),
        ({"weights": np.zeros(3)}, TypeError, r"`weights` must be a list, one array for each"),
        ({"weights": []}, ValueError, r"`weights` must hold at least one array.* Received: \[\]"),
        ({"weights": [np.arange(2)]}, ValueError, r"floating dtypes\. Received: \['int64'\]"),
        ({"f": LossFunction(f, 1)}, ValueError, "Received: 2, where the objective has 1"),
        ({"tau": 0.0}, ValueError, r"`tau` must be positive and finite\. Received: tau=0\.0"),
        ({"seed": -1}, ValueError, r"`seed` must be .* Received: seed=-1"),
    ],
)
def test_arguments_are_checked(changed: dict[str, Any], error: Any, message: str) -> None:
    arguments = {"kernel": SGLD(2), "f": f, "weights": weights(), "tau": TAU, **changed}
    with pytest.raises(error, match=message):
        estimate(**arguments)


def test_tau_that_the_kernel_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^`tau` must be so large that SGLD's chain stays near x"):
        estimate(SGLD(100), lambda weights: tf.reduce_sum(weights[0]), [np.zeros(3)], tau=1e-5)


ARRAY: Any = np.array(TAU)


@pytest.mark.parametrize("kernel", [ImportanceSampling(7), SGLD(5)])
def test_sample_has_the_mean_that_is_estimated(kernel: Any) -> None:
    x = weights()
    drawn = sample(kernel, f, x, tau=TAU, seed=3)
    assert float(tf.reduce_sum(drawn.weights)) == pytest.approx(1.0)
    found = estimate(kernel, f, x, tau=ARRAY, seed=3)
    for positions, mean in zip(drawn.positions, found.mean, strict=True):
        averaged = np.tensordot(drawn.weights.numpy(), positions.numpy(), 1)
        np.testing.assert_allclose(averaged, mean.numpy(), rtol=1e-5, atol=1e-6)


def test_a_solver_has_no_sample() -> None:
    solver: Any = RobbinsMonro(2, 2)
    with pytest.raises(TypeError, match=r"^`kernel` must be a sampler, .*Received: kernel=Robbins"):
        sample(solver, f, weights(), tau=TAU)


@pytest.mark.parametrize("kernel", [ImportanceSampling(3), SGLD(3), RobbinsMonro(2, 2)])
def test_loss_must_be_a_scalar(kernel: Kernel) -> None:
    with pytest.raises(
        ValueError,
        match=r"^The loss must be a scalar: take the mean .*`tf\.reduce_mean\(loss\)`\. Received",
    ):
        estimate(kernel, lambda weights: weights[0] ** 2, [np.ones(3)], tau=TAU)
