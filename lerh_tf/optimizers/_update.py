"""One weight update in tensors: how m is found and g made of it."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from lerh_tf.exact.convolutions import with_products
from lerh_tf.exact.hidden import with_hidden_layers
from lerh_tf.exact.subspace import Subspace, find_subspace
from lerh_tf.kernels.base import Estimate, Kernel, all_finite, dot, size_of, widest_dtype
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.loss.compilation import is_compilable
from lerh_tf.loss.objective import Objective, displaced
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.noise import PhiloxNoise
from lerh_tf.optimizers._inner import is_valid_tau
from lerh_tf.optimizers._replicas import Sharing
from lerh_tf.optimizers._report import COMMON
from lerh_tf.replicas import Replicas


class Update(NamedTuple):
    """What one weight update has found, before any variable moves.

    Attributes:
        gradients: g = (x - m) / tau per variable, zero where the update is not valid, None for
            variables that the loss does not depend on.
        chain: the chain's last state, one position per used variable; empty for none.
        diagnostics: scalars by name.
        fails: whether tau or the kernel failed, m or g left the dtype of the weights, replicas do
            not hold the minibatch that they are to share, or nothing was looked for.
    """

    gradients: list[tf.Tensor | None]
    chain: list[tf.Tensor]
    diagnostics: dict[str, tf.Tensor | float]
    fails: list[tf.Tensor]


def find_update(
    sharing: Sharing,
    objective: Objective,
    anchor: Sequence[tf.Tensor],
    start: Sequence[tf.Tensor],
    tau: tf.Tensor,
    seed: int,
    update: tf.Tensor,
    subspace: str | bool,
    inner_jit_compile: str | bool,
    loss_scale: float,
) -> Update:
    """Estimates m and returns g = (x - m) / tau, of each replica an equal share.

    Args:
        sharing: the estimator of m, and what of its work this replica does.
        objective: the minibatch loss.
        anchor: the weights x, one tensor per used variable.
        start: where the chain starts, one position per used variable; empty for none.
        tau: variance of the Gaussian (paper's tau), scalar tensor.
        seed: of the noise.
        update: scalar integer tensor, the count of weight updates.
        subspace: "auto" or False.
        inner_jit_compile: whether XLA compiles the inner loops: "auto", True or False.
        loss_scale: what Keras believes the loss was multiplied by, and divides g by.
    """
    kernel, replicas = sharing.kernel, sharing.replicas
    scalar = tf.cast(tau, widest_dtype([x.dtype for x in anchor]))
    noise = functools.partial(PhiloxNoise, seed, sharing.noise_position(update))
    holds_the_same = sharing.holds_the_same(objective, anchor)
    objective.jit_compile = inner_jit_compile
    if isinstance(objective, ReplayedLoss):
        objective = with_products(objective, anchor)
    reduced = _subspace_of(kernel, objective, anchor, replicas) if subspace else None
    estimated: Callable[..., Estimate] = kernel
    # A kernel that splits nothing need not know of replicas.
    if replicas.split:
        estimated = functools.partial(estimated, replicas=replicas)
    if reduced is not None:
        reduced = reduced._replace(objective=_local(kernel, reduced.objective, anchor, replicas))
        estimate = estimate_in_subspace(estimated, reduced, anchor, scalar, noise, start, update)
    else:
        if subspace:
            objective = _local(kernel, objective, anchor, replicas)
        drawn = noise(objective.noise_like(anchor))
        estimate = estimated(objective, anchor, scalar, drawn, start, update)
    _check(kernel, estimate, anchor)
    estimate = sharing.mean(estimate)

    has_tau = is_valid_tau(tau)
    divisor, scale = tf.where(has_tau, tau, tf.ones_like(tau)), -loss_scale / sharing.number
    found = [
        tf.cast(scale * d / tf.cast(divisor, d.dtype), x.dtype)
        for d, x in zip(estimate.displacement, anchor, strict=True)
    ]
    is_in_dtype = all_finite([*displaced(anchor, estimate.displacement), *found])
    has_problem = has_tau & holds_the_same
    has_mean = has_problem & estimate.is_valid
    fails = [
        ~has_tau,
        has_problem & ~estimate.is_valid,
        has_mean & ~is_in_dtype,
        has_tau & ~holds_the_same,
        tf.constant(False),
    ]
    is_valid = ~tf.reduce_any(fails)
    estimate = estimate.dropped_unless(is_valid, start)
    gradients = iter([tf.where(is_valid, g, tf.zeros_like(g)) for g in found])
    return Update(
        [next(gradients) if is_used else None for is_used in objective.is_used],
        estimate.chain,
        _diagnostics(estimate, objective, reduced, anchor),
        fails,
    )


def no_update(anchor: Sequence[tf.Tensor], is_used: Sequence[bool], kernel: Kernel) -> Update:
    """Returns an update that fails: for a trace that is never run, which need not look for one.

    Args:
        anchor: the weights x, one tensor per used variable.
        is_used: per variable, whether the loss depends on it.
        kernel: the estimator of m.
    """
    gradients = iter([tf.zeros_like(x) for x in anchor])
    told = dict.fromkeys((*COMMON, *kernel.diagnostic_names), tf.constant(0.0))
    fails = [False, False, False, False, True]
    return Update(
        [next(gradients) if used else None for used in is_used],
        [tf.identity(x) for x in anchor] if kernel.has_chain else [],
        told,
        [tf.constant(fail) for fail in fails],
    )


def _check(kernel: Kernel, estimate: Estimate, anchor: Sequence[tf.Tensor]) -> None:
    """Raises a `ValueError` where a kernel of one's own returns less than it declares."""
    name, count = type(kernel).__name__, len(anchor)
    states = count if kernel.has_chain else 0
    rules = (
        (len(estimate.displacement) == count, f"`displacement` must hold {count} tensors"),
        (len(estimate.chain) == states, f"`chain` must hold {states} tensors"),
        (
            estimate.diagnostics.keys() == set(kernel.diagnostic_names),
            f"`diagnostics` must hold the declared {list(kernel.diagnostic_names)}",
        ),
        (tf.is_tensor(estimate.is_valid), "`is_valid` must be a scalar bool tensor"),
    )
    for holds, rule in rules:
        if not holds:
            raise ValueError(f"{rule} in what `{name}` returns. Received: {estimate!r}")


def _subspace_of(
    kernel: Kernel, objective: Objective, anchor: Sequence[tf.Tensor], replicas: Replicas
) -> Subspace | None:
    if not (kernel.reducible and isinstance(objective, ReplayedLoss)):
        return None
    return find_subspace(objective, [x.shape for x in anchor], replicas)


def _local(
    kernel: Kernel, objective: Objective, anchor: Sequence[tf.Tensor], replicas: Replicas
) -> Objective:
    """Returns the loss with its large hidden layers reparameterised, where the kernel can.

    Not where the rows that enter a layer lie on several replicas.
    """
    can = kernel.draws_locally and replicas.split != "batch"
    if not (can and isinstance(objective, ReplayedLoss)):
        return objective
    return with_hidden_layers(objective, [x.shape for x in anchor], kernel.differentiates)


def _diagnostics(
    estimate: Estimate,
    objective: Objective,
    subspace: Subspace | None,
    anchor: Sequence[tf.Tensor],
) -> dict[str, tf.Tensor | float]:
    """Returns the diagnostics of one weight update by name: those of all, and the kernel's."""
    evaluated = objective if subspace is None else subspace.objective
    dimensions = size_of(anchor)
    saved = dimensions - size_of(evaluated.noise_like(anchor))
    return {
        "step_norm": tf.sqrt(dot(estimate.displacement, estimate.displacement)),
        "dimensions": dimensions,
        "sampled_dimensions": (dimensions if subspace is None else subspace.size) - saved,
        "compiled": float(is_compilable(evaluated)),
        "vectorized": float(evaluated.is_vectorized),
        **estimate.diagnostics,
    }
