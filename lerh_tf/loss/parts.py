"""What is averaged over a sample, one weight's part of it: numbers, or products not formed."""

from typing import NamedTuple, TypeAlias

import tensorflow as tf


class OuterProducts(NamedTuple):
    """Matrices L^T R of a sample, which sums over the sample need not form.

    Attributes:
        left: L, shape [samples, rows, D].
        right: R, shape [samples, rows, E].
    """

    left: tf.Tensor
    right: tf.Tensor


Part: TypeAlias = tf.Tensor | OuterProducts


def weighted_sums(w: tf.Tensor, part: Part) -> tf.Tensor:
    """Returns sums over a sample, flattened, shape [sums, size].

    Args:
        w: coefficients, shape [sums, samples].
        part: shape [samples, *shape], or products of that shape.
    """
    if not isinstance(part, OuterProducts):
        return tf.cast(w, part.dtype) @ _flattened(part)
    rows = tf.unstack(tf.cast(w, part.right.dtype)[..., None, None])
    sums = [total(OuterProducts(part.left, row * part.right)) for row in rows]
    return tf.reshape(tf.stack(sums), [w.shape[0], -1])


def total(part: Part) -> tf.Tensor:
    """Returns the sum over a sample, of one value's shape."""
    if not isinstance(part, OuterProducts):
        return tf.reduce_sum(part, 0)
    left, right = (tf.reshape(each, [-1, each.shape[-1]]) for each in part)
    return tf.matmul(left, right, transpose_a=True)


def square_norms(part: Part) -> tf.Tensor:
    """Returns the squared norm per sample, shape [samples]."""
    if not isinstance(part, OuterProducts):
        flat = _flattened(part)
        # A product: compiled, a sum along rows adds one number at a time.
        return tf.linalg.matvec(flat * flat, tf.ones(tf.shape(flat)[1:], flat.dtype))
    left = tf.matmul(part.left, part.left, transpose_b=True)
    right = tf.matmul(part.right, part.right, transpose_b=True)
    return tf.reduce_sum(left * right, [1, 2])


def are_finite(part: Part) -> tf.Tensor:
    """Returns whether all numbers of a sample are finite, bool tensor of shape [samples]."""
    if isinstance(part, OuterProducts):
        return are_finite(part.left) & are_finite(part.right)
    return tf.reduce_all(tf.math.is_finite(_flattened(part)), axis=1)


def where(condition: tf.Tensor, part: Part, dtype: tf.DType) -> Part:
    """Returns the part with zeros for samples without `condition`, in another dtype."""
    if isinstance(part, OuterProducts):
        left, right = (where(condition, each, dtype) for each in part)
        return OuterProducts(left, right)
    mask = tf.reshape(condition, [-1] + [1] * (part.shape.rank - 1))
    return tf.where(mask, tf.cast(part, dtype), tf.zeros([], dtype))


def _flattened(values: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, [tf.shape(values)[0], -1])
