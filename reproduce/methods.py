"""From a protocol's method to the Keras optimizer that carries it out."""

from functools import singledispatch

import keras

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
    from lerh_tf import ImportanceSampling, LocalEntropy

    sampler = ImportanceSampling(samples=method.samples, loss_multiplier=method.loss_multiplier)
    return LocalEntropy(tau=method.tau, sampler=sampler, seed=seed)
