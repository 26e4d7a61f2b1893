"""Convolutions as products, poolings by comparisons: the same losses and gradients."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import lerh_tf
from lerh_tf.exact.convolutions import with_products
from lerh_tf.loss.objective import native
from lerh_tf.loss.replayed import ReplayedLoss

ROWS = 3
REWRITTEN = {
    "Conv2D",
    "Conv3D",
    "Conv2DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNative",
}

Layer = Callable[[], Any]
# Second layers, whose images depend on weights; by name, the image's shape and the layer.
LAYERS: dict[str, tuple[tuple[int, ...], Layer]] = {
    "Conv1D": ((7, 2), lambda: layers.Conv1D(3, 3)),
    "Conv1D causal, dilated": (
        (9, 2),
        lambda: layers.Conv1D(3, 3, padding="causal", dilation_rate=2),
    ),
    "Conv2D": ((6, 5, 2), lambda: layers.Conv2D(3, (3, 2))),
    "Conv2D same": ((6, 5, 2), lambda: layers.Conv2D(3, (2, 4), padding="same")),
    "Conv2D strided": ((7, 6, 2), lambda: layers.Conv2D(3, 3, strides=(2, 3))),
    "Conv2D same, strided": ((7, 6, 2), lambda: layers.Conv2D(3, (3, 4), 2, padding="same")),
    "Conv2D dilated": ((8, 9, 2), lambda: layers.Conv2D(3, 3, dilation_rate=(2, 3))),
    "Conv2D dilated, same": (
        (8, 9, 2),
        lambda: layers.Conv2D(3, 3, dilation_rate=2, padding="same"),
    ),
    "Conv2D one by one": ((4, 4, 3), lambda: layers.Conv2D(2, 1)),
    "Conv2D larger strides than kernel": ((7, 7, 2), lambda: layers.Conv2D(2, 2, 3)),
    "Conv3D": ((4, 5, 4, 2), lambda: layers.Conv3D(2, (2, 3, 2))),
    "Conv3D same, strided": ((4, 5, 4, 2), lambda: layers.Conv3D(2, 3, 2, padding="same")),
    "DepthwiseConv1D": ((7, 3), lambda: layers.DepthwiseConv1D(3, depth_multiplier=2)),
    "DepthwiseConv2D": ((6, 5, 3), lambda: layers.DepthwiseConv2D(3, depth_multiplier=2)),
    "DepthwiseConv2D same, strided": (
        (6, 6, 3),
        lambda: layers.DepthwiseConv2D(3, 2, padding="same"),
    ),
    "DepthwiseConv2D dilated": ((8, 8, 2), lambda: layers.DepthwiseConv2D(3, dilation_rate=2)),
    "SeparableConv1D": ((7, 2), lambda: layers.SeparableConv1D(3, 3)),
    "SeparableConv2D": ((6, 6, 2), lambda: layers.SeparableConv2D(3, 3)),
    "Conv1DTranspose": ((4, 2), lambda: layers.Conv1DTranspose(3, 3, 2)),
    "Conv2DTranspose": ((4, 3, 2), lambda: layers.Conv2DTranspose(3, 3)),
    "Conv2DTranspose strided": ((4, 3, 2), lambda: layers.Conv2DTranspose(3, (3, 2), (2, 3))),
    "Conv2DTranspose same, strided": (
        (4, 3, 2),
        lambda: layers.Conv2DTranspose(3, 4, 2, padding="same"),
    ),
    "Conv2DTranspose output padding": (
        (4, 3, 2),
        lambda: layers.Conv2DTranspose(3, 3, 2, padding="same", output_padding=1),
    ),
    "Conv3DTranspose": ((2, 3, 2, 1), lambda: layers.Conv3DTranspose(1, (2, 1, 2), 2)),
    "MaxPooling1D": ((7, 2), lambda: layers.MaxPooling1D(2)),
    "MaxPooling2D": ((6, 7, 2), lambda: layers.MaxPooling2D((2, 3))),
}


def examined(model: keras.Model, x: Any) -> dict[str, Any]:
    """The loss and its gradient at some weights, as they are and as products."""
    fixed = [v.value for v in model.non_trainable_variables]

    def loss(weights: Any) -> tf.Tensor:
        return tf.reduce_mean(tf.sin(3.0 * model.stateless_call(weights, fixed, x)[0]))

    operations: set[str] = set()

    @tf.function(autograph=False)
    def run() -> Any:
        weights = [tf.convert_to_tensor(native(v)) for v in model.trainable_variables]
        plain = ReplayedLoss.of_function(loss, weights)
        products = with_products(plain, weights)
        operations.update(node.op for node in products.piece.node)
        stacked = [tf.stack([w, 0.9 * w]) for w in weights]
        samples = [[s[i] for s in stacked] for i in range(2)]
        losses, gradients = products.vectorized_value_and_gradient(stacked)
        assert products.is_vectorized
        return {
            "plain": [plain.value_and_gradient(w) for w in samples],
            "products": [products.value_and_gradient(w) for w in samples],
            "vectorized": [(losses[i], [g[i] for g in gradients]) for i in range(2)],
        }

    return {**run(), "operations": operations}


def model_of(shape: tuple[int, ...], *makers: Layer) -> keras.Model:
    """A model in float64, the same weights at each call."""
    keras.utils.set_random_seed(0)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        x = y = keras.Input(shape)
        for make in makers:
            y = make()(y)
        return keras.Model(x, y)
    finally:
        keras.config.set_dtype_policy(before)


def images(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal((ROWS, *shape))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("place", ["first", "second"])
def test_values_and_gradients_are_tensorflows(place: str, name: str) -> None:
    shape, layer = LAYERS[name]
    # Where the layer comes first, what stands behind it has the weights that poolings lack.
    dense = functools.partial(layers.Dense, shape[-1])
    model = model_of(shape, *((dense, layer) if place == "second" else (layer, dense)))
    found = examined(model, images(shape))
    assert not found["operations"] & REWRITTEN
    for key in ("products", "vectorized"):
        tf.nest.map_structure(
            functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12),
            found[key],
            found["plain"],
        )


def test_first_layer_cuts_its_patches_out_once() -> None:
    model = model_of((6, 6, 2), lambda: layers.Conv2D(3, 3))
    assert not examined(model, images((6, 6, 2)))["operations"] & {"ConcatV2", "StridedSlice"}


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


def test_what_is_not_finite_stays_so() -> None:
    x = np.array([[np.nan, 1.0], [2.0, np.inf]]).reshape(1, 2, 2, 1)
    weights = [tf.constant(np.ones((1, 1, 1, 1)))]

    @tf.function(autograph=False)
    def run() -> Any:
        plain = ReplayedLoss.of_function(
            lambda w: tf.reduce_sum(tf.nn.conv2d(tf.constant(x), w[0], 1, "SAME")), weights
        )
        return with_products(plain, weights).value_and_gradient(weights)

    loss, (gradient,) = run()
    assert np.isnan(loss)
    assert np.isnan(gradient).all()


def test_integers_are_pooled_as_they_are() -> None:
    def loss(w: Any) -> tf.Tensor:
        counts = tf.cast(tf.round(8.0 * w[0]), tf.int32)
        return tf.reduce_sum(tf.cast(tf.nn.max_pool2d(counts, 2, 2, "VALID"), tf.float32))

    @tf.function(autograph=False)
    def run() -> Any:
        weights = [tf.constant(images((4, 4, 1)), tf.float32)]
        plain = ReplayedLoss.of_function(loss, weights)
        return plain(weights), with_products(plain, weights)(weights)

    plain, found = run()
    assert plain == found


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_images_of_unknown_size(padding: str) -> None:
    weights = [tf.constant(images((3, 2, 2))[0][None]), tf.constant(images((2, 2, 1)))]

    @tf.function(
        autograph=False, input_signature=[tf.TensorSpec([None, None, None, 2], tf.float64)]
    )
    def run(x: tf.Tensor) -> Any:
        def loss(w: Any) -> tf.Tensor:
            y = tf.sin(tf.nn.conv2d(x, w[0], [1, 2, 1, 1], padding))
            return tf.reduce_sum(tf.nn.conv2d(y, w[1], [1, 2, 2, 1], padding) ** 2)

        plain = ReplayedLoss.of_function(loss, weights)
        products = with_products(plain, weights)
        assert not {node.op for node in products.piece.node} & REWRITTEN
        return plain.value_and_gradient(weights), products.value_and_gradient(weights)

    for size in (5, 8):
        expected, found = run(tf.constant(images((size, 7, 2))))
        tf.nest.map_structure(
            functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12), found, expected
        )


def test_a_loss_without_convolutions_is_left_alone() -> None:
    def loss(w: Any) -> tf.Tensor:
        return tf.reduce_sum(tf.nn.bias_add(w[0], w[0][0]))

    with tf.Graph().as_default():
        weights = [tf.constant(np.ones((2, 2)))]
        objective = ReplayedLoss.of_function(loss, weights)
        assert with_products(objective, weights) is objective


def test_parts_of_a_minibatch_hold_what_the_whole_does() -> None:
    # Else several replicas would draw blocks of another size than one device.
    def held(rows: int) -> tuple[Any, Any]:
        with tf.Graph().as_default():
            x, weights = tf.ones([rows, 7, 7, 2]), [tf.ones([3, 3, 2, 4]), tf.ones([4])]

            def loss(w: Any) -> tf.Tensor:
                y = tf.nn.bias_add(tf.nn.conv2d(x, w[0], 1, "SAME"), w[1])
                # The last of it is as large for any minibatch.
                return tf.reduce_sum(y**2) + tf.reduce_sum(tf.sin(w[0]))

            products = with_products(ReplayedLoss.of_function(loss, weights), weights)
        return products.footprint, products.unbatched

    (whole, once), (half, once_in_half) = held(4), held(2)
    assert once == once_in_half > 0
    assert 2 * (half - once) + once == whole


def test_groups_train_by_train_step() -> None:
    class Model(lerh_tf.TrainStep, keras.Model):
        pass

    x = keras.Input((5, 5, 4))
    y = layers.Dense(1)(layers.Flatten()(layers.Conv2D(4, 3, groups=2)(x)))
    model = Model(x, y)
    model.compile(lerh_tf.LocalEntropy(0.01, seed=0), "mse", jit_compile=False)
    before = [v.numpy() for v in model.trainable_variables]
    model.fit(np.ones((4, 5, 5, 4)), np.ones((4, 1)), verbose=0)
    for old, v in zip(before, model.trainable_variables, strict=True):
        assert (v.numpy() != old).any()
