"""Philox4x32-10, a counter-based generator, as arithmetic on arrays.

TensorFlow has it as an operation, which makes the same numbers counter by counter and waits for
each of the ten rounds, and takes several times as long within a function that XLA compiles. Written
out, XLA makes it vector instructions on many counters at once.

References: Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3.
"""

from collections.abc import Sequence

import tensorflow as tf

COUNTERS = 64
"""In a row of random numbers, one after another; each gives two of 64 bits."""

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


# A function of its own: within another XLA would mix a counter anew for each half of a number.
@tf.function(jit_compile=True, autograph=False)
def random_bits(
    stream: tf.Tensor, seed: tf.Tensor, first: tf.Tensor, block: tf.Tensor, update: tf.Tensor
) -> tf.Tensor:
    """Returns rows of random numbers.

    The key of a row is (stream, seed), its counters (first, block, update), (first + 1, ...) and so
    on, with the lowest bits first: words of 32 bits each, but for an update of two.

    Args:
        stream: shape [rows], uint64 as all of them.
        seed: scalar.
        first: shape [rows]; that of a row's last counter is to have 32 bits too.
        block: scalar, of which the lowest 32 bits are taken.
        update: scalar.

    Returns:
        uint64 tensor of shape [rows, 2 COUNTERS].
    """
    # Both numbers of a counter are mixed by themselves: XLA would mix twice all the same.
    entries = tf.range(2 * COUNTERS)
    counters = first[:, None] + tf.cast(entries // 2, tf.uint64)
    position = _low(block), *_words(update)
    words = _mixed([counters, *position], (stream[:, None], seed))
    is_first = tf.equal(entries % 2, 0)
    low, high = (tf.where(is_first, words[i], words[i + 2]) for i in (0, 1))
    return low | tf.bitwise.left_shift(high, _word(32))


def _mixed(counter: Sequence[tf.Tensor], key: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the four words that the rounds make of a counter's four."""
    words = list(counter)
    for step in range(_ROUNDS):
        (low_0, high_0), (low_2, high_2) = (
            _words(word * _word(m)) for word, m in zip(words[::2], _MULTIPLIERS, strict=True)
        )
        keys = [_low(k + _word(step * s)) for k, s in zip(key, _KEY_STEPS, strict=True)]
        words = [high_2 ^ words[1] ^ keys[0], low_2, high_0 ^ words[3] ^ keys[1], low_0]
    return words


def _words(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the low and the high word of a number."""
    return _low(number), tf.bitwise.right_shift(number, _word(32))


def _low(number: tf.Tensor) -> tf.Tensor:
    return number & _word(2**32 - 1)


def _word(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)
