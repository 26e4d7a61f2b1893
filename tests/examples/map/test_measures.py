"""Calibration by hand, and the Hessian's trace against the whole Hessian."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

from examples.map.measures import calibration, hessian_trace, model_trace


def test_calibration_by_hand() -> None:
    # Confidences 0.9, 0.9 and 0.6 of class 0; the second of the first bin is wrong.
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
    found = calibration(np.log(p) + 3.0, np.array([0, 1, 0]))
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.nll == pytest.approx(-np.log([0.9, 0.1, 0.6]).mean())
    assert found.ece == pytest.approx((2 * abs(0.5 - 0.9) + abs(1.0 - 0.6)) / 3)


def test_errors_of_two_bins_do_not_cancel() -> None:
    p = np.array([[0.9, 0.1], [0.6, 0.4]])
    found = calibration(np.log(p), np.array([1, 0]))
    assert found.ece == pytest.approx((0.9 + 0.4) / 2)


def test_certain_predictions_are_in_the_last_bin() -> None:
    found = calibration(np.array([[1000.0, 0.0]]), np.array([0]))
    assert found.ece == pytest.approx(0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_finite_leaves_the_accuracy(bad: float) -> None:
    logits = np.array([[0.0, bad], [2.0, 1.0], [0.0, 1.0]], np.float32)
    found = calibration(logits, np.array([1, 0, 0]))
    assert found.accuracy == pytest.approx((1 / 3, 2 / 3)[bad != -np.inf])
    assert np.isnan([found.nll, found.ece]).all()


def test_of_a_diagonal_hessian_every_probe_is_exact() -> None:
    a = np.array([3.0, -1.0, 0.5])
    w = tf.Variable(np.ones(3, np.float32))
    found = hessian_trace(lambda: tf.reduce_sum(a * tf.cast(w, tf.float64) ** 2) / 2.0, [w], 2, 0)
    assert found.value == pytest.approx(2.5, rel=1e-6)
    assert found.standard_error == pytest.approx(0.0, abs=1e-6)


def test_the_trace_of_softmax_regression_is_its_closed_form() -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 3)).astype("float32"), rng.integers(4, size=8)
    found = model_trace(model, x, y, 100, seed=0)
    p = softmax(np.asarray(model(x)), axis=1)
    # Of one example (diag p - p p^T) times (x, 1)(x, 1)^T.
    exact = ((p * (1.0 - p)).sum(1) * ((x**2).sum(1) + 1.0)).mean()
    assert abs(found.value - exact) < 3.0 * found.standard_error
    assert found.standard_error < 0.1 * exact
