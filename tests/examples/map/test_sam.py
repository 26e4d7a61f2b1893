"""SAM's step, against one by hand."""

from collections.abc import Sequence

import keras
import numpy as np
import pytest
import tensorflow as tf

from examples.map.sam import SAM
from lerh_tf import LocalEntropy, estimate

A = np.array([4.0, 1.0])
X = np.array([0.3, -1.0])
RHO = 0.5


def f(weights: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns sum a v^2 / 2, with its two entries in two variables."""
    return sum(a * tf.reduce_sum(w**2) / 2.0 for a, w in zip(A, weights, strict=True))


def by_hand() -> np.ndarray:
    """Returns grad f(x + rho g / |g|), with one norm for both variables."""
    uphill = A * X
    return A * (X + RHO * uphill / np.linalg.norm(uphill))


def test_the_gradient_is_that_uphill() -> None:
    found = estimate(SAM(RHO), f, [X[:1], X[1:]], tau=0.1)
    gradient = (X - np.concatenate(found.mean)) / 0.1
    np.testing.assert_allclose(gradient, by_hand(), rtol=1e-12)
    # A norm of its own for each variable is another step.
    assert not np.allclose(gradient, A * (X + RHO * np.sign(X)), rtol=0.01)


def test_the_inner_optimizer_gets_it_whatever_tau_is() -> None:
    for tau in (0.01, 1.0):
        variables = [tf.Variable(X[:1]), tf.Variable(X[1:])]
        inner = keras.optimizers.SGD(0.1)
        optimizer = LocalEntropy(tau, SAM(RHO), optimizer=inner)
        optimizer.step(lambda: f(variables), variables)  # noqa: B023
        np.testing.assert_allclose(
            np.concatenate([v.numpy() for v in variables]), X - 0.1 * by_hand(), rtol=1e-6
        )


def test_where_the_gradient_is_zero_it_stays() -> None:
    found = estimate(SAM(RHO), f, [np.zeros(1), np.zeros(1)], tau=0.1)
    assert found.is_valid
    assert np.concatenate(found.mean) == pytest.approx(0.0)
