"""The bare loops do the library's arithmetic: on its noise they move the weights alike."""

from collections.abc import Sequence
from itertools import pairwise

import keras
import numpy as np
import tensorflow as tf

from benchmarks.plain import bare
from lerh_tf.noise import PhiloxNoise, block_size
from reproduce import methods, networks
from reproduce.protocols import (
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)

SEED = 5
IMAGES = tf.random.stateless_uniform([20, networks.PIXELS], (1, 2))
LABELS = tf.range(20, dtype=tf.int64) % networks.CLASSES


def _library(method: Method, updates: int) -> tuple[bare.Weights, list[bare.Weights]]:
    """Returns the weights before and the displacement by each update."""
    model = networks.build("hidden_dense", "glorot_uniform", 0)
    optimizer = methods.optimizer(method, SEED, subspace=False)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def loss(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return cross_entropy(labels, model(images, training=True))

    positions = [[tf.identity(v) for v in model.trainable_variables]]
    for _ in range(updates):
        optimizer.step(loss, model.trainable_variables, IMAGES, LABELS)
        positions.append([tf.identity(v) for v in model.trainable_variables])
    moves = [
        [a - b for a, b in zip(after, before, strict=True)] for before, after in pairwise(positions)
    ]
    return positions[0], moves


def _noise(x: bare.Weights, update: int) -> tuple[PhiloxNoise, int]:
    return PhiloxNoise(SEED, tf.constant(update, tf.int64), x), int(block_size(x))


def _assert_close(ours: Sequence[tf.Tensor], theirs: Sequence[tf.Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        # The library's moves are known as differences of float32 positions.
        atol = 1e-8 + 1e-5 * np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def test_sgld_moves_as_the_library_does() -> None:
    method = LocalEntropyBySGLD(samples=9)
    x, moves = _library(method, updates=2)
    start = [tf.zeros_like(v) for v in x]
    for update, move in enumerate(moves):
        noise, size = _noise(x, update)

        def draw(
            j: tf.Tensor, samples: int, noise: PhiloxNoise = noise, size: int = size
        ) -> bare.Weights:
            position = j - 1
            return [z[position % size][None] for z in noise(position // size, size)]

        mean, last = bare.sgld(x, start, (IMAGES, LABELS), draw, method)
        _assert_close(mean, move)
        start = [y - m for y, m in zip(last, mean, strict=True)]
        x = [x_v + m for x_v, m in zip(x, mean, strict=True)]


def test_importance_moves_as_the_library_does() -> None:
    method = LocalEntropyByImportanceSampling(samples=12, loss_multiplier=20.0)
    x, (move,) = _library(method, updates=1)
    noise, size = _noise(x, 0)
    assert method.samples % size == 0
    mean = bare.importance(x, (IMAGES, LABELS), noise, method, size)
    _assert_close(mean, move)


def test_robbins_monro_moves_as_the_library_does() -> None:
    method = HeatRegularizationByRobbinsMonro(steps=3, samples=5)
    x, (move,) = _library(method, updates=1)
    noise, size = _noise(x, 0)
    assert method.samples <= size
    mean = bare.robbins_monro(x, (IMAGES, LABELS), lambda j, m: noise(j - 1, m), method)
    _assert_close(mean, move)


def test_stateless_noise_is_another_at_each_position_and_update() -> None:
    shapes = [tf.TensorShape([3]), tf.TensorShape([3])]
    draws = [
        tuple(np.ravel(z))
        for update in (1, 2)
        for position in (0, 1)
        for z in bare.stateless(shapes, tf.constant(update))(tf.constant(position), 1)
    ]
    assert len(set(draws)) == 8
