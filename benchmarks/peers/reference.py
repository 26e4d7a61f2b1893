"""Algorithms 3, 4 and 5 in float64 NumPy, many repetitions at once: what all systems must match."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.work import Work

Normal = Callable[[tuple[int, ...]], Array]


class Outcome(NamedTuple):
    """Where the updates ended, as displacements from the first weights.

    Attributes:
        weights: shape (repetitions, size).
        chain: the last state of SGLD's chain, of the same shape; no columns for the others.
    """

    weights: Array
    chain: Array


def run(problem: Problem, work: Work, repetitions: int, updates: int, normal: Normal) -> Outcome:
    """Makes some weight updates, `repetitions` times independently.

    Args:
        problem: weights and minibatch.
        work: the update.
        repetitions: how often.
        updates: weight updates, one after the other, on the same minibatch.
        normal: takes a shape to standard normal noise; to zeros for the update without noise.
    """
    first = [np.repeat(w[None].astype(np.float64), repetitions, 0) for w in problem.weights]
    network = _Network(problem)
    x, chain = first, first
    for _ in range(updates):
        displacement, chain = _ALGORITHMS[work.algorithm](network, work, x, chain, normal)
        x = _sum(x, displacement)
    ended = chain if work.algorithm == "sgld" else []
    return Outcome(_flat(_difference(x, first)), _flat(_difference(ended, first)))


class _Network:
    """f and its gradient at weights with a leading axis of repetitions."""

    def __init__(self, problem: Problem):
        self._images = problem.images.astype(np.float64)
        self._targets = np.eye(problem.weights[-1].size)[problem.labels]

    def loss(self, weights: Sequence[Array]) -> Array:
        _, logits = self._forward(weights)
        largest = logits.max(-1)
        normaliser = largest + np.log(np.exp(logits - largest[..., None]).sum(-1))
        return (normaliser - (logits * self._targets).sum(-1)).mean(-1)

    def gradient(self, weights: Sequence[Array]) -> list[Array]:
        hidden, logits = self._forward(weights)
        exponentials = np.exp(logits - logits.max(-1, keepdims=True))
        shares = exponentials / exponentials.sum(-1, keepdims=True)
        outer = (shares - self._targets) / len(self._targets)
        inner = outer @ weights[2].swapaxes(1, 2) * (hidden > 0)
        return [
            self._images.T @ inner,
            inner.sum(1),
            hidden.swapaxes(1, 2) @ outer,
            outer.sum(1),
        ]

    def _forward(self, weights: Sequence[Array]) -> tuple[Array, Array]:
        hidden = np.maximum(self._images @ weights[0] + weights[1][:, None], 0.0)
        return hidden, hidden @ weights[2] + weights[3][:, None]


Step = tuple[list[Array], list[Array]]


def _sgld(
    network: _Network, work: Work, x: list[Array], chain: list[Array], normal: Normal
) -> Step:
    eps = work.langevin_steps
    y = _difference(chain, x)
    total = [eps[0] * y_v for y_v in y]
    for j in range(work.samples - 1):
        gradient = network.gradient(_sum(x, y))
        y = [
            y_v - eps[j] / 2 * (g + y_v / work.tau) + np.sqrt(eps[j]) * normal(y_v.shape)
            for y_v, g in zip(y, gradient, strict=True)
        ]
        total = [t + eps[j + 1] * y_v for t, y_v in zip(total, y, strict=True)]
    return [t / eps.sum() for t in total], _sum(x, y)


def _importance(
    network: _Network, work: Work, x: list[Array], chain: list[Array], normal: Normal
) -> Step:
    total, weight = [np.zeros_like(x_v) for x_v in x], np.zeros(len(x[0]))
    for _ in range(work.samples):
        d = [np.sqrt(work.tau) * normal(x_v.shape) for x_v in x]
        w = np.exp(-work.loss_multiplier * network.loss(_sum(x, d)))
        total = [t + _scaled(w, d_v) for t, d_v in zip(total, d, strict=True)]
        weight += w
    return [_scaled(1.0 / weight, t) for t in total], chain


def _heat(
    network: _Network, work: Work, x: list[Array], chain: list[Array], normal: Normal
) -> Step:
    y = [np.zeros_like(x_v) for x_v in x]
    for a in work.step_sizes:
        mean = [np.zeros_like(x_v) for x_v in x]
        for _ in range(work.samples):
            z = [y_v + np.sqrt(work.tau) * normal(y_v.shape) for y_v in y]
            gradient = network.gradient(_sum(x, z))
            mean = [m + g / work.samples for m, g in zip(mean, gradient, strict=True)]
        y = [y_v - a * (y_v + work.tau * g) for y_v, g in zip(y, mean, strict=True)]
    return y, chain


def _descent(
    network: _Network, work: Work, x: list[Array], chain: list[Array], normal: Normal
) -> Step:
    return [-work.tau * g for g in network.gradient(x)], chain


_ALGORITHMS: dict[str, Callable[[_Network, Work, list[Array], list[Array], Normal], Step]] = {
    "sgld": _sgld,
    "is": _importance,
    "hr": _heat,
    "sgd": _descent,
}


def _sum(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    return [a + b for a, b in zip(left, right, strict=True)]


def _difference(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    return [a - b for a, b in zip(left, right, strict=False)]


def _scaled(factors: Array, arrays: Array) -> Array:
    return factors.reshape(-1, *[1] * (arrays.ndim - 1)) * arrays


def _flat(arrays: Sequence[Array]) -> Array:
    if not arrays:
        return np.zeros((0, 0))
    return np.concatenate([array.reshape(len(array), -1) for array in arrays], 1)
