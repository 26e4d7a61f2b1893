"""Standard normal noise as a pure function of (seed, update, block of samples, variable)."""

import functools
import math
from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

# The position of the draws that concern no sample: no kernel draws so many blocks.
COMPLEMENT_BLOCK = 2**31 - 1

_PHILOX = 1
_BLOCK_SHIFT = 32
# Blocks that stay in cache draw and accumulate about twice as fast as large ones.
_BLOCK_FLOATS = 2**20
_LARGEST_BLOCK = 1024
# What the evaluations of one block may hold at once, by tensors of the model's forward pass.
_EVALUATION_FLOATS = 2**24

# Giles (2010), Table 5: erfinv(u) / u as polynomials of w = -log(1 - u^2), of its root from 5 on.
_CENTRE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)


class Noise(Protocol):
    """A source of standard normal noise, drawn in blocks of consecutive samples."""

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        """Returns the noise of the first `samples` samples of one block.

        Args:
            block: scalar int64 tensor, the block's position; consecutive blocks hold consecutive
                samples.
            samples: how many samples of the block are wanted.

        Returns:
            One tensor of shape [samples, *shape] per variable.
        """


class DivisibleNoise(Noise, Protocol):
    """Noise of which a part of a block may be drawn without the rest."""

    def __call__(
        self, block: tf.Tensor, samples: int | tf.Tensor, first: int | tf.Tensor = 0
    ) -> list[tf.Tensor]:
        """Returns the noise of `samples` samples of one block, from the one at `first` on."""


def working_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype to draw and accumulate in for weights of `dtype`: at least float32."""
    return tf.float64 if tf.as_dtype(dtype) == tf.float64 else tf.float32


def block_size(anchor: Sequence[tf.Tensor], footprint: int | tf.Tensor = 0) -> int | tf.Tensor:
    """Returns how many samples one block holds; a tensor where a static shape is not known.

    It depends on the model and the minibatch's shape only. Where blocks are not spread evenly, as
    in Algorithms 3 and 4, the noise of sample j is the same however many samples are drawn.

    Args:
        anchor: one tensor per variable, of the shape of its noise.
        footprint: how many numbers one evaluation of the loss holds, where a block's samples are
            evaluated at once: then they are two at least, since one alone would be evaluated twice
            (`Objective.vectorize`). 0 where they are not.
    """
    smallest = 1 if isinstance(footprint, int) and footprint == 0 else 2
    if all(x.shape.is_fully_defined() for x in anchor) and isinstance(footprint, int):
        floats = sum(x.shape.num_elements() for x in anchor)
        drawn = _BLOCK_FLOATS // max(floats, 1)
        evaluated = _EVALUATION_FLOATS // max(footprint, 1)
        return min(_LARGEST_BLOCK, max(smallest, min(drawn, evaluated)))
    floats = tf.add_n([tf.size(x, tf.int64) for x in anchor])
    drawn = _BLOCK_FLOATS // tf.maximum(floats, 1)
    evaluated = _EVALUATION_FLOATS // tf.maximum(tf.cast(footprint, tf.int64), 1)
    return tf.cast(
        tf.clip_by_value(tf.minimum(drawn, evaluated), smallest, _LARGEST_BLOCK), tf.int32
    )


class PhiloxNoise:
    """Counter-based standard normal noise.

    The Philox key is (seed, variable), its 128-bit counter (update, block, position in block):
    no two draws share a counter, nothing has to be stored, and a resumed run draws what the
    uninterrupted one would have drawn. Each number is the normal quantile of its own random bits.

    Args:
        seed: integer in [0, 2**32).
        update: scalar int64 tensor, the raw count of weight updates.
        like: tensors of the shapes to draw, one per variable; the noise is in at least float32.
    """

    def __init__(self, seed: int, update: tf.Tensor, like: Sequence[tf.Tensor]):
        self._seed = seed
        self._update = tf.cast(update, tf.uint64)
        self._like = tuple(like)

    def __call__(
        self, block: tf.Tensor, samples: int | tf.Tensor, first: int | tf.Tensor = 0
    ) -> list[tf.Tensor]:
        """See `DivisibleNoise`."""
        position = tf.bitwise.left_shift(
            tf.cast(block, tf.uint64), tf.constant(_BLOCK_SHIFT, tf.uint64)
        )
        from_start = isinstance(first, int) and first == 0
        draw = self._bits if from_start else functools.partial(self._later_bits, first)
        return _normal([draw(*each, position, samples) for each in enumerate(self._like)])

    def _bits(
        self, index: int, tensor: tf.Tensor, position: tf.Tensor, samples: int | tf.Tensor
    ) -> tf.Tensor:
        """Returns random integers, shape [samples, *shape], from a position of the counter on."""
        return tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=tf.concat([[samples], tf.shape(tensor)], 0),
            key=tf.constant([self._seed << 32 | index], tf.uint64),
            counter=tf.stack([position, self._update]),
            alg=_PHILOX,
            dtype=tf.int64 if working_dtype(tensor.dtype) == tf.float64 else tf.int32,
        )

    def _later_bits(
        self,
        first: int | tf.Tensor,
        index: int,
        tensor: tf.Tensor,
        position: tf.Tensor,
        samples: int | tf.Tensor,
    ) -> tf.Tensor:
        """Returns `_bits` without those of the first samples, which are not drawn."""
        size = tf.size(tensor, tf.int64)
        # The counter goes up by one for 128 bits.
        together = 2 if working_dtype(tensor.dtype) == tf.float64 else 4
        skipped = tf.cast(first, tf.int64) * size
        position += tf.cast(skipped // together, tf.uint64)
        wanted = tf.cast(samples, tf.int64) * size
        flat = self._bits(index, tf.zeros([], tensor.dtype), position, wanted + together)
        shape = tf.concat([[samples], tf.shape(tensor)], 0)
        bits = tf.reshape(flat[skipped % together :][:wanted], shape)
        return tf.ensure_shape(bits, [None, *tensor.shape])


# Compiled, the quantiles cost less than the bits; TensorFlow's own normal op costs two to three
# both, and XLA's random bits more than that.
@tf.function(jit_compile=True, autograph=False)
def _normal(bits: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns standard normal numbers from tensors of random integers, one each."""
    return [_quantile_64(b) if b.dtype == tf.int64 else _quantile_32(b) for b in bits]


def _quantile_32(bits: tf.Tensor) -> tf.Tensor:
    """Returns z with P(|Z| > |z|) = t, where the sign and t are int32 bits.

    To 5e-7 relative and 1e-7 up to 5, and to 4e-4 relative up to 6.3, the largest |z|. Bits give
    t, not 1 - t: small t keep their digits, and the tails go as far as 32 bits can.
    """
    t = (tf.cast(tf.bitwise.bitwise_and(bits, 2**31 - 1), tf.float32) + 0.5) * 2.0**-31
    w = -tf.math.log(t * (2.0 - t))
    ratio = tf.where(w < 5.0, _polynomial(_CENTRE, w - 2.5), _polynomial(_TAIL, tf.sqrt(w) - 3.0))
    z = math.sqrt(2.0) * (1.0 - t) * ratio
    return tf.where(bits < 0, -z, z)


def _quantile_64(bits: tf.Tensor) -> tf.Tensor:
    """Returns z with P(|Z| > |z|) = t, where the sign and t are int64 bits, to 2e-10."""
    # 52 bits of t: 1 - t is exact and never 1.
    high = tf.bitwise.right_shift(
        tf.bitwise.bitwise_and(bits, 2**63 - 1), tf.constant(11, bits.dtype)
    )
    t = (tf.cast(high, tf.float64) + 0.5) * 2.0**-52
    z = math.sqrt(2.0) * tf.math.erfinv(1.0 - t)
    return tf.where(bits < 0, -z, z)


def _polynomial(coefficients: Sequence[float], x: tf.Tensor) -> tf.Tensor:
    """Returns the polynomial's value, by Horner's rule; the highest power's coefficient first."""
    return functools.reduce(lambda value, c: value * x + c, coefficients[1:], coefficients[0])
