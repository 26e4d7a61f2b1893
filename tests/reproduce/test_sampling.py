import numpy as np
import pytest

from reproduce.randomness import Stream, generator, integer_seed
from reproduce.sampling import held_out_subset, minibatches, minibatches_with_replacement


def test_minibatches_cover_each_epoch_once_in_another_order() -> None:
    order = minibatches(0, images=60, batch_size=20, updates=6)
    first, second = order[:3].ravel(), order[3:].ravel()
    np.testing.assert_array_equal(np.sort(first), np.arange(60))
    np.testing.assert_array_equal(np.sort(second), np.arange(60))
    assert not np.array_equal(first, second)


def test_minibatches_fewer_updates_are_a_prefix() -> None:
    many = minibatches(7, images=50, batch_size=20, updates=9)
    np.testing.assert_array_equal(minibatches(7, images=50, batch_size=20, updates=4), many[:4])


def test_minibatches_with_replacement_repeat_images_and_fewer_updates_are_a_prefix() -> None:
    many = minibatches_with_replacement(7, images=50, batch_size=20, updates=40)
    assert many.shape == (40, 20)
    assert set(many.ravel()) == set(range(50))
    assert len(set(many[0])) < 20
    few = minibatches_with_replacement(7, images=50, batch_size=20, updates=4)
    np.testing.assert_array_equal(few, many[:4])
    # Each image 16 times of 800 on average, with a variance of about 15.7.
    counts = np.bincount(many.ravel())
    assert 8 < counts.var() < 28


def test_minibatches_depend_on_the_seed() -> None:
    one, other = (minibatches(seed, 100, 10, 5) for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_held_out_subset_is_distinct_and_anew_at_each_position() -> None:
    first, again, later = (held_out_subset(0, 500, 100, position) for position in (0, 0, 10))
    assert len(set(first)) == 100
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, later)


def test_held_out_subset_refuses_more_than_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"`test_images` must be at most 10\. Received: test_images=11"
    ):
        held_out_subset(0, 10, 11)


def test_generator_streams_positions_and_seeds_are_apart() -> None:
    keys = [
        (seed, stream, position)
        for seed in (0, 1, 2**32 - 1)
        for stream in Stream
        for position in (0, 1, 2)
    ]
    draws = {generator(*key).integers(2**63) for key in keys}
    assert len(draws) == len(keys)
    assert integer_seed(0, Stream.WEIGHTS) == integer_seed(0, Stream.WEIGHTS)
