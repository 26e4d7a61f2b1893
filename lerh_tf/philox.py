"""Philox4x32-10, a counter-based generator, as arithmetic on arrays.

TensorFlow has it as an operation, which makes the same numbers counter by counter and waits for
each of the ten rounds, and takes longer still within a function that XLA compiles. Written out,
XLA makes it vector instructions on many counters at once.

References: Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3.
"""

import numpy as np
import tensorflow as tf

COUNTERS = 64
"""In a row of random numbers, one after another; each gives two of 64 bits."""

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
# What is added to the key's words, round by round.
_KEY_STEPS = np.multiply.outer([0x9E3779B9, 0xBB67AE85], np.arange(10)).astype(np.uint64)


# A function of its own: within another XLA would mix a counter anew for each half of a number.
@tf.function(jit_compile=True, autograph=False)
def random_bits(
    stream: tf.Tensor, seed: tf.Tensor, first: tf.Tensor, block: tf.Tensor, update: tf.Tensor
) -> tf.Tensor:
    """Returns rows of random numbers.

    The key of a row is (stream, seed), its counters (first, block, update), (first + 1, ...) and so
    on, with the lowest bits first: words of 32 bits each, but for an update of two.

    Args:
        stream: shape [rows, 1], uint64 as all of them.
        seed: scalar.
        first: shape [rows, 1]; that of a row's last counter is to have 32 bits too.
        block: scalar, of 32 bits.
        update: scalar.

    Returns:
        uint64 tensor of shape [rows, 2 COUNTERS].
    """
    # A constant is one node however often it is used: each model that is trained keeps copies.
    low, half = tf.constant(2**32 - 1, tf.uint64), tf.constant(32, tf.uint64)
    factors = [tf.constant(m, tf.uint64) for m in _MULTIPLIERS]
    # Both numbers of a counter are mixed by themselves: XLA would mix twice all the same.
    counter, number = np.divmod(np.arange(2 * COUNTERS, dtype=np.uint64), np.uint64(2))
    words = [first + counter, block, update & low, tf.bitwise.right_shift(update, half)]
    # Of all rounds at once.
    keys = (
        tf.unstack((word + steps[:, None, None]) & low)
        for word, steps in zip((stream, seed), _KEY_STEPS, strict=True)
    )
    for key_0, key_1 in zip(*keys, strict=True):
        product_0, product_2 = (word * m for word, m in zip(words[::2], factors, strict=True))
        high_0, high_2 = (tf.bitwise.right_shift(p, half) for p in (product_0, product_2))
        words = [
            high_2 ^ words[1] ^ key_0,
            product_2 & low,
            high_0 ^ words[3] ^ key_1,
            product_0 & low,
        ]
    lower, upper = (tf.where(number == 0, words[i], words[i + 2]) for i in (0, 1))
    return lower | tf.bitwise.left_shift(upper, half)
