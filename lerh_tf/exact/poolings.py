"""Poolings by slices, one axis after the other.

A window of k entries in steps of s meets k slices of the images, x_{o}, x_{o+s}, x_{o+2s}, ... for
o = 0, ..., k - 1. The largest, or the mean, of a window is that of the slices along the last
axis, then of theirs along the axis before. On CPUs XLA's own poolings take several times as
long, and their gradients still more.
"""

import math
from collections.abc import Callable
from functools import reduce
from itertools import chain
from typing import Any

import tensorflow as tf

from lerh_tf.exact.windows import Window, as_declared, channels_last, integers, spatial_sizes

POOLING_GRADIENT = "lerh_tf>MaxPool"
"""Name that TensorFlow knows the gradient of pooling by."""

# Slices of one axis, beyond which a pooling stays as it is: each is an operation.
_MOST_SLICES = 16


def _max_pooling(node: Any, images: tf.Tensor) -> tf.Tensor | None:
    """Returns `MaxPool` or `MaxPool3D` by maxima of slices.

    None where windows reach over samples or channels, or are large, and for integers.
    """
    images = channels_last(node, images)
    window = _window(node, images)
    if window is None or not images.dtype.is_floating:
        return None
    padded, inside = _padded(images, window), _padded(_ones(images), window)
    # TensorFlow's vectorised form of `tf.pad` knows no value but 0.
    padded = tf.where(inside > 0, padded, tf.constant(-math.inf, images.dtype))
    largest = _folded(tf.maximum, padded, window)
    if window.is_tiling and images.shape[1:].is_fully_defined():
        largest = _by_comparisons(largest, images, window)
    return as_declared(node, largest)


def _mean_pooling(node: Any, images: tf.Tensor) -> tf.Tensor | None:
    """Returns `AvgPool` or `AvgPool3D` by sums of slices; None as for `_max_pooling`."""
    images = channels_last(node, images)
    window = _window(node, images)
    if window is None:
        return None
    # As XLA does: the sum of a window leaves the range of float16 before its mean does.
    wide = tf.cast(images, tf.float64 if images.dtype == tf.float64 else tf.float32)
    total, count = (_folded(tf.add, _padded(part, window), window) for part in (wide, _ones(wide)))
    return as_declared(node, tf.cast(total / count, images.dtype))


def _window(node: Any, images: tf.Tensor) -> Window | None:
    """Returns the window of a pooling of images whose channels come last."""
    samples, *sizes, channels = _channels_last_sizes(node)
    if samples > 1 or channels > 1 or max(sizes) > _MOST_SLICES:
        return None
    return Window.of(node, sizes, spatial_sizes(images))


def _channels_last_sizes(node: Any) -> list[int]:
    sizes = integers(node, "ksize")
    if node.attr["data_format"].s.decode().startswith("NC"):
        return [sizes[0], *sizes[2:], sizes[1]]
    return sizes


def _ones(images: tf.Tensor) -> tf.Tensor:
    return tf.ones([1, *spatial_sizes(images), 1], images.dtype)


def _padded(images: tf.Tensor, window: Window) -> tf.Tensor:
    return tf.pad(images, [(0, 0), *window.padding, (0, 0)])


def _folded(
    combine: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], images: tf.Tensor, window: Window
) -> tf.Tensor:
    """Returns what windows hold, combined in the order of the last axis first."""
    for axis in reversed(range(len(window.sizes))):
        stride = window.strides[axis]
        length = (window.positions[axis] - 1) * stride + 1
        before = [slice(None)] * (axis + 1)
        slices = [
            images[(*before, slice(o, o + length, stride))] for o in range(window.sizes[axis])
        ]
        images = reduce(combine, slices)
    return images


def _by_comparisons(largest: tf.Tensor, images: tf.Tensor, window: Window) -> tf.Tensor:
    """Returns the largest entries with a gradient that takes less than that of the slices."""
    cut = [slice(n * size) for n, size in zip(window.positions, window.sizes, strict=True)]
    split = chain.from_iterable(zip(window.positions, window.sizes, strict=True))
    windows = tf.reshape(images[(slice(None), *cut)], [-1, *split, images.shape[-1]])
    graph = tf.compat.v1.get_default_graph()
    with graph.gradient_override_map({"IdentityN": POOLING_GRADIENT}):
        return tf.raw_ops.IdentityN(input=[largest, windows])[0]


@tf.RegisterGradient(POOLING_GRADIENT)
def _gradient_by_comparisons(
    pooling: Any, gradient: tf.Tensor, _: tf.Tensor
) -> tuple[None, tf.Tensor]:
    """Returns the gradient, which goes to the first of the largest entries of a window."""
    largest, windows = pooling.inputs
    # Axes of positions and of entries in turn, between samples and channels.
    within = range(2, windows.shape.rank - 1, 2)
    shape = [-1 if axis == 0 else n for axis, n in enumerate(windows.shape)]
    among = [1] * windows.shape.rank
    for axis in within:
        shape[axis], among[axis] = 1, windows.shape[axis]
    entries = math.prod(among)
    order = tf.reshape(tf.range(entries), among)
    # NaN is the largest, and not less than itself.
    places = tf.where(windows < tf.reshape(largest, shape), entries, order)
    first = tf.reduce_min(places, list(within), keepdims=True)
    return None, tf.where(tf.equal(order, first), tf.reshape(gradient, shape), 0.0)


RULES: dict[str, Callable[[Any, tf.Tensor], tf.Tensor | None]] = {
    "MaxPool": _max_pooling,
    "MaxPool3D": _max_pooling,
    "AvgPool": _mean_pooling,
    "AvgPool3D": _mean_pooling,
}
"""By type of operation, what takes a node and its images to its output, or to None."""
