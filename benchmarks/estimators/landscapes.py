"""Bias and variance of every estimator apart, where quadrature knows the mean."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.estimators.protocol import ALGORITHMS, Bias, settings
from lerh_tf import Kernel
from reproduce.landscapes.functions import FUNCTIONS, Function
from reproduce.records import Run
from reproduce.runner import Job, Outcome, Report

NAME = "estimators-bias"

_SEED = 0


def jobs(bias: Bias, execution: Mapping[str, Any]) -> list[Job]:
    """Returns a run per landscape."""
    return [
        Job(
            Run(NAME, function, _SEED, configuration(bias, function, x, tau, execution)),
            len(bias.estimators),
            partial(run, bias, function, x, tau),
        )
        for function, x, tau in bias.sites
    ]


def configuration(
    bias: Bias, function: str, x: float, tau: float, execution: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns everything that decides the numbers of a landscape."""
    return {**settings(bias, function=function, x=x, tau=tau), "execution": dict(execution)}


def run(bias: Bias, function: str, x: float, tau: float, report: Report) -> Outcome:
    """Measures every estimator on one landscape.

    Returns:
        Per estimator the bias with its standard error, and the standard deviation, all relative to
        the exact step.
    """
    from lerh_tf.oracles import Landscape, heat_step, local_entropy_step

    landscape = Landscape(FUNCTIONS[function], tau)
    steps = dict(zip(ALGORITHMS, (local_entropy_step, heat_step), strict=True))
    exact = {name: float(step(landscape, x).value[0]) - x for name, step in steps.items()}
    found = {}
    for position, each in enumerate(bias.estimators, start=1):
        step = exact[each.algorithm]
        drawn = _repeated(FUNCTIONS[function], each.kernel, x, tau, bias.repetitions) / step
        found[each.label] = {
            "bias": float(drawn.mean() - 1.0),
            "bias_error": float(drawn.std(ddof=1) / np.sqrt(len(drawn))),
            "deviation": float(drawn.std(ddof=1)),
        }
        report(position)
    return {"status": "completed", "exact": exact, "found": found}, {}


def _repeated(function: Function, kernel: Kernel, x: float, tau: float, repetitions: int) -> Any:
    """Returns m - x over repetitions of the noise."""
    import tensorflow as tf

    from lerh_tf import LossFunction, PhiloxNoise

    objective = LossFunction(lambda weights: function.loss(weights[0], tf), 1)
    anchor = [tf.constant([x], tf.float64)]

    @tf.function(autograph=False)
    def run() -> tf.Tensor:
        def once(update: tf.Tensor) -> tf.Tensor:
            noise = PhiloxNoise(_SEED, update, anchor)
            found = kernel(objective, anchor, tf.constant(tau, tf.float64), noise)
            return found.displacement[0][0]

        updates = tf.range(repetitions, dtype=tf.int64)
        return tf.map_fn(once, updates, fn_output_signature=tf.float64)

    return run.get_concrete_function()().numpy()
