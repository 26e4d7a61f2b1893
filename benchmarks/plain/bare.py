"""Algorithms 3, 4 and 5 for the 784-200-10 network alone, written by hand: the plain yardstick.

No objective that is replayed, no blocks, no diagnostics, no check: what one would write in an
afternoon. All work on displacements from the weights x, as the library does.
"""

from collections.abc import Callable

import tensorflow as tf

from reproduce.protocols import (
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
)

Weights = list[tf.Tensor]
Batch = tuple[tf.Tensor, tf.Tensor]
Draw = Callable[[tf.Tensor, int], Weights]
"""From a position and a number of samples to standard normals of shape [samples, *shape]."""


def loss(weights: Weights, batch: Batch) -> tf.Tensor:
    """Returns the minibatch's mean cross-entropy; weights may have a leading axis of samples."""
    images, labels = batch
    w1, b1, w2, b2 = weights
    hidden = tf.nn.relu(tf.matmul(images, w1) + b1[..., None, :])
    logits = tf.matmul(hidden, w2) + b2[..., None, :]
    labels = tf.broadcast_to(labels, tf.shape(logits)[:-1])
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(each, axis=-1)


def stateless(shapes: list[tf.TensorShape], update: tf.Tensor) -> Draw:
    """Returns TensorFlow's own stateless noise, other draws at each weight update."""

    def draw(position: tf.Tensor, samples: int) -> Weights:
        return [
            tf.random.stateless_normal(
                [samples, *shape], tf.stack([update * len(shapes) + index, position])
            )
            for index, shape in enumerate(shapes)
        ]

    return draw


def sgld(
    x: Weights, start: Weights, batch: Batch, draw: Draw, method: LocalEntropyBySGLD
) -> tuple[Weights, Weights]:
    """Algorithm 3: returns the weighted mean and the chain's last state."""

    def move(
        j: tf.Tensor, y: Weights, total: Weights, weight: tf.Tensor
    ) -> tuple[tf.Tensor, Weights, Weights, tf.Tensor]:
        eps = 1.0 / (method.offset + tf.cast(j, tf.float32))
        with tf.GradientTape() as tape:
            tape.watch(y)
            value = loss([x_v + y_v for x_v, y_v in zip(x, y, strict=True)], batch)
        gradient = tape.gradient(value, y)
        total = [t + eps * y_v for t, y_v in zip(total, y, strict=True)]
        y = [
            y_v - eps / 2.0 * (g + y_v / method.tau) + tf.sqrt(eps) * z[0]
            for y_v, g, z in zip(y, gradient, draw(j, 1), strict=True)
        ]
        return j + 1, y, total, weight + eps

    zeros = [tf.zeros_like(x_v) for x_v in x]
    j, y, total, weight = tf.while_loop(
        lambda j, *_: j < method.samples,
        move,
        (tf.constant(1), start, zeros, tf.constant(0.0)),
        parallel_iterations=1,
    )
    eps = 1.0 / (method.offset + tf.cast(j, tf.float32))
    mean = [(t + eps * y_v) / (weight + eps) for t, y_v in zip(total, y, strict=True)]
    return mean, y


def importance(
    x: Weights, batch: Batch, draw: Draw, method: LocalEntropyByImportanceSampling, chunk: int
) -> Weights:
    """Algorithm 4: returns the weighted mean; `chunk` divides the number of samples."""

    def add(
        position: tf.Tensor, largest: tf.Tensor, weight: tf.Tensor, total: Weights
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, Weights]:
        z = draw(position, chunk)
        points = [x_v + method.tau**0.5 * z_v for x_v, z_v in zip(x, z, strict=True)]
        log_w = -method.loss_multiplier * loss(points, batch)
        new = tf.maximum(largest, tf.reduce_max(log_w))
        w, rescale = tf.exp(log_w - new), tf.exp(largest - new)
        total = [rescale * t + tf.tensordot(w, z_v, 1) for t, z_v in zip(total, z, strict=True)]
        return position + 1, new, rescale * weight + tf.reduce_sum(w), total

    zeros = [tf.zeros_like(x_v) for x_v in x]
    _, _, weight, total = tf.while_loop(
        lambda position, *_: position < method.samples // chunk,
        add,
        (tf.constant(0), tf.constant(-float("inf")), tf.constant(0.0), zeros),
        parallel_iterations=1,
    )
    return [method.tau**0.5 * t / weight for t in total]


def robbins_monro(
    x: Weights, batch: Batch, draw: Draw, method: HeatRegularizationByRobbinsMonro
) -> Weights:
    """Algorithm 5 with decaying steps: returns the last state."""

    def move(j: tf.Tensor, y: Weights) -> tuple[tf.Tensor, Weights]:
        a = method.c * tf.cast(j, tf.float32) ** -method.alpha
        noise = [method.tau**0.5 * z for z in draw(j, method.samples)]
        with tf.GradientTape() as tape:
            tape.watch(y)
            points = [x_v + y_v + n for x_v, y_v, n in zip(x, y, noise, strict=True)]
            value = tf.reduce_mean(loss(points, batch))
        gradient = tape.gradient(value, y)
        y = [y_v - a * (y_v + method.tau * g) for y_v, g in zip(y, gradient, strict=True)]
        return j + 1, y

    zeros = [tf.zeros_like(x_v) for x_v in x]
    _, y = tf.while_loop(
        lambda j, _: j <= method.steps, move, (tf.constant(1), zeros), parallel_iterations=1
    )
    return y
