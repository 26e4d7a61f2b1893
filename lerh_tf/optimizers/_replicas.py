"""A weight update that several replicas of a `tf.distribute` strategy share.

Each replica holds a part of the minibatch, and its loss is its share of the whole: the shares add
up, as in all of `tf.distribute`, and Keras divides the mean loss of each part by their number R.
So each takes f to be R times its share, the mean loss of its part, finds its own m_r with noise of
its own, and all move to the mean of the m_r.
"""

import tensorflow as tf

# No training makes so many weight updates.
_REPLICA_SHIFT = 48


def replicas() -> int:
    """Returns the number of replicas R that make a weight update together."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def is_eager_replica() -> bool:
    """Returns whether this is an eager call on one of several replicas."""
    on_a_replica = tf.distribute.get_replica_context() is not None
    return replicas() > 1 and on_a_replica and not tf.inside_function()


def whole(share: tf.Tensor) -> tf.Tensor:
    """Returns the mean loss of this replica's part of the minibatch, given its share."""
    return share if replicas() == 1 else share * tf.cast(replicas(), share.dtype)


def noise_position(update: tf.Tensor) -> tf.Tensor:
    """Returns where this replica's noise for a weight update stands, as int64.

    Args:
        update: scalar integer tensor, the raw count of weight updates.
    """
    update = tf.cast(update, tf.int64)
    if replicas() == 1:
        return update
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return update + tf.bitwise.left_shift(
        tf.cast(replica, tf.int64), tf.constant(_REPLICA_SHIFT, tf.int64)
    )
