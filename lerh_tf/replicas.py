"""The replicas of a `tf.distribute` strategy that make one weight update together.

What they exchange stands outside loops: an all-reduce can't stand inside `tf.while_loop` or
`tf.cond` where the strategy merges its replicas' calls.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Replicas:
    """Replicas, each of which does a part of the work of an update that is the same on all.

    Args:
        count: how many there are, L. Defaults to 1.
        split: what is split over them: "samples" where all hold the same minibatch and each draws
            its part of the samples; "batch" where each holds a part of the minibatch, evaluates it
            at all samples, and f is the mean of the replicas' losses; None where nothing is, as on
            one replica alone. Defaults to None.
    """

    count: int = 1
    split: str | None = None

    @property
    def position(self) -> tf.Tensor:
        """Which of the replicas this one is, scalar int32 tensor."""
        return tf.distribute.get_replica_context().replica_id_in_sync_group

    def total(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the sum of each tensor over the replicas, the same bits on all."""
        totals = list(tensors)
        # Those of one dtype travel together, of two they can't.
        for dtype in dict.fromkeys(tensor.dtype for tensor in totals):
            which = [i for i, tensor in enumerate(totals) if tensor.dtype == dtype]
            here = tf.distribute.get_replica_context()
            summed = here.all_reduce(tf.distribute.ReduceOp.SUM, [totals[i] for i in which])
            for i, tensor in zip(which, summed, strict=True):
                totals[i] = tf.ensure_shape(tensor, totals[i].shape)
        return totals

    def mean(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the mean of each tensor over the replicas, likewise."""
        return [total / tf.cast(self.count, total.dtype) for total in self.total(tensors)]

    def static_total(self, number: int | None) -> int | None:
        """Returns the sum of a number that each replica knows as it traces; None if one does not.

        Those of another process are taken to be as large.
        """

        def summed(strategy: tf.distribute.Strategy, number: Any) -> int | None:
            numbers = strategy.experimental_local_results(number)
            known = [each for each in numbers if each is not None]
            return sum(known) * self.count // len(numbers) if len(known) == len(numbers) else None

        if tf.__internal__.distribute.strategy_supports_no_merge_call():
            return None if number is None else number * self.count
        return tf.distribute.get_replica_context().merge_call(summed, args=(number,))

    def gathered(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the replicas' tensors, joined along the first axis; they may differ there."""
        joined = tf.distribute.get_replica_context().all_gather(tensor, axis=0)
        return tf.ensure_shape(joined, [None, *tensor.shape[1:]])

    def largest(self, number: tf.Tensor) -> tf.Tensor:
        """Returns the largest of the replicas' scalars: there is no all-reduce by maximum."""
        return tf.reduce_max(self.gathered(number[None]))

    def own(self, joined: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Returns this replica's rows of what `gathered` returned.

        Args:
            joined: shape [rows of all replicas, ...].
            rows: how many of them are this replica's, scalar int32 tensor.
        """
        before = tf.reduce_sum(self.gathered(rows[None])[: self.position])
        return joined[before : before + rows]


ALONE = Replicas()
