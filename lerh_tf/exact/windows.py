"""Windows that move over images, as convolutions and poolings declare them."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

Size: TypeAlias = "int | tf.Tensor"


class Window(NamedTuple):
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
    def of(cls, node: Any, sizes: Sequence[int], image: Sequence[Size]) -> "Window":
        """Returns the window that an operation declares.

        Args:
            node: the operation.
            sizes: of the kernel.
            image: the image's sizes.
        """
        axes = spatial_axes(node, len(sizes))
        strides = [integers(node, "strides")[axis] for axis in axes]
        # Poolings have none.
        dilated = integers(node, "dilations")
        dilations = [dilated[axis] if dilated else 1 for axis in axes]
        extents = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
        kind = node.attr["padding"].s.decode()
        explicit = integers(node, "explicit_paddings")
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

    @property
    def is_tiling(self) -> bool:
        """Whether each entry of the image is met once, but for a rest at the end."""
        known = [size for zeros in self.padding for size in zeros]
        is_whole = all(isinstance(size, int) and size == 0 for size in known)
        return self.sizes == self.strides and is_whole

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


def integers(node: Any, name: str) -> list[int]:
    """Returns a list among an operation's attributes; empty where it has none of that name."""
    # Reading an attribute that is not there would add it to the node.
    return list(node.attr[name].list.i) if name in node.attr else []


def has_channels_first(node: Any) -> bool:
    """Returns whether an operation's images have their channels ahead of their spatial axes."""
    return node.attr["data_format"].s.decode().startswith("NC")


def spatial_axes(node: Any, count: int) -> range:
    """Returns the axes of an operation's images that are neither samples nor channels."""
    return range(2, 2 + count) if has_channels_first(node) else range(1, 1 + count)


def channels_last(node: Any, images: tf.Tensor) -> tf.Tensor:
    """Returns an operation's images with their channels last."""
    if not has_channels_first(node):
        return images
    return tf.transpose(images, [0, *range(2, images.shape.rank), 1])


def as_declared(node: Any, images: tf.Tensor) -> tf.Tensor:
    """Returns images with channels last as the operation would have returned them."""
    if not has_channels_first(node):
        return images
    rank = images.shape.rank
    return tf.transpose(images, [0, rank - 1, *range(1, rank - 1)])


def spatial_sizes(images: tf.Tensor) -> list[Size]:
    """Returns the sizes of images whose channels come last, tensors where they are not static."""
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
            sizes = [-1, *spatial_sizes(images), images.shape[-1]]
            sizes[axis] *= stride
            window = [slice(None)] * axis + [slice(0, sizes[axis] - stride + 1)]
            images = tf.reshape(apart, sizes)[tuple(window)]
    return images
