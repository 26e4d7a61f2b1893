"""Algorithms 3 and 5 line by line in NumPy, on noise that the caller draws.

Weights are one flat vector. They share no code with the kernels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Gradient = Callable[[Array], Array]


class Chain(NamedTuple):
    """What Algorithm 3 computes: the weighted mean and the states x^1, ..., x^J."""

    mean: Array
    states: list[Array]


def sgld(
    grad_f: Gradient, x: Array, tau: float, eps: Array, eta: Array, start: Array | None = None
) -> Chain:
    """Algorithm 3.

    Args:
        grad_f: the gradient of f at one point.
        x: the weights x_k.
        tau: variance of the Gaussian.
        eps: eps_1, ..., eps_J.
        eta: eta_1, ..., eta_{J-1}, shape [J - 1, d].
        start: x^1; x_k if not given.
    """
    states = [x if start is None else start]
    for eps_j, eta_j in zip(eps[:-1], eta, strict=True):
        x_j = states[-1]
        states.append(x_j - eps_j / 2 * (grad_f(x_j) - (x - x_j) / tau) + eta_j)
    return Chain(np.average(states, axis=0, weights=eps), states)


class Root(NamedTuple):
    """What Algorithm 5 computes: the last state and the last estimate of h."""

    x: Array
    h: Array


def robbins_monro(grad_f: Gradient, x: Array, tau: float, a: Array, n: Array) -> Root:
    """Algorithm 5.

    Args:
        grad_f: the gradient of f at one point.
        x: the weights x_k.
        tau: variance of the Gaussian.
        a: a_1, ..., a_J.
        n: standard normal numbers, shape [J, M, d].
    """
    x_j = h = x
    for a_j, n_j in zip(a, n, strict=True):
        z = x_j + np.sqrt(tau) * n_j
        h = x_j - x + tau * np.mean([grad_f(z_m) for z_m in z], axis=0)
        x_j = x_j - a_j * h
    return Root(x_j, h)
