"""Algorithms 3 and 5 as one would write them in TensorFlow: `tf.while_loop`, noise in the loop."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.work import Work

Weights = list[tf.Tensor]
Step = Callable[[Weights, Weights], tuple[Weights, Weights]]
Normal = Callable[[tf.Tensor | tuple[int, ...]], tf.Tensor]


def sgld(problem: Problem, work: Work, seed: int) -> "Loop":
    """Returns the Langevin chain."""
    tf.random.set_seed(seed)
    return Loop(problem, _sgld(problem, work, tf.random.normal), chained=True)


def heat(problem: Problem, work: Work, seed: int) -> "Loop":
    """Returns Robbins-Monro."""
    tf.random.set_seed(seed)
    return Loop(problem, _heat(problem, work, tf.random.normal), chained=False)


def noiseless_sgld(problem: Problem, work: Work) -> "Loop":
    """Returns the Langevin chain without noise."""
    return Loop(problem, _sgld(problem, work, tf.zeros), chained=True)


def noiseless_heat(problem: Problem, work: Work) -> "Loop":
    """Returns Robbins-Monro without noise."""
    return Loop(problem, _heat(problem, work, tf.zeros), chained=False)


class Loop:
    """Weights and chain as variables, moved by one `tf.function`.

    Args:
        problem: weights and minibatch.
        step: takes (x, start of the chain) to (m, end of the chain).
        chained: whether there is a chain.
    """

    def __init__(self, problem: Problem, step: Step, *, chained: bool):
        self._first = problem.weights
        self._x = [tf.Variable(w) for w in problem.weights]
        self._chain = [tf.Variable(w) for w in problem.weights] if chained else []

        def update() -> None:
            x, chain = step(_values(self._x), _values(self._chain))
            for variable, value in zip([*self._x, *self._chain], [*x, *chain], strict=True):
                variable.assign(value)

        self._update = tf.function(update, autograph=False)

    def update(self) -> None:
        """See `System`."""
        self._update()
        self._x[0].numpy()

    def weights(self) -> Sequence[Array]:
        """See `System`."""
        return [x.numpy() for x in self._x]

    def chain(self) -> Sequence[Array]:
        """See `System`."""
        return [y.numpy() for y in self._chain]

    def restart(self) -> None:
        """See `System`."""
        for variable, value in zip([*self._x, *self._chain], self._first * 2, strict=False):
            variable.assign(value)


def _sgld(problem: Problem, work: Work, normal: Normal) -> Step:
    eps = tf.constant(work.langevin_steps, tf.float32)
    loss = _loss(problem)

    def step(x: Weights, chain: Weights) -> tuple[Weights, Weights]:
        def move(j: tf.Tensor, total: Weights, y: Weights) -> tuple[tf.Tensor, Weights, Weights]:
            position = _sum(x, y)
            with tf.GradientTape() as tape:
                tape.watch(position)
                value = loss(position)
            total = [t + eps[j] * y_v for t, y_v in zip(total, y, strict=True)]
            y = [
                y_v - eps[j] / 2 * (g + y_v / work.tau) + tf.sqrt(eps[j]) * normal(y_v.shape)
                for y_v, g in zip(y, tape.gradient(value, position), strict=True)
            ]
            return j + 1, total, y

        y = [p - x_v for p, x_v in zip(chain, x, strict=True)]
        zeros = [tf.zeros_like(x_v) for x_v in x]
        _, total, y = tf.while_loop(
            lambda j, *_: j < work.samples - 1,
            move,
            (tf.constant(0), zeros, y),
            parallel_iterations=1,
        )
        weight = tf.reduce_sum(eps)
        mean = [(t + eps[-1] * y_v) / weight for t, y_v in zip(total, y, strict=True)]
        return _sum(x, mean), _sum(x, y)

    return step


def _heat(problem: Problem, work: Work, normal: Normal) -> Step:
    a = tf.constant(work.step_sizes, tf.float32)
    loss = _mean_loss(problem, np.sqrt(work.tau))

    def step(x: Weights, chain: Weights) -> tuple[Weights, Weights]:
        def move(j: tf.Tensor, y: Weights) -> tuple[tf.Tensor, Weights]:
            position = _sum(x, y)
            z = [normal((work.samples, *x_v.shape)) for x_v in x]
            with tf.GradientTape() as tape:
                tape.watch(position)
                value = loss(position, z)
            gradient = tape.gradient(value, position)
            return j + 1, [
                y_v - a[j] * (y_v + work.tau * g) for y_v, g in zip(y, gradient, strict=True)
            ]

        zeros = [tf.zeros_like(x_v) for x_v in x]
        _, y = tf.while_loop(
            lambda j, _: j < work.steps, move, (tf.constant(0), zeros), parallel_iterations=1
        )
        return _sum(x, y), chain

    return step


def _loss(problem: Problem) -> Callable[[Weights], tf.Tensor]:
    images, labels = tf.constant(problem.images), tf.constant(problem.labels)

    def loss(weights: Weights) -> tf.Tensor:
        hidden = tf.nn.relu(images @ weights[0] + weights[1])
        logits = hidden @ weights[2] + weights[3]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    return loss


def _mean_loss(problem: Problem, deviation: float) -> Callable[[Weights, Weights], tf.Tensor]:
    """Returns (x, z) -> the mean loss over the weights x + deviation z, z of shape [M, ...].

    Products with x and z apart save a pass over M copies of the weights, and the gradient in x
    is summed over the samples before it meets the images.
    """
    images, labels = tf.constant(problem.images), tf.constant(problem.labels)

    def loss(x: Weights, z: Weights) -> tf.Tensor:
        biases = [deviation * z_v[:, None] for z_v in z[1::2]]
        hidden = tf.nn.relu(images @ x[0] + x[1] + deviation * (images @ z[0]) + biases[0])
        logits = hidden @ (x[2] + deviation * z[2]) + x[3] + biases[1]
        targets = tf.broadcast_to(labels, tf.shape(logits)[:-1])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits))

    return loss


def _values(variables: Sequence[tf.Variable]) -> Weights:
    return [variable.read_value() for variable in variables]


def _sum(left: Weights, right: Weights) -> Weights:
    return [a + b for a, b in zip(left, right, strict=True)]
