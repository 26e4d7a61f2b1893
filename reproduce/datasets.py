"""The minibatches of a training as a dataset of TensorFlow's."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray


def gathered(arrays: Iterable[Any], order: NDArray[np.int64]) -> tf.data.Dataset:
    """Returns the minibatches in their order, each cut out of the arrays as it is needed.

    TensorFlow does not tune them: its thread sleeps for longer and longer, up to a minute, and an
    iterator's end may have to wait for it.

    Args:
        arrays: The training set, images and labels.
        order: Indices of shape (updates, batch_size).
    """
    parts = [tf.constant(part) for part in arrays]
    found = tf.data.Dataset.from_tensor_slices(order).map(
        lambda chosen: tuple(tf.gather(part, chosen) for part in parts)
    )
    options = tf.data.Options()
    options.autotune.enabled = False
    return found.with_options(options)
