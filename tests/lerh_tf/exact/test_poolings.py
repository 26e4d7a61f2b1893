"""Poolings as slices; those of Keras's layers stand in `test_convolutions.py`."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import ImportanceSampling, LocalEntropy
from lerh_tf.exact.convolutions import with_products
from lerh_tf.exact.poolings import RULES
from lerh_tf.loss.replayed import ReplayedLoss

POOLINGS = set(RULES)


def _images(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal((3, *shape))


def test_poolings_stay_where_nothing_is_compiled() -> None:
    def loss(w: Any) -> tf.Tensor:
        return tf.reduce_sum(tf.nn.max_pool2d(w[0], 2, 2, "VALID"))

    with tf.Graph().as_default():
        weights = [tf.constant(_images((4, 4, 1)))]
        objective = ReplayedLoss.of_function(loss, weights)
        assert "MaxPool" not in {n.op for n in with_products(objective, weights).piece.node}
        objective.jit_compile = False
        assert "MaxPool" in {n.op for n in with_products(objective, weights).piece.node}


def test_of_equal_entries_the_first_gets_the_gradient() -> None:
    # As TensorFlow's pooling has it; the gradient of a maximum over axes would be shared.
    x = np.array([[0.0, 1.0, 2.0, 2.0], [1.0, 0.0, 2.0, 2.0]]).reshape(1, 2, 4, 1)
    weights = [tf.constant(np.ones((2, 4, 1)))]

    @tf.function(autograph=False)
    def run() -> Any:
        plain = ReplayedLoss.of_function(
            lambda w: tf.reduce_sum(tf.nn.max_pool2d(x * w[0], 2, 2, "VALID") ** 2), weights
        )
        return plain.gradient(weights), with_products(plain, weights).gradient(weights)

    (expected,), (found,) = run()
    np.testing.assert_array_equal(found, expected)
    assert np.count_nonzero(found) == 2


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("pool", [tf.nn.max_pool3d, tf.nn.avg_pool3d])
def test_poolings_of_volumes(pool: Callable[..., tf.Tensor], padding: str) -> None:
    # Of volumes TensorFlow pools no float64.
    weights = [tf.constant(_images((4, 5, 4, 2)), tf.float32)]

    @tf.function(autograph=False)
    def run() -> Any:
        plain = ReplayedLoss.of_function(
            lambda w: tf.reduce_sum(pool(w[0], (2, 2, 1), (2, 1, 1), padding) ** 2), weights
        )
        products = with_products(plain, weights)
        assert not {node.op for node in products.piece.node} & POOLINGS
        return plain.value_and_gradient(weights), products.value_and_gradient(weights)

    expected, found = run()
    tf.nest.map_structure(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), found, expected
    )


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_images_of_unknown_size_train(padding: str) -> None:
    model = keras.Sequential(
        [
            keras.Input((None, None, 1)),
            layers.Conv2D(2, 2),
            layers.MaxPooling2D(2, padding=padding),
            layers.AveragePooling2D(2, padding=padding),
            layers.GlobalMaxPooling2D(),
        ]
    )
    sampler = ImportanceSampling(2, estimator="gradients")
    model.compile(LocalEntropy(0.01, sampler, seed=0), "mse", jit_compile=False)
    spec = (tf.TensorSpec([None, None, None, 1]), tf.TensorSpec([None, 2]))
    batch = (np.ones((3, 9, 8, 1), "float32"), np.zeros((3, 2), "float32"))
    data = tf.data.Dataset.from_generator(lambda: iter([batch]), output_signature=spec)
    before = model.get_weights()[0]
    model.fit(data.repeat(), steps_per_epoch=1, shuffle=False, verbose=0)
    assert (model.get_weights()[0] != before).any()


def test_integers_are_pooled_as_they_are() -> None:
    def loss(w: Any) -> tf.Tensor:
        counts = tf.cast(tf.round(8.0 * w[0]), tf.int32)
        return tf.reduce_sum(tf.cast(tf.nn.max_pool2d(counts, 2, 2, "VALID"), tf.float32))

    @tf.function(autograph=False)
    def run() -> Any:
        weights = [tf.constant(_images((4, 4, 1)), tf.float32)]
        plain = ReplayedLoss.of_function(loss, weights)
        return plain(weights), with_products(plain, weights)(weights)

    plain, found = run()
    assert plain == found


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_adds_up_in_single(dtype: tf.DType) -> None:
    def loss(w: Any) -> tf.Tensor:
        return tf.cast(tf.reduce_max(tf.nn.avg_pool2d(w[0], 16, 16, "VALID")), tf.float32)

    @tf.function(autograph=False)
    def run() -> Any:
        weights = [tf.fill([1, 16, 16, 1], tf.constant(400.0, dtype))]
        objective = with_products(ReplayedLoss.of_function(loss, weights), weights)
        assert not {node.op for node in objective.piece.node} & POOLINGS
        return objective(weights)

    assert run() == 400.0
