"""What an update in the minibatch's subspace takes at least: its noise and its products."""

import math
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.peers.problem import Problem
from benchmarks.peers.work import Work
from lerh_tf import PhiloxNoise
from lerh_tf.noise import block_size

_WIDTH = 512
"""Of the square matrices whose product gives the rate: wide enough to keep every core busy."""


def floor(problem: Problem, work: Work) -> Callable[[], dict[str, float]]:
    """Returns what measures the floor, once traced and warm.

    The noise of all samples is drawn as the library draws it, in whole blocks, and thrown away.
    The products are those of the network's layers, and of its gradient for algorithms that take
    one, at the rate of one large product; all else is free.

    Args:
        problem: weights and minibatch.
        work: the update.

    Returns:
        A function that returns the seconds for `noise` and for `products`.
    """
    shapes = _coordinates(problem)
    draws = evaluations(work)
    draw = _drawing(shapes, draws)
    matrix = tf.random.stateless_normal([_WIDTH, _WIDTH], [0, 0])
    product = tf.function(lambda: tf.reduce_sum(matrix @ matrix), autograph=False)
    flops = draws * operations(problem, gradient=work.algorithm != "is")

    def measure() -> dict[str, float]:
        seconds = _timed(product)
        return {"noise": _timed(draw), "products": flops * seconds / (2 * _WIDTH**3)}

    measure()
    return measure


def evaluations(work: Work) -> int:
    """Returns how many samples an update draws, and at how many it evaluates the loss."""
    match work.algorithm:
        case "sgld":
            return work.samples - 1
        case "hr":
            return work.samples * work.steps
        case _:
            return work.samples


def operations(problem: Problem, *, gradient: bool) -> int:
    """Returns the additions and multiplications of one evaluation's products in the subspace."""
    batch = len(problem.images)
    (rank, hidden), _, (_, classes), _ = _coordinates(problem)
    first, second = 2 * batch * rank * hidden, 2 * batch * hidden * classes
    # The gradient by each kernel is one more product, and that by the hidden layer another.
    return first + second + (first + 2 * second if gradient else 0)


def _coordinates(problem: Problem) -> list[tuple[int, ...]]:
    """Returns the shapes that an update samples, the input layer's kernel reduced."""
    (pixels, hidden), *others = (w.shape for w in problem.weights)
    return [(min(len(problem.images), pixels), hidden), *others]


def _drawing(shapes: list[tuple[int, ...]], draws: int) -> Callable[[], Any]:
    like = [tf.zeros(shape) for shape in shapes]
    size = min(int(block_size(like)), draws)
    blocks = math.ceil(draws / size)
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), like)

    def draw() -> tf.Tensor:
        def body(block: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            firsts = [tf.reshape(z, [-1])[0] for z in noise(block, size)]
            return block + 1, total + tf.add_n(firsts)

        zero = tf.zeros([], tf.int64), tf.zeros([])
        return tf.while_loop(lambda b, _: b < blocks, body, zero, parallel_iterations=1)[1]

    return tf.function(draw, autograph=False)


def _timed(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function().numpy()
    return time.perf_counter() - started
