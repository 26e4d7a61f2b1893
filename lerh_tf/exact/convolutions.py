"""Convolutions as products: patches of the images times a matrix.

In a sample of weights each has its own kernel. For convolutions with a kernel each TensorFlow has
no vectorised form, and XLA's gradients of convolutions are about ten times slower on CPUs than
products are. With P(X) the patches of the images X, one row for each position,

conv(X, K) = P(X) K, K as a matrix of (numbers in a patch) x (channels out),

so that the whole sample is one product where X does not depend on the weights, whose patches are
cut out once for all, and a batch of products elsewhere. A transposed convolution is the transpose
of that, a product and then the sum of the patches where they overlap.

What can be rewritten is read off the graph of the loss, never off types of layers.
"""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lerh_tf.exact import poolings
from lerh_tf.exact.windows import (
    Window,
    as_declared,
    channels_last,
    has_channels_first,
    spatial_axes,
    spatial_sizes,
)
from lerh_tf.loss.compilation import is_compilable
from lerh_tf.loss.objective import Weights
from lerh_tf.loss.replayed import ReplayedLoss

# Numbers in the patches of one sample, 256 MiB, beyond which a convolution stays as it is.
_LARGEST_PATCHES = 2**26


def with_products(objective: ReplayedLoss, weights: Weights) -> ReplayedLoss:
    """Returns the same loss with its convolutions as products; itself where it has none.

    Where XLA compiles the loss, poolings become slices (`lerh_tf/exact/poolings.py`). The biases
    of images get gradients that take less.

    Args:
        objective: the minibatch loss.
        weights: one tensor per used weight.
    """
    found = {node.op for node in objective.piece.node}
    if found & poolings.RULES.keys():
        replaced = objective.replacing(_RULES | poolings.RULES, weights)
        # Where XLA does not fuse the slices, TensorFlow's own poolings are faster.
        if is_compilable(replaced):
            return replaced
    # Biases alone are no reason.
    return (
        objective.replacing(_RULES, weights) if found & _RULES.keys() - {"BiasAdd"} else objective
    )


def _convolution(node: Any, images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor | None:
    """Returns `Conv2D` or `Conv3D` as a product.

    None where the kernel is one of groups, or the patches would take too much memory.
    """
    *sizes, channels, filters = kernel.shape
    images = channels_last(node, images)
    if images.shape[-1] != channels:
        return None
    window = Window.of(node, sizes, spatial_sizes(images))
    held = [images.shape[0], *window.positions, *sizes, channels]
    if all(isinstance(n, int) for n in held) and math.prod(held) > _LARGEST_PATCHES:
        return None
    patches = tf.concat(window.slices(images), -1)
    # Of as many axes as a matrix: a batch of products wants no more.
    rows = tf.reshape(patches, [-1, math.prod(sizes) * channels])
    product = rows @ tf.reshape(kernel, [-1, filters])
    return as_declared(node, tf.reshape(product, [-1, *window.positions, filters]))


def _transposed_convolution(
    node: Any, shape: tf.Tensor, kernel: tf.Tensor, images: tf.Tensor
) -> tf.Tensor | None:
    """Returns `Conv2DBackpropInput` or `Conv3DBackpropInputV2` as a product.

    None where the kernel is one of groups, or the size of what it makes is not known.
    """
    *sizes, filters, channels = kernel.shape
    images = channels_last(node, images)
    known = tf.get_static_value(shape, partial=True)
    axes = spatial_axes(node, len(sizes))
    if known is None or any(known[axis] is None for axis in axes) or images.shape[-1] != channels:
        return None
    image = [int(known[axis]) for axis in axes]
    window = Window.of(node, sizes, image)
    rows = tf.reshape(images, [-1, channels])
    product = tf.matmul(rows, tf.reshape(kernel, [-1, channels]), transpose_b=True)
    whole = tf.reshape(product, [-1, *window.positions, math.prod(sizes) * filters])
    parts = tf.split(whole, math.prod(sizes), -1)
    return as_declared(node, window.summed(parts, image))


def _depthwise_convolution(node: Any, images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Returns `DepthwiseConv2dNative` as a sum of products of numbers."""
    *sizes, channels, multiplier = kernel.shape
    images = channels_last(node, images)
    window = Window.of(node, sizes, spatial_sizes(images))
    entries = tf.unstack(tf.reshape(kernel, [-1, channels, multiplier]))
    terms = [
        part[..., None] * entry for part, entry in zip(window.slices(images), entries, strict=True)
    ]
    shape = [-1, *window.positions, channels * multiplier]
    return as_declared(node, tf.reshape(tf.add_n(terms), shape))


def _bias(node: Any, value: tf.Tensor, bias: tf.Tensor) -> tf.Tensor | None:
    """Returns `BiasAdd` of images as a sum, whose gradient takes less on CPUs; else None."""
    if (value.shape.rank or 0) < 4:
        return None
    if has_channels_first(node):
        bias = tf.reshape(bias, [-1] + [1] * (value.shape.rank - 2))
    return value + bias


_RULES: dict[str, Callable[..., tf.Tensor | None]] = {
    "Conv2D": _convolution,
    "Conv3D": _convolution,
    "Conv2DBackpropInput": _transposed_convolution,
    "Conv3DBackpropInputV2": _transposed_convolution,
    "DepthwiseConv2dNative": _depthwise_convolution,
    "BiasAdd": _bias,
}
