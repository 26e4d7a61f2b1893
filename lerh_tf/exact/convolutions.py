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

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from lerh_tf.loss.objective import Weights
from lerh_tf.loss.replayed import ReplayedLoss

Size: TypeAlias = "int | tf.Tensor"

# Numbers in the patches of one sample, 256 MiB, beyond which a convolution stays as it is.
_LARGEST_PATCHES = 2**26

POOLING_GRADIENT = "lerh_tf>MaxPool"
"""Name that TensorFlow knows the gradient of pooling by."""


def with_products(objective: ReplayedLoss, weights: Weights) -> ReplayedLoss:
    """Returns the same loss with its convolutions as products; itself where it has none.

    Poolings without overlap, and the biases of images, get gradients that take less.

    Args:
        objective: the minibatch loss.
        weights: one tensor per used weight.
    """
    # Biases alone are no reason.
    if not any(node.op in _RULES and node.op != "BiasAdd" for node in objective.piece.node):
        return objective
    products = objective.replacing(_RULES, weights)
    # Half as many samples at once: patches that stay in cache are cut, met and summed faster.
    products.footprint *= 2
    products.unbatched *= 2
    return products


class _Window(NamedTuple):
    """How a kernel moves over images whose channels come last, per spatial axis.

    Attributes:
        sizes: of the kernel.
        strides: between its positions.
        dilations: between its entries.
        padding: zeros before and after the image.
        positions: of the kernel.
    """

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    padding: Sequence[tuple[Size, Size]]
    positions: Sequence[Size]

    @classmethod
    def of(cls, node: Any, sizes: Sequence[int], image: Sequence[Size]) -> "_Window":
        """Returns the window that an operation declares.

        Args:
            node: the operation.
            sizes: of the kernel.
            image: the image's sizes.
        """
        axes = _spatial_axes(node, len(sizes))
        strides = [_integers(node, "strides")[axis] for axis in axes]
        dilations = [_integers(node, "dilations")[axis] for axis in axes]
        extents = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
        kind = node.attr["padding"].s.decode()
        explicit = _integers(node, "explicit_paddings")
        padding: list[tuple[Size, Size]] = []
        for position, axis in enumerate(axes):
            if kind == "EXPLICIT":
                padding.append((explicit[2 * axis], explicit[2 * axis + 1]))
            elif kind == "SAME":
                padding.append(_same(image[position], strides[position], extents[position]))
            else:
                padding.append((0, 0))
        positions = [
            (n + before + after - extent) // stride + 1
            for n, (before, after), extent, stride in zip(
                image, padding, extents, strides, strict=True
            )
        ]
        return cls(sizes, strides, dilations, padding, positions)

    def offsets(self) -> Iterable[tuple[int, ...]]:
        """Yields where the kernel's entries lie, in their order in its matrix."""
        entries = itertools.product(*map(range, self.sizes))
        return (
            tuple(i * d for i, d in zip(entry, self.dilations, strict=True)) for entry in entries
        )

    def slices(self, images: tf.Tensor) -> list[tf.Tensor]:
        """Returns per entry of the kernel what it meets, shape [images, *positions, channels]."""
        padded = tf.pad(images, [(0, 0), *self.padding, (0, 0)])
        found = []
        for offset in self.offsets():
            windows = [
                slice(o, o + (n - 1) * s + 1, s)
                for o, n, s in zip(offset, self.positions, self.strides, strict=True)
            ]
            found.append(padded[(slice(None), *windows)])
        return found

    def summed(self, parts: Sequence[tf.Tensor], image: Sequence[Size]) -> tf.Tensor:
        """Returns images of what the kernel's entries add to them: the transpose of `slices`.

        Args:
            parts: per entry of the kernel, shape [images, *positions, channels].
            image: the image's sizes.
        """
        padded = [n + sum(zeros) for n, zeros in zip(image, self.padding, strict=True)]
        added = []
        for offset, part in zip(self.offsets(), parts, strict=True):
            spread = _spread(part, self.strides)
            extents = [(n - 1) * s + 1 for n, s in zip(self.positions, self.strides, strict=True)]
            rest = [
                (o, n - o - extent) for o, n, extent in zip(offset, padded, extents, strict=True)
            ]
            added.append(tf.pad(spread, [(0, 0), *rest, (0, 0)]))
        windows = [
            slice(before, before + n) for n, (before, _) in zip(image, self.padding, strict=True)
        ]
        return tf.add_n(added)[(slice(None), *windows)]


def _convolution(node: Any, images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor | None:
    """Returns `Conv2D` or `Conv3D` as a product.

    None where the kernel is one of groups, or the patches would take too much memory.
    """
    *sizes, channels, filters = kernel.shape
    images = _channels_last(node, images)
    if images.shape[-1] != channels:
        return None
    window = _Window.of(node, sizes, _spatial_sizes(images))
    held = [images.shape[0], *window.positions, *sizes, channels]
    if all(isinstance(n, int) for n in held) and math.prod(held) > _LARGEST_PATCHES:
        return None
    patches = tf.concat(window.slices(images), -1)
    # Of as many axes as a matrix: a batch of products wants no more.
    rows = tf.reshape(patches, [-1, math.prod(sizes) * channels])
    product = rows @ tf.reshape(kernel, [-1, filters])
    return _as_declared(node, tf.reshape(product, [-1, *window.positions, filters]))


def _transposed_convolution(
    node: Any, shape: tf.Tensor, kernel: tf.Tensor, images: tf.Tensor
) -> tf.Tensor | None:
    """Returns `Conv2DBackpropInput` or `Conv3DBackpropInputV2` as a product.

    None where the kernel is one of groups, or the size of what it makes is not known.
    """
    *sizes, filters, channels = kernel.shape
    images = _channels_last(node, images)
    known = tf.get_static_value(shape, partial=True)
    axes = _spatial_axes(node, len(sizes))
    if known is None or any(known[axis] is None for axis in axes) or images.shape[-1] != channels:
        return None
    image = [int(known[axis]) for axis in axes]
    window = _Window.of(node, sizes, image)
    rows = tf.reshape(images, [-1, channels])
    product = tf.matmul(rows, tf.reshape(kernel, [-1, channels]), transpose_b=True)
    whole = tf.reshape(product, [-1, *window.positions, math.prod(sizes) * filters])
    parts = tf.split(whole, math.prod(sizes), -1)
    return _as_declared(node, window.summed(parts, image))


def _depthwise_convolution(node: Any, images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Returns `DepthwiseConv2dNative` as a sum of products of numbers."""
    *sizes, channels, multiplier = kernel.shape
    images = _channels_last(node, images)
    window = _Window.of(node, sizes, _spatial_sizes(images))
    entries = tf.unstack(tf.reshape(kernel, [-1, channels, multiplier]))
    terms = [
        part[..., None] * entry for part, entry in zip(window.slices(images), entries, strict=True)
    ]
    shape = [-1, *window.positions, channels * multiplier]
    return _as_declared(node, tf.reshape(tf.add_n(terms), shape))


def _max_pooling(node: Any, images: tf.Tensor) -> tf.Tensor | None:
    """Returns `MaxPool` with a gradient by comparisons; None where windows overlap.

    XLA's own gradient of it takes several times as long on CPUs.
    """
    sizes, strides = _integers(node, "ksize"), _integers(node, "strides")
    is_padded = node.attr["padding"].s.decode() != "VALID"
    if sizes != strides or is_padded or not images.shape[1:].is_fully_defined():
        return None
    if _has_channels_first(node) or sizes[0] > 1 or sizes[3] > 1:
        return None
    graph = tf.compat.v1.get_default_graph()
    with graph.gradient_override_map({"MaxPool": POOLING_GRADIENT}):
        return tf.raw_ops.MaxPool(input=images, ksize=sizes, strides=strides, padding="VALID")


@tf.RegisterGradient(POOLING_GRADIENT)
def _max_pooling_gradient(pooling: Any, gradient: tf.Tensor) -> tf.Tensor:
    """Returns the gradient, which goes to the first of the largest entries of a window."""
    _, height, width, _ = pooling.get_attr("ksize")
    images, largest = pooling.inputs[0], pooling.outputs[0]
    _, rows, columns, channels = largest.shape
    cut = images[:, : rows * height, : columns * width]
    windows = tf.reshape(cut, [-1, rows, height, columns, width, channels])
    shape = [-1, rows, 1, columns, 1, channels]
    order = tf.reshape(tf.range(height * width), [1, 1, height, 1, width, 1])
    # NaN is the largest, and not less than itself.
    places = tf.where(windows < tf.reshape(largest, shape), height * width, order)
    first = tf.reduce_min(places, [2, 4], keepdims=True)
    spread = tf.where(tf.equal(order, first), tf.reshape(gradient, shape), 0.0)
    rest = [(0, n - m) for n, m in zip(images.shape[1:3], cut.shape[1:3], strict=True)]
    return tf.pad(tf.reshape(spread, [-1, *cut.shape[1:]]), [(0, 0), *rest, (0, 0)])


def _bias(node: Any, value: tf.Tensor, bias: tf.Tensor) -> tf.Tensor | None:
    """Returns `BiasAdd` of images as a sum, whose gradient takes less on CPUs; else None."""
    if (value.shape.rank or 0) < 4:
        return None
    if _has_channels_first(node):
        bias = tf.reshape(bias, [-1] + [1] * (value.shape.rank - 2))
    return value + bias


_RULES: Mapping[str, Callable[..., tf.Tensor | None]] = {
    "Conv2D": _convolution,
    "Conv3D": _convolution,
    "Conv2DBackpropInput": _transposed_convolution,
    "Conv3DBackpropInputV2": _transposed_convolution,
    "DepthwiseConv2dNative": _depthwise_convolution,
    "MaxPool": _max_pooling,
    "BiasAdd": _bias,
}


def _integers(node: Any, name: str) -> list[int]:
    """Returns a list among an operation's attributes; empty where it has none of that name."""
    # Reading an attribute that is not there would add it to the node.
    return list(node.attr[name].list.i) if name in node.attr else []


def _has_channels_first(node: Any) -> bool:
    return node.attr["data_format"].s.decode().startswith("NC")


def _spatial_axes(node: Any, count: int) -> range:
    return range(2, 2 + count) if _has_channels_first(node) else range(1, 1 + count)


def _channels_last(node: Any, images: tf.Tensor) -> tf.Tensor:
    if not _has_channels_first(node):
        return images
    return tf.transpose(images, [0, *range(2, images.shape.rank), 1])


def _as_declared(node: Any, images: tf.Tensor) -> tf.Tensor:
    """Returns images with channels last as the operation would have returned them."""
    if not _has_channels_first(node):
        return images
    rank = images.shape.rank
    return tf.transpose(images, [0, rank - 1, *range(1, rank - 1)])


def _spatial_sizes(images: tf.Tensor) -> list[Size]:
    dynamic = tf.shape(images)
    return [
        dynamic[axis] if images.shape[axis] is None else int(images.shape[axis])
        for axis in range(1, images.shape.rank - 1)
    ]


def _same(size: Size, stride: int, extent: int) -> tuple[Size, Size]:
    """Returns TensorFlow's "SAME" padding: positions are the size over the stride, rounded up."""
    positions = (size + stride - 1) // stride
    missing = (positions - 1) * stride + extent - size
    whole = max(missing, 0) if isinstance(missing, int) else tf.maximum(missing, 0)
    return whole // 2, whole - whole // 2


def _spread(images: tf.Tensor, strides: Sequence[int]) -> tf.Tensor:
    """Returns images with strides - 1 zeros between their entries."""
    for axis, stride in enumerate(strides, start=1):
        if stride > 1:
            paddings = [[0, 0]] * (images.shape.rank + 1)
            paddings[axis + 1] = [0, stride - 1]
            apart = tf.pad(tf.expand_dims(images, axis + 1), paddings)
            sizes = [-1, *_spatial_sizes(images), images.shape[-1]]
            sizes[axis] *= stride
            window = [slice(None)] * axis + [slice(0, sizes[axis] - stride + 1)]
            images = tf.reshape(apart, sizes)[tuple(window)]
    return images
