"""From a protocol's method to the Keras optimizer that carries it out."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import keras

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    Kernel,
    LangevinSteps,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
    Scoping,
)
from reproduce.protocols import (
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    HeatRegularizationSolved,
    LocalEntropyByControlledSGLD,
    LocalEntropyByGradients,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)


class RecordedSampling(ImportanceSampling):
    """Importance sampling whose `standard_error` is the delta method's alone, as in the records."""

    def _missed_variance(self, *_: object) -> float:
        return 0.0


# Records keep their form: what the library tells besides, now or later, is not in them.
_RECORDED_OF_ALL = ("step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized")
_RECORDED: Mapping[type[Kernel], tuple[str, ...]] = {
    SGLD: ("standard_error", "non_finite"),
    RecordedSampling: ("effective_sample_size", "local_entropy", "standard_error", "non_finite"),
    ImportanceSampling: ("effective_sample_size", "standard_error", "non_finite"),
    RobbinsMonro: ("residual", "non_finite"),
}
_RECORDED_OF_SOLVED = ("standard_error", "steps")


def optimizer(
    method: Method, seed: int, subspace: str | bool = "auto"
) -> keras.optimizers.Optimizer:
    """Builds a fresh optimizer.

    Args:
        method: The hyper-parameters.
        seed: The run's seed, for methods that draw noise.
        subspace: "auto" samples in the subspace that the minibatch sees, False all weights: the
            same in distribution, other draws.

    Raises:
        TypeError: No optimizer is known for the type of `method`.
    """
    drawn: dict[str, Any] = {"seed": seed, "subspace": subspace}
    match method:
        case GradientDescent():
            return keras.optimizers.SGD(learning_rate=method.learning_rate)
        case LocalEntropyByImportanceSampling():
            recorded = RecordedSampling(method.samples, loss_multiplier=method.loss_multiplier)
            return LocalEntropy(method.tau, recorded, **drawn)
        case LocalEntropyBySGLD():
            tau = Scoping(method.tau, method.tau1) if method.tau1 else method.tau
            chain = SGLD(
                method.samples,
                step_sizes=LangevinSteps(method.offset),
                noise=method.noise,
                persistent=method.persistent,
                restart=method.restart,
            )
            return LocalEntropy(tau, chain, **drawn)
        case HeatRegularizationByRobbinsMonro():
            steps = RobbinsMonroSteps(method.c, method.alpha, method.growing)
            solver = RobbinsMonro(method.steps, method.samples, step_sizes=steps)
            return HeatRegularization(method.tau, solver, **drawn)
        case LocalEntropyByGradients():
            sampler = ImportanceSampling(method.samples, estimator="gradients")
            return LocalEntropy(method.tau, sampler, learning_rate=method.learning_rate, **drawn)
        case LocalEntropyByControlledSGLD():
            return LocalEntropy(method.tau, controlled_sgld(method.samples, method.step), **drawn)
        case HeatRegularizationSolved():
            solver = RobbinsMonro(
                method.steps, method.samples, step_sizes=AVERAGING, tolerance=method.tolerance
            )
            return HeatRegularization(method.tau, solver, **drawn)
    raise TypeError(f"`method` must have an optimizer. Received: method={method!r}")


@cache
def controlled_sgld(samples: int, step: float, persistent: bool = False) -> SGLD:
    """Returns Algorithm 3 with a control variate and step sizes that are all step * tau."""
    return SGLD(
        samples,
        step_sizes=keras.optimizers.schedules.ExponentialDecay(step, 1, 1.0),
        relative_to_tau=True,
        persistent=persistent,
        control_variate=True,
    )


AVERAGING = RobbinsMonroSteps(1.0, 1.0, largest=0.5)
"""Step sizes min(1/2, 1/j), which average the gradients of all moves."""


def diagnostics(optimizer: keras.optimizers.Optimizer) -> dict[str, float]:
    """Returns what is recorded of the last weight update's estimate, by name; SGD's is empty."""
    kernel = _kernel(optimizer)
    if kernel is None:
        return {}
    solved = _RECORDED_OF_SOLVED if getattr(kernel, "tolerance", 0.0) else ()
    found = optimizer.diagnostics
    return {name: found[name] for name in (*_RECORDED_OF_ALL, *_RECORDED[type(kernel)], *solved)}


def raise_failure(optimizer: keras.optimizers.Optimizer) -> None:
    """Raises `tf.errors.InvalidArgumentError` where the last weight update was not valid."""
    if _kernel(optimizer) is not None:
        optimizer.report_failures()


def failure(optimizer: keras.optimizers.Optimizer) -> str | None:
    """Returns what the optimizer's error says when its estimate found nothing finite."""
    kernel = _kernel(optimizer)
    return None if kernel is None else kernel.failure


def _kernel(optimizer: keras.optimizers.Optimizer) -> Kernel | None:
    match optimizer:
        case LocalEntropy():
            return optimizer.sampler
        case HeatRegularization():
            return optimizer.solver
    return None
