"""Philox beside its authors' known answers and TensorFlow's own operation."""

from collections.abc import Sequence

import numpy as np
import pytest
import tensorflow as tf

from lerh_tf.philox import COUNTERS, random_bits
from tests.lerh_tf._kernels import Array

# Of Random123, kat_vectors: counter, key and numbers of philox4x32 with 10 rounds.
KNOWN = [
    ("00000000 " * 4, "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 4, "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def drawn(keys: Sequence[tuple[int, int]], counter: Sequence[int]) -> Array:
    """Rows of numbers of 32 bits, one per key; all have one seed."""
    streams, seeds = zip(*keys, strict=True)
    first, block, low, high = counter
    numbers = random_bits(
        tf.constant(streams, tf.uint64)[:, None],
        tf.constant(seeds[0], tf.uint64),
        tf.fill([len(streams), 1], tf.constant(first, tf.uint64)),
        tf.constant(block, tf.uint64),
        tf.constant(low | high << 32, tf.uint64),
    )
    found: Array = numbers.numpy().view("uint32")
    return found


def of_tensorflow(key: tuple[int, int], counter: Sequence[int], numbers: int) -> Array:
    low, high = (a | b << 32 for a, b in (counter[:2], counter[2:]))
    found: Array = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[numbers],
        key=tf.constant([key[0] | key[1] << 32], tf.uint64),
        counter=tf.constant([low, high], tf.uint64),
        alg=1,
        dtype=tf.uint32,
    ).numpy()
    return found


@pytest.mark.parametrize(("counter", "key", "numbers"), KNOWN)
def test_known_answers(counter: str, key: str, numbers: str) -> None:
    low, high = words(key)
    found = drawn([(low, high)], words(counter))
    np.testing.assert_array_equal(found[0, :4], words(numbers))


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
@pytest.mark.parametrize("first", [0, 1, 2**32 - COUNTERS])
@pytest.mark.parametrize("position", [(0, 0, 0), (5, 7, 11), (2**31 - 1, 2**32 - 1, 3)])
def test_rows_are_those_of_tensorflow(
    seed: int, first: int, position: tuple[int, int, int]
) -> None:
    keys = [(stream, seed) for stream in (0, 1, 9)]
    found = drawn(keys, (first, *position))
    for row, key in zip(found, keys, strict=True):
        expected = of_tensorflow(key, (first, *position), 4 * COUNTERS)
        np.testing.assert_array_equal(row, expected)


def test_another_key_or_counter_would_show() -> None:
    found = drawn([(1, 2)], (3, 4, 5, 6))[0]
    for key, counter in (((2, 1), (3, 4, 5, 6)), ((1, 2), (3, 4, 6, 5)), ((1, 2), (4, 4, 5, 6))):
        assert (found != of_tensorflow(key, counter, 4 * COUNTERS)).mean() > 0.99
