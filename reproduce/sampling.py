"""Which images a run sees: minibatch order and test images, pure functions of the seed."""

import numpy as np
from numpy.typing import NDArray

from reproduce.randomness import Stream, generator


def minibatches(seed: int, images: int, batch_size: int, updates: int) -> NDArray[np.int64]:
    """Returns the training images of every weight update.

    Each epoch is a permutation of its own, and epochs follow each other without a break; fewer
    updates are a prefix of more.

    Args:
        seed: The run's seed.
        images: Size of the training set.
        batch_size: Images per update.
        updates: Weight updates.

    Returns:
        Indices of shape (updates, batch_size).
    """
    needed = batch_size * updates
    epochs = -(-needed // images)
    order = [generator(seed, Stream.ORDER, epoch).permutation(images) for epoch in range(epochs)]
    return np.concatenate(order)[:needed].reshape(updates, batch_size)


def minibatches_with_replacement(
    seed: int, images: int, batch_size: int, updates: int
) -> NDArray[np.int64]:
    """Returns the same as `minibatches`, but every image is drawn anew from all."""
    draws = [
        generator(seed, Stream.MINIBATCH, update).integers(images, size=batch_size)
        for update in range(updates)
    ]
    return np.array(draws)


def held_out_subset(seed: int, images: int, size: int, position: int = 0) -> NDArray[np.int64]:
    """Returns `size` distinct indices into the test set.

    Args:
        seed: The run's seed.
        images: Size of the test set.
        size: How many to draw.
        position: The draw's place in the run: the update it is for, 0 for one draw per seed.

    Raises:
        ValueError: More images are asked for than there are.
    """
    if size > images:
        raise ValueError(f"`test_images` must be at most {images}. Received: test_images={size}")
    return generator(seed, Stream.TEST_IMAGES, position).permutation(images)[:size]
