"""How the replicas of a `tf.distribute` strategy share a weight update, and make it.

A replica's loss is its share of the whole: the shares add up, as in all of `tf.distribute`, and
Keras divides the mean loss of each replica's rows by their number R. So f is the mean over the
replicas of R times the share, each the mean loss of its own rows.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.loss.objective import Objective
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.replicas import ALONE, Replicas, merges_calls

PARALLEL = ("auto", "samples", "batch", "means")

# No training makes so many weight updates.
_REPLICA_SHIFT = 48
# Of the loss and of what it is computed from, where replicas hold the same rows in the same order.
_ROUNDING = 1e-5


class Sharing(NamedTuple):
    """What each replica does of one weight update.

    Attributes:
        kernel: the estimator that each replica calls.
        replicas: who makes one estimate together; one alone where the replicas' are averaged.
        averaged: how many estimates, with noise of their own, are averaged.
        same_rows: whether all replicas are to hold the same minibatch.
    """

    kernel: Kernel
    replicas: Replicas = ALONE
    averaged: int = 1
    same_rows: bool = False

    @classmethod
    def of(cls, kernel: Kernel, parallel: str) -> "Sharing":
        """Returns how the replicas of the current strategy share an update.

        Args:
            kernel: the optimizer's.
            parallel: see `LocalEntropy`.
        """
        count = replicas()
        if count == 1:
            return cls(kernel)
        if parallel == "auto":
            parallel = "batch" if "batch" in kernel.splits else "means"
        if parallel == "means":
            return cls(kernel, averaged=count)
        same_rows = parallel == "samples"
        one = kernel.as_one_of(count) if same_rows else None
        if one is not None:
            return cls(one, averaged=count, same_rows=True)
        return cls(kernel, Replicas(count, parallel), same_rows=same_rows)

    @property
    def number(self) -> int:
        """How many replicas there are."""
        return max(self.replicas.count, self.averaged)

    def noise_position(self, update: tf.Tensor) -> tf.Tensor:
        """Returns where this replica's noise for a weight update stands, as int64.

        It is the same on all, but for estimates that are averaged.

        Args:
            update: scalar integer tensor, the raw count of weight updates.
        """
        update = tf.cast(update, tf.int64)
        if self.averaged == 1:
            return update
        replica = tf.cast(Replicas(self.averaged).position, tf.int64)
        return update + tf.bitwise.left_shift(replica, tf.constant(_REPLICA_SHIFT, tf.int64))

    def mean(self, estimate: Estimate) -> Estimate:
        """Returns the mean of the replicas' estimates, but for each one's chain.

        It is valid where all are. Its standard error is that of the mean, its other diagnostics
        are the replicas' means.
        """
        if self.averaged == 1:
            return estimate
        diagnostics = {n: tf.cast(v, tf.float64) for n, v in estimate.diagnostics.items()}
        error = diagnostics.pop("standard_error", None)
        squares = [] if error is None else [error**2]
        together = Replicas(self.averaged)
        *displacement, valid = together.mean(
            [*estimate.displacement, tf.cast(estimate.is_valid, tf.float64)]
        )
        means = together.mean([*diagnostics.values(), *squares])
        found = dict(zip(diagnostics, means, strict=False))
        if error is not None:
            found["standard_error"] = tf.sqrt(means[-1] / self.averaged)
        return estimate._replace(
            displacement=displacement, diagnostics=found, is_valid=valid > 1.0 - 0.5 / self.averaged
        )

    def holds_the_same(self, objective: Objective, anchor: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns whether this replica's minibatch is that of the others, where it is to be.

        Minibatches are told apart by f(x) and, since another one may have the same, by what a
        captured loss is computed from: inputs, labels, masks.

        Args:
            objective: the minibatch loss.
            anchor: x, one tensor per used variable.
        """
        if not self.same_rows:
            return tf.constant(True)
        found = [tf.cast(objective(anchor), tf.float64)]
        if isinstance(objective, ReplayedLoss):
            found += [_fingerprint(c) for c in objective.constants.values() if _is_number(c.dtype)]
        all_found = Replicas(replicas()).gathered(tf.stack(found)[None])
        first = all_found[:1]
        is_near = tf.abs(all_found - first) <= _ROUNDING * tf.maximum(tf.abs(first), 1.0)
        # A loss that is NaN, or infinite, everywhere is the kernel's failure.
        both_nan = tf.math.is_nan(all_found) & tf.math.is_nan(first)
        return tf.reduce_all(is_near | both_nan | tf.equal(all_found, first))


def checked_parallel(parallel: Any, kernel: Kernel) -> str:
    """Returns how replicas share an update, as the user named it.

    Raises:
        ValueError: there is no such way, or the kernel's work can't be split so.
    """
    known = PARALLEL if isinstance(parallel, str) else ()
    if parallel not in known:
        raise ValueError(f"`parallel` must be one of {PARALLEL}. Received: parallel={parallel!r}")
    if parallel in ("samples", "batch") and parallel not in kernel.splits:
        raise ValueError(
            f'`parallel` must be "auto" or what `{type(kernel).__name__}` can split, '
            f'{kernel.splits}, or "means". Received: parallel={parallel!r}'
        )
    return str(parallel)


def _fingerprint(tensor: tf.Tensor) -> tf.Tensor:
    """Returns a number that differs where entries do, or their order."""
    tensor = tf.cast(tensor, tf.float64)
    # Where entries are not finite counts, not their sum.
    tensor = tf.where(tf.math.is_finite(tensor), tensor, 0.5)
    if tensor.shape.rank is None:
        tensor = tf.reshape(tensor, [-1])
    while tensor.shape.rank:
        size = tf.shape(tensor)[-1:]
        weights = tf.random.stateless_normal(size, (0, tensor.shape.rank), dtype=tf.float64)
        tensor = tf.tensordot(tensor, weights, 1)
    return tensor


def _is_number(dtype: tf.DType) -> bool:
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool)


def replicas() -> int:
    """Returns the number of replicas R that make a weight update together."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def is_eager_replica() -> bool:
    """Returns whether this is an eager call on a replica that meets others outside functions."""
    on_a_replica = tf.distribute.get_replica_context() is not None
    return on_a_replica and not tf.inside_function() and merges_calls()


def whole(share: tf.Tensor, parallel: str = "auto") -> tf.Tensor:
    """Returns the mean loss of this replica's rows, given its share.

    Args:
        share: scalar tensor.
        parallel: see `LocalEntropy`.

    Raises:
        ValueError: replicas are to hold the same minibatch, and the loss is not divided by their
            number, so that the shares of one minibatch would add up to R times its loss.
    """
    if replicas() == 1:
        return share
    if parallel == "samples" and tf.is_symbolic_tensor(share) and not _is_divided(share):
        raise ValueError(
            'With `parallel="samples"` each replica\'s loss is its share of the minibatch that all '
            "hold: one over the number of replicas of it, as Keras makes of a mean. "
            'A sum is not divided: use `reduction="sum_over_batch_size"`, or multiply the loss by '
            "`1.0 / strategy.num_replicas_in_sync` at the end. "
            f"Received: a loss that ends in {share.op.type} '{share.op.name}'"
        )
    return share * tf.cast(replicas(), share.dtype)


def _is_divided(loss: tf.Tensor) -> bool:
    """Returns whether each term of a sum is visibly multiplied by one over the replicas."""
    op = loss.op
    if op.type in ("Identity", "Cast", "Reshape"):
        return _is_divided(op.inputs[0])
    if op.type in ("AddV2", "AddN", "Pack"):
        return all(map(_is_divided, op.inputs))
    if op.type == "Sum" and op.inputs[0].op.type == "Pack":
        return _is_divided(op.inputs[0])
    if op.type not in ("Mul", "RealDiv"):
        return tf.get_static_value(loss) == 0.0
    if op.type == "RealDiv":
        divisor = tf.get_static_value(op.inputs[1])
        return bool(divisor == replicas()) or _is_divided(op.inputs[0])
    factors = {f: tf.get_static_value(tensor) for f, tensor in enumerate(op.inputs)}
    share = loss.dtype.as_numpy_dtype(1.0 / replicas())
    # Beside a weight of the loss the other factor is divided.
    return any(
        bool(value == share) or (value is not None and _is_divided(op.inputs[1 - f]))
        for f, value in factors.items()
    )


def apply_unless(
    skip: tf.Tensor,
    apply: Callable[..., None],
    arguments: tuple[Any, ...],
    otherwise: Callable[[], None] = lambda: None,
) -> None:
    """Calls `apply(*arguments)` or, where the update is to be skipped, `otherwise()`.

    Args:
        skip: scalar bool tensor, the same on all replicas.
        apply: makes the update, on each replica.
        arguments: this replica's.
        otherwise: what to do instead.
    """
    if not merges_calls():
        tf.cond(skip, otherwise, lambda: apply(*arguments))
        return

    def across(strategy: tf.distribute.Strategy, skips: Any, *arguments: Any) -> None:
        def on_each_replica() -> None:
            strategy.extended.call_for_each_replica(apply, args=arguments)

        # A branch of a replica's own `cond` can't meet the other replicas.
        first = strategy.experimental_local_results(skips)[0]
        tf.cond(first, otherwise, on_each_replica)

    here = tf.distribute.get_replica_context()
    here.merge_call(across, args=(skip, *arguments))


def check_strategy() -> None:
    """Refuses parameter servers, whose workers do not make an update together."""
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        raise NotImplementedError(
            "The strategy must be one whose replicas make each weight update together, such as "
            f"`MirroredStrategy`. Received: {type(strategy).__name__}"
        )


def check_not_compiled() -> None:
    """Refuses several replicas inside a function that XLA compiles."""
    if replicas() > 1 and _is_compiled(tf.compat.v1.get_default_graph()):
        raise NotImplementedError(
            "`jit_compile` must be False where several replicas make a weight update, as for "
            "Keras's own SGD: XLA compiles no exchange between them. The inner loops are compiled "
            f"all the same (`inner_jit_compile`). Received: {replicas()} replicas"
        )


def _is_compiled(graph: tf.Graph) -> bool:
    """Returns whether XLA compiles the function that a graph is of, or one around it."""
    context = graph._get_control_flow_context()
    if context is not None and context.IsXLAContext():
        return True
    # A call of a compiled function is marked in the graph that it stands in.
    return hasattr(graph, "outer_graph") and _is_compiled(graph.outer_graph)
