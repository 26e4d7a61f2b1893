"""The replicas of a `tf.distribute` strategy that make one weight update together.

What they exchange stands outside a replica's own `tf.while_loop` and `tf.cond`: an all-reduce can't
stand inside where the strategy merges its replicas' calls. `Replicas.while_loop` is one of all.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tensorflow as tf

State = TypeVar("State", bound=tuple[Any, ...])


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
            summed = _summed([totals[i] for i in which])
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

        if not merges_calls():
            return None if number is None else number * self.count
        return tf.distribute.get_replica_context().merge_call(summed, args=(number,))

    def gathered(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the replicas' tensors, joined along the first axis; they may differ there."""
        here = tf.distribute.get_replica_context()
        if merges_calls():
            joined = here.merge_call(
                lambda strategy, each: strategy.gather(each, 0), args=(tensor,)
            )
        else:
            joined = here.all_gather(tensor, axis=0)
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

    def while_loop(
        self,
        goes_on: Callable[..., tf.Tensor],
        body: Callable[..., Any],
        state: State,
    ) -> State:
        """Returns the last state of a `tf.while_loop` in whose body the replicas may meet.

        The states are the same on all but for rounding, since neither processors nor graphs of
        equal operations need be alike. So where replicas merge their calls they go on from the
        first one's, and else they go on as long as any of them would.

        Args:
            goes_on: takes a state to whether there is another, the same on all.
            body: takes a state to the next.
            state: nests of tensors, the same on all.
        """
        if not self.split:
            # The next state's noise is drawn meanwhile, where `goes_on` need not know this one.
            return tf.while_loop(goes_on, body, state, parallel_iterations=2)
        if not merges_calls():

            def voted(_: tf.Tensor, *state: Any) -> tuple[Any, ...]:
                new = body(*state)
                (votes,) = self.total([tf.cast(goes_on(*new), tf.float32)])
                return (votes > 0.0, *new)

            start = (goes_on(*state), *state)
            return tf.while_loop(lambda more, *_: more, voted, start, parallel_iterations=1)[1:]

        def across(strategy: tf.distribute.Strategy, goes_on: Any, body: Any, *state: Any) -> Any:
            def first(values: Any) -> Any:
                return tf.nest.map_structure(
                    lambda each: strategy.experimental_local_results(each)[0], values
                )

            def each_moves(*state: Any) -> Any:
                call = strategy.extended.call_for_each_replica
                return first(call(lambda own, *state: own(*state), args=(body, *state)))

            return tf.while_loop(first(goes_on), each_moves, first(state), parallel_iterations=1)

        here = tf.distribute.get_replica_context()
        return here.merge_call(across, args=(goes_on, body, *state))


def _summed(tensors: list[tf.Tensor]) -> Sequence[tf.Tensor]:
    here = tf.distribute.get_replica_context()
    if not merges_calls():
        return here.all_reduce(tf.distribute.ReduceOp.SUM, tensors)

    # A context's `all_reduce` registers a gradient function per graph, which keeps the graph, inner
    # loops and all, for good.
    def across(strategy: tf.distribute.Strategy, *tensors: Any) -> Sequence[Any]:
        pairs = [(each, each) for each in tensors]
        return strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)

    return here.merge_call(across, args=tuple(tensors))


def merges_calls() -> bool:
    """Returns whether replicas of the current strategy meet by merging their calls.

    A strategy of one device merges the calls of its one replica too.
    """
    return not tf.__internal__.distribute.strategy_supports_no_merge_call()


ALONE = Replicas()
