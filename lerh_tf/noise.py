"""Standard normal noise as a pure function of (seed, update, block of samples, variable)."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import tensorflow as tf

from lerh_tf._checks import checked_seed
from lerh_tf.philox import COUNTERS, random_bits

# The position of the draws that concern no sample: no kernel draws so many blocks.
COMPLEMENT_BLOCK = 2**31 - 1

# Of random bits that a counter gives.
_BYTES = 16
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

    Raises:
        ValueError: `seed` is no such integer.
    """

    def __init__(self, seed: int, update: tf.Tensor, like: Sequence[tf.Tensor]):
        self._seed = checked_seed(seed)
        self._update = tf.cast(update, tf.uint64)
        self._like = tuple(like)

    def __call__(
        self, block: tf.Tensor, samples: int | tf.Tensor, first: int | tf.Tensor = 0
    ) -> list[tf.Tensor]:
        """See `DivisibleNoise`."""
        cuts = [_Cut.of(stream, x, samples, first) for stream, x in enumerate(self._like)]
        found: dict[int, tf.Tensor] = {}
        for dtype in (tf.float32, tf.float64):
            own = [cut for cut in cuts if cut.dtype == dtype]
            if own:
                # Whole rows of all variables: one loop, however many they are.
                normal = _normal(self._bits(block, own), dtype)
                parts = tf.split(normal, [cut.rows for cut in own])
                found |= {cut.stream: cut.out_of(z) for cut, z in zip(own, parts, strict=True)}
        return [found[cut.stream] for cut in cuts]

    def _bits(self, block: tf.Tensor, cuts: Sequence["_Cut"]) -> tf.Tensor:
        """Returns rows of random numbers, one variable's after another's."""
        streams = [tf.fill([cut.rows, 1], tf.constant(cut.stream, tf.uint64)) for cut in cuts]
        return random_bits(
            tf.concat(streams, 0),
            tf.constant(self._seed, tf.uint64),
            tf.concat([cut.counters for cut in cuts], 0)[:, None],
            tf.cast(block, tf.uint64),
            self._update,
        )


class _Cut(NamedTuple):
    """What is wanted of a variable's noise in a block.

    Attributes:
        stream: the variable's position, and the generator's stream.
        dtype: of its noise.
        like: the shape of one sample, static as far as it is known.
        shape: the shape of the result, a tensor.
        counter: the first of the generator's counters that is needed.
        rows: how many rows of counters are.
        skipped: how many numbers of the first counter belong to an earlier sample.
        wanted: how many numbers there are to be.
    """

    stream: int
    dtype: tf.DType
    like: tf.TensorShape
    shape: tf.Tensor
    counter: int | tf.Tensor
    rows: int | tf.Tensor
    skipped: int | tf.Tensor
    wanted: int | tf.Tensor

    @classmethod
    def of(
        cls, stream: int, like: tf.Tensor, samples: int | tf.Tensor, first: int | tf.Tensor
    ) -> "_Cut":
        """Returns `samples` samples from the one at `first` on."""
        dtype = working_dtype(like.dtype)
        before, wanted = _numbers(first, like), _numbers(samples, like)
        shape = tf.concat([[samples], tf.shape(like)], 0)
        together = _BYTES // dtype.size
        # Enough however many are skipped, which XLA need not know.
        row = COUNTERS * together
        rows = (wanted + (row + together - 2)) // row
        skipped = before % together
        static = tf.TensorShape(like.shape)
        return cls(stream, dtype, static, shape, before // together, rows, skipped, wanted)

    @property
    def counters(self) -> tf.Tensor:
        """The first counter of each row, uint64 tensor."""
        return tf.cast(self.counter + COUNTERS * tf.range(self.rows, dtype=tf.int64), tf.uint64)

    def out_of(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns what is wanted of whole rows, shape [samples, *shape]."""
        # A slice of so many: XLA need not know where it begins.
        begin, size = (tf.convert_to_tensor([n], tf.int64) for n in (self.skipped, self.wanted))
        z = tf.slice(tf.reshape(rows, [-1]), begin, size)
        static = tf.TensorShape([None]).concatenate(self.like)
        return tf.ensure_shape(tf.reshape(z, self.shape), static)


def _numbers(samples: int | tf.Tensor, like: tf.Tensor) -> int | tf.Tensor:
    """Returns how many numbers are in so many samples, an int64 tensor where it is not known."""
    size = tf.TensorShape(like.shape).num_elements()
    if size is None or not isinstance(samples, int):
        return tf.cast(samples, tf.int64) * tf.size(like, tf.int64)
    return samples * size


# Compiled, the quantiles cost about as much as the bits; TensorFlow's own normal op costs more than
# both.
@tf.function(jit_compile=True, autograph=False)
def _normal(numbers: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns standard normal numbers from random integers of 64 bits, two of float32 from each."""
    if dtype == tf.float64:
        return _quantile_64(tf.bitcast(numbers, tf.int64))
    return _quantile_32(tf.bitcast(numbers, tf.int32))


def _quantile_32(bits: tf.Tensor) -> tf.Tensor:
    """Returns z with P(|Z| > |z|) = t, where the sign and t are int32 bits.

    To 5e-7 relative and 1e-7 up to 5, and to 4e-4 relative up to 6.3, the largest |z|. Bits give
    t, not 1 - t: small t keep their digits, and the tails go as far as 32 bits can.
    """
    t = (tf.cast(tf.bitwise.bitwise_and(bits, 2**31 - 1), tf.float32) + 0.5) * 2.0**-31
    w = -tf.math.log(t * (2.0 - t))
    is_central = w < 5.0
    x = tf.where(is_central, w - 2.5, tf.sqrt(w) - 3.0)
    coefficients = zip(tf.unstack(_CENTRE), tf.unstack(_TAIL), strict=True)
    chosen = [tf.where(is_central, *pair) for pair in coefficients]
    # Horner's rule.
    ratio = functools.reduce(lambda value, c: value * x + c, chosen)
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
