"""From a protocol's method to the Keras optimizer that carries it out."""

from functools import singledispatch

import keras

from lerh_tf import HeatRegularization, ImportanceSampling, LocalEntropy
from reproduce.protocols import GradientDescent, LocalEntropyByImportanceSampling, Method


@singledispatch
def optimizer(method: Method, seed: int) -> keras.optimizers.Optimizer:
    """Builds a fresh optimizer.

    Args:
        method: The hyper-parameters.
        seed: The run's seed, for methods that draw noise.

    Raises:
        TypeError: No optimizer is registered for the type of `method`.
    """
    raise TypeError(f"`method` must have an optimizer. Received: method={method!r}")


@optimizer.register
def _(method: GradientDescent, seed: int) -> keras.optimizers.Optimizer:
    return keras.optimizers.SGD(learning_rate=method.learning_rate)


@optimizer.register
def _(method: LocalEntropyByImportanceSampling, seed: int) -> keras.optimizers.Optimizer:
    sampler = ImportanceSampling(samples=method.samples, loss_multiplier=method.loss_multiplier)
    return LocalEntropy(tau=method.tau, sampler=sampler, seed=seed)


def diagnostics(optimizer: keras.optimizers.Optimizer) -> dict[str, float]:
    """Returns what the estimate of the last weight update reported, by name; SGD's is empty."""
    if isinstance(optimizer, LocalEntropy | HeatRegularization):
        return optimizer.diagnostics
    return {}


def failure(optimizer: keras.optimizers.Optimizer) -> str | None:
    """Returns what the optimizer's error says when its estimate found nothing finite."""
    match optimizer:
        case LocalEntropy():
            return optimizer.sampler.failure
        case HeatRegularization():
            return optimizer.solver.failure
        case _:
            return None
