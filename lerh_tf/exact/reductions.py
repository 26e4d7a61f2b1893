"""A weight's subspace that the minibatch sees, and its orthogonal complement."""

import abc

import tensorflow as tf


class Reduction(abc.ABC):
    """An isometry between a weight's subspace, seen by the minibatch, and coordinates of it."""

    @abc.abstractmethod
    def reduce(self, weight: tf.Tensor) -> tf.Tensor:
        """Returns the coordinates of `weight`'s part in the subspace: Q^T W.

        Args:
            weight: shape [D, ...].

        Returns:
            Tensor of shape [r, ...].
        """

    @abc.abstractmethod
    def lift(self, coordinates: tf.Tensor) -> tf.Tensor:
        """Returns the weight in the subspace that has these coordinates: Q U.

        Args:
            coordinates: shape [r, ...].

        Returns:
            Tensor of shape [D, ...].
        """

    @property
    @abc.abstractmethod
    def rank(self) -> tf.Tensor:
        """Number of dimensions of the subspace per column, r."""

    @property
    def padding(self) -> int | tf.Tensor:
        """Number of coordinates that stand for no dimension of the weight."""
        return 0

    def complement(self, weight: tf.Tensor) -> tf.Tensor:
        """Returns the part of `weight` that the minibatch does not see: W - Q Q^T W."""
        return weight - self.lift(self.reduce(weight))

    def seen(self, coordinates: tf.Tensor) -> tf.Tensor:
        """Returns coordinates with zeros where they stand for no dimension of the weight.

        Args:
            coordinates: shape [..., r, columns...].
        """
        return coordinates


class RowSpace(Reduction):
    """The row space of a dense layer's inputs.

    Args:
        basis: Q, an orthonormal basis of a space that holds the rows, shape [D, r].
        shape: the weight's static shape, [D, ...].
    """

    def __init__(self, basis: tf.Tensor, shape: tf.TensorShape):
        self._basis = basis
        self._shape = shape

    def reduce(self, weight: tf.Tensor) -> tf.Tensor:
        """See `Reduction`."""
        return self._product(tf.transpose(self._basis), weight)

    def lift(self, coordinates: tf.Tensor) -> tf.Tensor:
        """See `Reduction`."""
        return tf.ensure_shape(self._product(self._basis, coordinates), self._shape)

    @property
    def rank(self) -> tf.Tensor:
        """See `Reduction`."""
        return tf.shape(self._basis)[1]

    def _product(self, matrix: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        columns = self._shape[1:]
        dtype = tf.float64 if _is_rounded(weight.dtype) else weight.dtype
        flat = tf.reshape(tf.cast(weight, dtype), [-1, columns.num_elements()])
        product = tf.cast(tf.cast(matrix, dtype) @ flat, weight.dtype)
        return tf.reshape(product, [-1, *columns])


def _is_rounded(dtype: tf.DType) -> bool:
    """Returns whether products of `dtype` may be TensorFloat-32's, TensorFlow's default on GPUs.

    Its 10 bits will do for a network, but what is not moved has to come back as it was.
    """
    return (
        dtype == tf.float32
        and tf.config.experimental.tensor_float_32_execution_enabled()
        and bool(tf.config.get_visible_devices("GPU"))
    )


class Rows(Reduction):
    """The rows of an embedding that the minibatch's indices pick.

    There are as many coordinates as indices, or rows if those are fewer, so that shapes stay
    static; where indices repeat, the last coordinates stand for nothing.

    Args:
        indices: integer tensor of any shape.
        shape: the weight's static shape, [V, ...].

    Attributes:
        slots: for each index, the position of its row among the coordinates.
    """

    def __init__(self, indices: tf.Tensor, shape: tf.TensorShape):
        flat = tf.reshape(indices, [-1])
        order = tf.argsort(flat, stable=True)
        ordered = tf.gather(flat, order)
        is_first = tf.concat([[True], ordered[1:] != ordered[:-1]], 0)
        rank = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
        size = tf.shape(flat)
        slots = tf.scatter_nd(order[:, None], rank, size)
        self.slots = tf.reshape(slots, tf.shape(indices))
        coordinates = tf.minimum(size[0], shape[0])
        # Equal indices write equal rows: the largest of them is each of them.
        self._rows = tf.math.unsorted_segment_max(flat, slots, coordinates)
        self._rank = rank[-1] + 1
        self._is_row = tf.range(coordinates) < self._rank
        self._rows = tf.where(self._is_row, self._rows, tf.zeros_like(self._rows))
        self._shape = shape

    def reduce(self, weight: tf.Tensor) -> tf.Tensor:
        """See `Reduction`."""
        return self.seen(tf.gather(weight, self._rows))

    def lift(self, coordinates: tf.Tensor) -> tf.Tensor:
        """See `Reduction`."""
        return tf.scatter_nd(self._rows[:, None], self.seen(coordinates), self._shape)

    @property
    def rank(self) -> tf.Tensor:
        """See `Reduction`."""
        return self._rank

    @property
    def padding(self) -> int | tf.Tensor:
        """See `Reduction`."""
        return (tf.size(self._is_row) - self._rank) * self._shape[1:].num_elements()

    def seen(self, coordinates: tf.Tensor) -> tf.Tensor:
        """See `Reduction`."""
        columns = self._shape.rank - 1
        mask = tf.reshape(self._is_row, [-1] + [1] * columns)
        return tf.where(mask, coordinates, tf.zeros_like(coordinates))
