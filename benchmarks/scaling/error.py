"""How the error of the mean falls with the samples of all processors together."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from benchmarks.estimators import problem
from lerh_tf import ImportanceSampling
from reproduce.data import Mnist

_TAU = 0.01
_UPDATES, _SAMPLES = 100, 100
_REFERENCE, _REFERENCE_SEED = 30_000, 101

KERNELS = {
    "importance sampling": ImportanceSampling(2),
    "its control variate": ImportanceSampling(2, control_variate=True),
    "gradients": ImportanceSampling(2, estimator="gradients"),
}
"""What is measured, by its name."""


def errors(data: Mnist, samples: Sequence[int]) -> dict[str, list[float]]:
    """Returns |m - m*| / |m* - x| on one minibatch of Table 1, after 100 weight updates.

    m* is found from 30,000 gradients under other noise.

    Args:
        data: MNIST.
        samples: numbers J.

    Returns:
        Per estimator the errors at each J.
    """
    weights = problem.weights_after(data, 0, _UPDATES, _SAMPLES)
    (batch,) = problem.batches(data, 0, _UPDATES, 1)
    reference = ImportanceSampling(_REFERENCE, estimator="gradients")
    exact, _ = problem.estimator(reference, _REFERENCE_SEED)(weights, batch, _TAU, 0)

    def error(kernel: ImportanceSampling) -> float:
        found, _ = problem.estimator(kernel, 0)(weights, batch, _TAU, 0)
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))

    return {
        name: [error(dataclasses.replace(kernel, samples=count)) for count in samples]
        for name, kernel in KERNELS.items()
    }
