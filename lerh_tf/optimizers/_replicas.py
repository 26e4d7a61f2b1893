"""A weight update that several replicas of a `tf.distribute` strategy share.

Each replica holds a part of the minibatch, and its loss is its share of the whole: the shares add
up, as in all of `tf.distribute`, and Keras divides the mean loss of each part by their number R.
So each takes f to be R times its share, the mean loss of its part, finds its own m_r with noise of
its own, and all move to the mean of the m_r.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

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


def apply_unless(
    skip: tf.Tensor,
    apply: Callable[..., None],
    arguments: tuple[Any, ...],
    otherwise: Callable[[], None] = lambda: None,
    all_replicas: bool = False,
) -> None:
    """Calls `apply(*arguments)` or, where the update is to be skipped, `otherwise()`.

    Args:
        skip: scalar bool tensor, this replica's.
        apply: makes the update, on each replica.
        arguments: this replica's.
        otherwise: what to do instead.
        all_replicas: True skips where all replicas do, False where one does.
    """
    if not _merges_calls():
        tf.cond(skip, otherwise, lambda: apply(*arguments))
        return

    def across(strategy: tf.distribute.Strategy, skips: Any, *arguments: Any) -> None:
        def on_each_replica() -> None:
            strategy.extended.call_for_each_replica(apply, args=arguments)

        # A branch of a replica's own `cond` can't meet the other replicas.
        count = strategy.reduce("SUM", skips, axis=None)
        least = strategy.num_replicas_in_sync if all_replicas else 1
        tf.cond(count >= least, otherwise, on_each_replica)

    here = tf.distribute.get_replica_context()
    here.merge_call(across, args=(tf.cast(skip, tf.int32), *arguments))


def check_strategy() -> None:
    """Refuses parameter servers, whose workers do not make an update together."""
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        raise NotImplementedError(
            "The strategy must be one whose replicas make each weight update together, such as "
            f"`MirroredStrategy`. Received: {type(strategy).__name__}"
        )


def _merges_calls() -> bool:
    # A strategy of one device merges the calls of its one replica too.
    return not tf.__internal__.distribute.strategy_supports_no_merge_call()
