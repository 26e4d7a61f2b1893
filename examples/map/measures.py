"""What a trained classifier is like: its calibration, and how flat its loss is."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from scipy.special import log_softmax

Array = npt.NDArray[Any]

BINS = 15
"""Of the expected calibration error."""


class Calibration(NamedTuple):
    """How far predicted probabilities can be believed.

    Attributes:
        accuracy: Share of examples whose label has the largest logit.
        nll: Mean negative log-likelihood of the labels.
        ece: Expected calibration error.
    """

    accuracy: float
    nll: float
    ece: float


def calibration(logits: Array, labels: Array) -> Calibration:
    """Returns accuracy, negative log-likelihood and expected calibration error.

    The examples are put into 15 bins of equal width by their confidence, the largest probability;
    the error is the mean over examples of |accuracy - mean confidence| of their bin. Where a logit
    is not finite both measures of the probabilities are NaN, and the accuracy is what it is.

    Args:
        logits: Shape (examples, classes).
        labels: Integers, shape (examples,).

    References:
        Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks,
        equation (3).
    """
    is_right = logits.argmax(1) == labels
    accuracy = float(is_right.mean())
    if not np.isfinite(logits).all():
        return Calibration(accuracy, math.nan, math.nan)
    log_p = log_softmax(logits.astype(np.float64), axis=1)
    confidence = np.exp(log_p.max(1))
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    # Per bin the sum of what is right less what is believed: sizes cancel against the weights.
    differences = np.bincount(bins, weights=is_right - confidence, minlength=BINS)
    return Calibration(
        accuracy=accuracy,
        nll=float(-log_p[np.arange(len(labels)), labels].mean()),
        ece=float(np.abs(differences).sum() / len(labels)),
    )


class Trace(NamedTuple):
    """An estimate of a trace.

    Attributes:
        value: The mean over probes.
        standard_error: Of the mean.
    """

    value: float
    standard_error: float


def hessian_trace(
    loss: Callable[[], tf.Tensor], weights: Sequence[Any], probes: int, seed: int
) -> Trace:
    """Estimates the trace of the Hessian: the mean of v . H v over signs v.

    Args:
        loss: Computes the scalar loss from the variables as they are.
        weights: The variables.
        probes: Number of v, at least 2.
        seed: Of the v.

    References:
        Hutchinson (1990), A stochastic estimator of the trace of the influence matrix for
        Laplacian smoothing splines.
    """

    @tf.function(autograph=False)
    def curvature(v: list[tf.Tensor]) -> tf.Tensor:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                value = loss()
            gradient = inner.gradient(value, weights)
        product = outer.gradient(gradient, weights, output_gradients=v)
        pairs = [(p, u) for p, u in zip(product, v, strict=True) if p is not None]
        return tf.add_n([tf.reduce_sum(p * u) for p, u in pairs])

    draws = np.random.default_rng(seed)
    shapes = [tuple(w.shape) for w in weights]
    found = [
        float(curvature([tf.constant(draws.choice([-1.0, 1.0], s), tf.float32) for s in shapes]))
        for _ in range(probes)
    ]
    return Trace(float(np.mean(found)), float(np.std(found, ddof=1)) / math.sqrt(probes))


def model_trace(model: keras.Model, x: Array, y: Array, probes: int, seed: int) -> Trace:
    """Returns the trace of the Hessian of a compiled model's loss on some data."""
    inputs, labels = tf.constant(x), tf.constant(y)
    weights = [variable.value for variable in model.trainable_variables]
    return hessian_trace(
        lambda: model.compute_loss(inputs, labels, model(inputs, training=False)),
        weights,
        probes,
        seed,
    )
