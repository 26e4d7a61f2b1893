"""A weight update that several replicas of a `tf.distribute` strategy share.

Each replica holds a part of the minibatch, and its loss is its share of the whole: the shares add
up, as in all of `tf.distribute`, and Keras divides the mean loss of each part by their number R.
So each takes f to be R times its share, the mean loss of its part, finds its own m_r with noise of
its own, and all move to the mean of the m_r.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lerh_tf.loss.objective import Variable

# No training makes so many weight updates.
_REPLICA_SHIFT = 48


def replicas() -> int:
    """Returns the number of replicas R that make a weight update together."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def is_eager_replica() -> bool:
    """Returns whether this is an eager call on a replica that meets others outside functions."""
    on_a_replica = tf.distribute.get_replica_context() is not None
    return on_a_replica and not tf.inside_function() and _merges_calls()


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


def apply_where(
    is_valid: tf.Tensor,
    apply: Callable[[Any, Any], None],
    gradients: Sequence[tf.Tensor | None],
    variables: Sequence[Variable],
) -> None:
    """Calls `apply(gradients, variables)` where the update is valid on all replicas.

    Args:
        is_valid: scalar bool tensor, this replica's.
        apply: makes the update, on each replica.
        gradients: one per variable; None where there is none.
        variables: the weights to move.
    """
    if not _merges_calls():
        tf.cond(is_valid, lambda: apply(gradients, variables), lambda: None)
        return

    def across(
        strategy: tf.distribute.Strategy, invalid: Any, gradients: Any, variables: Any
    ) -> None:
        def on_each_replica() -> None:
            strategy.extended.call_for_each_replica(apply, args=(gradients, variables))

        # A branch of a replica's own `cond` can't meet the other replicas.
        count = strategy.reduce("SUM", invalid, axis=None)
        tf.cond(count > 0, lambda: None, on_each_replica)

    tf.distribute.get_replica_context().merge_call(
        across, args=(tf.cast(~is_valid, tf.int32), gradients, variables)
    )


def _merges_calls() -> bool:
    # A strategy of one device merges the calls of its one replica too.
    return not tf.__internal__.distribute.strategy_supports_no_merge_call()
