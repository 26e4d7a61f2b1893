"""Exact Algorithms 1 and 2: do the regularized losses fall at every step?"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lerh_tf.oracles import Landscape, Value, heat_step, iterate, local_entropy_step
from reproduce.landscapes.functions import FUNCTIONS, Array
from reproduce.theory.identities import Measures, Numbers, derivative, gathered
from reproduce.theory.protocol import Site


class _Algorithm(NamedTuple):
    """One of the two algorithms.

    Attributes:
        step: The exact weight update.
        value: The regularized loss it minimises.
        new: Whether the gradient step it amounts to takes the gradient at the new point.
    """

    step: Callable[[Landscape, Array], Value]
    value: Callable[[Landscape, Array], Value]
    new: bool


ALGORITHMS = {
    "local_entropy": _Algorithm(local_entropy_step, Landscape.local_entropy, new=False),
    "heat": _Algorithm(heat_step, Landscape.heat, new=True),
}


def measure(site: Site, algorithm: str) -> Measures:
    """Runs an algorithm from every start at every tau of a site.

    Args:
        site: Where.
        algorithm: `"local_entropy"`, Algorithm 1, or `"heat"`, Algorithm 2.

    Returns:
        One number per weight update under each name. `decrease`: of the regularized loss;
        `quadrature_error`: how far that may be off; `violation`: by how much the loss rose beyond
        that error, 0 where it did not;
        `surplus`: the decrease less |x_{k+1} - x_k|^2 / 2 tau, plus that error; `gradient_step`:
        the distance to the step of gradient descent, explicit or implicit, with rate tau.
    """
    function, chosen = FUNCTIONS[site.function], ALGORITHMS[algorithm]
    return gathered(
        number
        for landscape in (Landscape(function, tau) for tau in site.taus)
        for start in site.starts
        for number in _along(landscape, chosen, iterate(chosen.step, landscape, start, site.steps))
    )


def _along(landscape: Landscape, algorithm: _Algorithm, path: Array) -> Numbers:
    tau, values = landscape.tau, [algorithm.value(landscape, x) for x in path]

    def value(x: Array) -> Value:
        return algorithm.value(landscape, x)

    for k, (x, new) in enumerate(pairwise(path)):
        decrease = float(values[k].value - values[k + 1].value)
        error = values[k].error + values[k + 1].error
        yield "decrease", decrease
        yield "quadrature_error", error
        yield "violation", max(-decrease - error, 0.0)
        yield "surplus", decrease + error - np.square(new - x).sum() / (2 * tau)
        slope = derivative(value, new if algorithm.new else x, float(np.sqrt(tau)))
        yield "gradient_step", float(np.abs(new - (x - tau * slope)).max())
