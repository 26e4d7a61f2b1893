"""Algorithms 3, 4 and 5 on any function of tensors, without an optimizer."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lerh_tf._checks import checked_seed, positive_float
from lerh_tf.kernels.base import Estimate, Kernel, displaced, widest_dtype
from lerh_tf.loss.objective import LossFunction, Objective, Weights
from lerh_tf.noise import PhiloxNoise


class EstimatedMean(NamedTuple):
    """What a kernel found, on the host.

    Attributes:
        mean: m, one tensor per weight, of its shape and dtype; x where it is not valid.
        diagnostics: the kernel's, by name.
        is_valid: False where nothing finite was found.
    """

    mean: list[tf.Tensor]
    diagnostics: dict[str, float]
    is_valid: bool


def estimate(
    kernel: Kernel,
    f: Callable[[Weights], tf.Tensor] | Objective,
    weights: Sequence[Any],
    *,
    tau: float,
    seed: int = 0,
) -> EstimatedMean:
    """Estimates the mean m of the Gaussian nearest to q(x') ~ exp(-f(x') - |x - x'|^2 / 2 tau).

    That is what one weight update moves to. The kernel is compiled anew at each call; many updates
    of one function are faster by `LocalEntropy(...).step`.

        f = lambda w: tf.reduce_sum((w[0] ** 2 - 1.0) ** 2)
        m, diagnostics, _ = lerh_tf.estimate(lerh_tf.SGLD(500), f, [np.zeros(3)], tau=0.1)

    Args:
        kernel: the estimator, such as `ImportanceSampling()` or one of your own.
        f: takes a list of tensors, of the weights' shapes and dtypes, to the scalar loss; or an
            `Objective`.
        weights: x, arrays, tensors or variables of a floating dtype, one for each that f takes.
        tau: variance of the Gaussian (paper's tau), a positive number.
        seed: integer in [0, 2**32). Defaults to 0.

    Returns:
        m, the kernel's diagnostics, and whether they are valid. A Markov chain starts at x.

    Raises:
        TypeError: `kernel` is no `Kernel`, or `f` can't be called.
        ValueError: `weights` is empty, of another dtype or another number than f takes, `tau` or
            `seed` is out of its range, or `tau` one that the kernel refuses.

    References:
        Algorithms 3, 4 and 5.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"`kernel` must be a `lerh_tf.Kernel`. Received: kernel={kernel!r}")
    if not callable(f):
        raise TypeError(
            "`f` must be a function from a list of tensors to the scalar loss, or an `Objective`. "
            f"Received: f={f!r}"
        )
    anchor = [tf.convert_to_tensor(weight) for weight in weights]
    objective = f if isinstance(f, Objective) else LossFunction(f, len(anchor))
    _check_weights(anchor, objective)
    kernel.check_tau(positive_float("tau", tau))
    scalar = tf.constant(tau, widest_dtype([x.dtype for x in anchor]))
    seed = checked_seed(seed)

    def run() -> Estimate:
        noise = PhiloxNoise(seed, tf.constant(0, tf.int64), anchor)
        chain = anchor if kernel.has_chain else []
        return kernel(objective, anchor, scalar, noise, chain)._replace(complement=None)

    # A concrete function: of a `tf.function` for each call TensorFlow warns.
    found = tf.function(run, autograph=False).get_concrete_function()()
    return EstimatedMean(
        displaced(anchor, found.displacement),
        {name: float(value) for name, value in found.diagnostics.items()},
        bool(found.is_valid),
    )


def _check_weights(weights: Sequence[tf.Tensor], objective: Objective) -> None:
    if not weights or not all(weight.dtype.is_floating for weight in weights):
        dtypes = [weight.dtype.name for weight in weights]
        raise ValueError(
            f"`weights` must hold at least one array, of floating dtypes. Received: {dtypes}"
        )
    if sum(objective.is_used) != len(weights):
        raise ValueError(
            "`weights` must hold one array for each that the objective is a function of. "
            f"Received: {len(weights)}, where the objective has {sum(objective.is_used)}"
        )
