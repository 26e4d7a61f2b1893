"""Algorithms 3, 4 and 5 on any function of tensors, without an optimizer."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lerh_tf.kernels.base import Estimate, Kernel, Samples, widest_dtype
from lerh_tf.kernels.importance import ImportanceSampling
from lerh_tf.kernels.sgld import SGLD
from lerh_tf.loss.objective import LossFunction, Objective, Weights, displaced
from lerh_tf.noise import PhiloxNoise
from lerh_tf.schedules import positive_tau


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
        TypeError: `kernel` is no `Kernel`, `f` can't be called, or `weights` is no list.
        ValueError: `weights` is empty, of another dtype or another number than f takes, `tau` or
            `seed` is out of its range, or `tau` one that the kernel refuses.

    References:
        Algorithms 3, 4 and 5.
    """
    problem = _Problem.of(kernel, f, weights, tau, seed)

    def run() -> Estimate:
        chain = problem.anchor if kernel.has_chain else []
        return kernel(*problem, chain)._replace(complement=None)

    found = _called(run)
    return EstimatedMean(
        displaced(problem.anchor, found.displacement),
        {name: float(value) for name, value in found.diagnostics.items()},
        bool(found.is_valid),
    )


def sample(
    kernel: ImportanceSampling | SGLD,
    f: Callable[[Weights], tf.Tensor] | Objective,
    weights: Sequence[Any],
    *,
    tau: float,
    seed: int = 0,
) -> Samples:
    """Draws from q(x') ~ exp(-f(x') - |x - x'|^2 / 2 tau): an ensemble, or a posterior near x.

    The weighted mean of the sample is what `estimate` returns, but for the noise that a control
    variate or `estimator="gradients"` takes off that. All of it is in memory at once.

    Args:
        kernel: the sampler.
        f: as for `estimate`.
        weights: x, as for `estimate`.
        tau: variance of the Gaussian (paper's tau), a positive number.
        seed: integer in [0, 2**32). Defaults to 0.

    Returns:
        J positions, one tensor of shape [J, *shape] per weight, and their J weights.

    Raises:
        TypeError: `kernel` has no `sample`, or as `estimate`.
        ValueError: as `estimate`.

    References:
        Algorithms 3 and 4.
    """
    problem = _Problem.of(kernel, f, weights, tau, seed)
    if not hasattr(kernel, "sample"):
        raise TypeError(
            "`kernel` must be a sampler, `ImportanceSampling` or `SGLD`. "
            f"Received: kernel={kernel!r}"
        )
    return _called(lambda: kernel.sample(*problem))


class _Problem(NamedTuple):
    """What a kernel is called with, in its order."""

    objective: Objective
    anchor: list[tf.Tensor]
    tau: tf.Tensor
    noise: PhiloxNoise

    @classmethod
    def of(cls, kernel: Any, f: Any, weights: Any, tau: Any, seed: Any) -> "_Problem":
        if not isinstance(kernel, Kernel):
            raise TypeError(
                f"`kernel` must be an instance of a `lerh_tf.Kernel`. Received: kernel={kernel!r}"
            )
        if not callable(f):
            raise TypeError(
                "`f` must be a function from a list of tensors to the scalar loss, or an "
                f"`Objective`. Received: f={f!r}"
            )
        if not isinstance(weights, (list, tuple)):
            raise TypeError(
                f"`weights` must be a list, one array for each that f takes. Received: {weights!r}"
            )
        anchor = [tf.convert_to_tensor(weight) for weight in weights]
        objective = f if isinstance(f, Objective) else LossFunction(f, len(anchor))
        _check_weights(anchor, objective)
        tau = positive_tau(tau)
        kernel.check_tau(tau)
        scalar = tf.constant(tau, widest_dtype([x.dtype for x in anchor]))
        noise = PhiloxNoise(seed, tf.constant(0, tf.int64), anchor)
        return cls(objective, anchor, scalar, noise)


def _called(function: Callable[[], Any]) -> Any:
    # A concrete function: of a `tf.function` for each call TensorFlow warns.
    return tf.function(function, autograph=False).get_concrete_function()()


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
