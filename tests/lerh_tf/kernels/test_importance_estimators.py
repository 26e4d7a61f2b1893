"""Algorithm 4 with a control variate and with gradients, against NumPy on the same noise."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import logsumexp

from lerh_tf import ImportanceSampling
from lerh_tf.replicas import Replicas
from tests.lerh_tf._kernels import Array, ArrayNoise, estimate, flat
from tests.lerh_tf.kernels.test_importance import BLOCK, TAU, draw, np_loss, tf_loss

pytestmark = pytest.mark.usefixtures("plain_loops")


def np_gradients(a: Array, b: Array) -> list[Array]:
    """The gradients of `np_loss` at many weights at once."""
    steep, total = np.exp(a[:, 0] - b[:, 1, 0]), 2.0 * a.sum(1)
    of_a, of_b = np.stack([steep + total, total, total], 1), np.zeros_like(b)
    of_b[:, 0], of_b[:, 1, 0] = 2.0 * np.cos(2.0 * b[:, 0]), -steep
    return [of_a, of_b]


def np_estimator(
    estimator: str, x: Sequence[Array], z: Sequence[Array], factor: float, finite: Any = True
) -> tuple[Array, float]:
    """The displacement of the control variate or of gradients, and its standard error."""
    positions = [
        np.float64(x_v) + np.sqrt(TAU) * np.float64(z_v) for x_v, z_v in zip(x, z, strict=True)
    ]
    log_w = np.where(finite, -factor * np_loss(*positions), -np.inf)
    v = np.exp(log_w - logsumexp(log_w))
    rows = [z_v.reshape(len(z_v), -1).astype("float64") for z_v in z]
    if estimator == "gradients":
        rows = [g.reshape(len(g), -1) for g in np_gradients(*positions)]
    values = np.concatenate(rows, 1)
    J = len(values)
    mean = v @ values
    cubes, squares = np.sum(v**3), np.sum(v**2)
    missed = 2.0 * cubes - squares**2
    if estimator == "gradients":
        values = values[np.broadcast_to(finite, J)]
        v = v[np.broadcast_to(finite, J)]
        delta = np.sum(v**2 * np.sum((values - mean) ** 2, 1))
        variance = delta + missed * values.var(0, ddof=1).sum()
        return -factor * TAU * mean, factor * TAU * np.sqrt(variance)
    a = v - 1.0 / J
    terms = a[:, None] * values
    moved = terms.sum(0)
    missed = np.sum(a**2) / J + 2.0 * np.sum(a**3) - np.sum(a**2) ** 2
    variance = np.sum((terms - v[:, None] * moved) ** 2) + values.shape[1] * missed
    return np.sqrt(TAU) * moved, np.sqrt(TAU * variance)


ESTIMATORS: dict[str, dict[str, Any]] = {
    "control variate": {"control_variate": True},
    "gradients": {"estimator": "gradients"},
}


@pytest.mark.parametrize("samples", [20, BLOCK + 1, 2 * BLOCK + 452])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_agree_with_numpy(name: str, samples: int) -> None:
    x, z = draw(samples, "float64")
    kernel = ImportanceSampling(samples, **ESTIMATORS[name], loss_multiplier=0.7)
    found = estimate(kernel, tf_loss, x, TAU, ArrayNoise(z, is_spread=True))
    displacement, error = np_estimator(name, x, z, 0.7)
    np.testing.assert_allclose(flat(found.displacement), displacement, rtol=1e-10, atol=1e-14)
    assert found.diagnostics["standard_error"] == pytest.approx(error, rel=1e-9)
    paper = ImportanceSampling(samples, loss_multiplier=0.7)
    plain = estimate(paper, tf_loss, x, TAU, ArrayNoise(z))
    for shared in ("effective_sample_size", "local_entropy", "non_finite"):
        assert found.diagnostics[shared] == pytest.approx(plain.diagnostics[shared], rel=1e-12)


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_samples_without_a_finite_loss_or_gradient_have_no_part_in_gradients(what: str) -> None:
    x, z = draw(20, "float64")
    a = x[0][0] + np.sqrt(TAU) * z[0][:, 0]
    bound = np.median(a)

    def loss(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        wall = tf.where(a[0] > bound, tf.constant(np.inf, a.dtype), 0.0)
        # 0 beyond the bound, where its gradient is NaN.
        root = 1e-30 * tf.sqrt(tf.nn.relu(bound - a[0]))
        return tf_loss(a, b) + (wall if what == "loss" else root)

    kernel = ImportanceSampling(20, estimator="gradients")
    found = estimate(kernel, loss, x, TAU, ArrayNoise(z))
    displacement, error = np_estimator("gradients", x, z, 1.0, a <= bound)
    np.testing.assert_allclose(flat(found.displacement), displacement, rtol=1e-10)
    assert found.diagnostics["standard_error"] == pytest.approx(error, rel=1e-9)
    assert found.diagnostics["non_finite"] == np.sum(a > bound)


class Alike(Replicas):
    """Two that hold the same rows."""

    def total(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return [each + each for each in tensors]

    def static_total(self, number: int | None) -> int | None:
        return number


def test_what_fills_up_the_last_block_has_no_part_in_gradients_of_parts() -> None:
    x, z = draw(BLOCK + 1, "float64")
    filling = x[0][0] + 0.5 * np.sqrt(TAU)

    def loss(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        # 0 where the filling is, and its gradient NaN.
        return tf_loss(a, b) + 1e-30 * tf.sqrt(tf.nn.relu((a[0] - filling) ** 2 - 1e-20))

    kernel = ImportanceSampling(BLOCK + 1, estimator="gradients")
    noise = ArrayNoise(z, is_spread=True)
    expected = estimate(kernel, tf_loss, x, TAU, noise)
    of_parts = functools.partial(kernel, replicas=Alike(2, "batch"))
    found = estimate(of_parts, loss, x, TAU, noise)
    np.testing.assert_allclose(flat(found.displacement), flat(expected.displacement), rtol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": "median"}, '`estimator` must be one of "positions", "gradients"'),
        ({"estimator": "gradients", "control_variate": True}, "`control_variate` must be False"),
        ({"samples": 1, "control_variate": True}, "`samples` must be at least 2 with"),
    ],
)
def test_estimators_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImportanceSampling(**arguments)


def test_gradients_that_are_nowhere_finite_are_no_estimate() -> None:
    x, z = draw(20, "float64")
    kernel = ImportanceSampling(20, estimator="gradients")
    found = estimate(kernel, lambda a, b: tf_loss(a, b) * np.inf, x, TAU, ArrayNoise(z))
    assert not found.is_valid
    np.testing.assert_array_equal(flat(found.displacement), 0.0)
    assert found.diagnostics["standard_error"] == 0.0
    assert found.diagnostics["non_finite"] == 20.0


def test_a_single_gradient_says_nothing_of_its_noise() -> None:
    x, z = draw(1, "float64")
    kernel = ImportanceSampling(1, estimator="gradients")
    found = estimate(kernel, tf_loss, x, TAU, ArrayNoise(z))
    assert found.diagnostics["standard_error"] == np.inf


def test_gradients_need_a_loss_that_has_one() -> None:
    x, z = draw(20, "float64")
    with pytest.raises(ValueError, match="no gradient with respect to any weight"):
        estimate(
            ImportanceSampling(20, estimator="gradients"),
            lambda a, b: tf.reduce_sum(tf.round(a)) + tf.reduce_sum(tf.round(b)),
            x,
            TAU,
            ArrayNoise(z),
        )
