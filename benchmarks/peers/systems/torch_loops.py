# mypy: disable-error-code="import-not-found"
"""Algorithms 3, 4 and 5 as one would write them in PyTorch: eager, in place, noise in buffers."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.systems.torch_device import array, finish, tensor
from benchmarks.peers.work import Work

Weights = list[Any]
Step = Callable[[Weights, Weights], tuple[Weights, Weights]]
Fill = Callable[[Any], Any]

# Measured: twice as fast as one sample at a time, and larger chunks gain nothing.
_CHUNK = 50


def sgld(problem: Problem, work: Work, seed: int) -> "Eager":
    """Returns the Langevin chain."""
    torch.manual_seed(seed)
    return Eager(problem, _sgld(problem, work, torch.Tensor.normal_), chained=True)


def importance(problem: Problem, work: Work, seed: int) -> "Eager":
    """Returns importance sampling."""
    torch.manual_seed(seed)
    return Eager(problem, _importance(problem, work, _CHUNK))


def heat(problem: Problem, work: Work, seed: int) -> "Eager":
    """Returns Robbins-Monro."""
    torch.manual_seed(seed)
    return Eager(problem, _heat(problem, work, torch.Tensor.normal_))


def noiseless_sgld(problem: Problem, work: Work) -> "Eager":
    """Returns the Langevin chain without noise."""
    return Eager(problem, _sgld(problem, work, torch.Tensor.zero_), chained=True)


def noiseless_heat(problem: Problem, work: Work) -> "Eager":
    """Returns Robbins-Monro without noise."""
    return Eager(problem, _heat(problem, work, torch.Tensor.zero_))


class Eager:
    """Weights and chain, moved by a function that runs as it is written.

    Args:
        problem: weights and minibatch.
        step: takes (x, start of the chain) to (m, end of the chain).
        chained: whether there is a chain.
    """

    _x: Weights
    _chain: Weights

    def __init__(self, problem: Problem, step: Step, *, chained: bool = False):
        self._first = [tensor(w.copy()) for w in problem.weights]
        self._step, self._chained = step, chained
        self.restart()

    def update(self) -> None:
        """See `System`."""
        self._x, self._chain = self._step(self._x, self._chain)
        finish()

    def weights(self) -> Sequence[Array]:
        """See `System`."""
        return [array(x) for x in self._x]

    def chain(self) -> Sequence[Array]:
        """See `System`."""
        return [array(y) for y in self._chain]

    def restart(self) -> None:
        """See `System`."""
        self._x = self._first
        self._chain = self._first if self._chained else []


def _sgld(problem: Problem, work: Work, fill: Fill) -> Step:
    loss = network_loss(problem)
    eps = work.langevin_steps.tolist()

    def step(x: Weights, chain: Weights) -> tuple[Weights, Weights]:
        position = [(x_v + (p - x_v)).requires_grad_() for x_v, p in zip(x, chain, strict=True)]
        y = [p - x_v for x_v, p in zip(x, chain, strict=True)]
        z = [torch.empty_like(x_v) for x_v in x]
        total = [eps[0] * y_v for y_v in y]
        for eps_j, eps_next in pairwise(eps):
            gradient = torch.autograd.grad(loss(position), position)
            with torch.no_grad():
                for v, g in enumerate(gradient):
                    y[v].mul_(1 - eps_j / (2 * work.tau)).add_(g, alpha=-eps_j / 2)
                    y[v].add_(fill(z[v]), alpha=eps_j**0.5)
                    total[v].add_(y[v], alpha=eps_next)
                    torch.add(x[v], y[v], out=position[v])
        mean = [t / sum(eps) for t in total]
        return _sum(x, mean), [p.detach() for p in position]

    return step


def _importance(problem: Problem, work: Work, chunk: int) -> Step:
    losses = _losses_around(problem, float(np.sqrt(work.tau)))

    @torch.no_grad()
    def step(x: Weights, chain: Weights) -> tuple[Weights, Weights]:
        z = [x_v.new_empty(chunk, *x_v.shape) for x_v in x]
        moment = [torch.zeros_like(x_v).flatten() for x_v in x]
        largest, weight = -np.inf, 0.0
        for first in range(0, work.samples, chunk):
            for z_v in z:
                z_v.normal_()
            log_w = -work.loss_multiplier * losses(x, z)[: work.samples - first]
            new = max(largest, log_w.max().item())
            rescale, w = np.exp(largest - new), torch.exp(log_w - new)
            weight = rescale * weight + w.sum().item()
            for m, z_v in zip(moment, z, strict=True):
                torch.addmv(m, z_v[: len(w)].flatten(1).T, w, beta=rescale, out=m)
            largest = new
        scale = work.tau**0.5 / weight
        mean = [scale * m.reshape(x_v.shape) for m, x_v in zip(moment, x, strict=True)]
        return _sum(x, mean), chain

    return step


def _heat(problem: Problem, work: Work, fill: Fill) -> Step:
    losses = _losses_around(problem, float(np.sqrt(work.tau)))

    def step(x: Weights, chain: Weights) -> tuple[Weights, Weights]:
        position = [x_v.clone().requires_grad_() for x_v in x]
        y = [torch.zeros_like(x_v) for x_v in x]
        z = [x_v.new_empty(work.samples, *x_v.shape) for x_v in x]
        for a in work.step_sizes.tolist():
            for z_v in z:
                fill(z_v)
            gradient = torch.autograd.grad(losses(position, z).mean(), position)
            with torch.no_grad():
                for v, g in enumerate(gradient):
                    y[v].mul_(1 - a).add_(g, alpha=-a * work.tau)
                    torch.add(x[v], y[v], out=position[v])
        return _sum(x, y), chain

    return step


def network_loss(problem: Problem) -> Callable[[Weights], Any]:
    """Returns f."""
    images, labels = tensor(problem.images), tensor(problem.labels)

    def loss(weights: Weights) -> Any:
        hidden = torch.relu(torch.addmm(weights[1], images, weights[0]))
        return cross_entropy(torch.addmm(weights[3], hidden, weights[2]), labels)

    return loss


def _losses_around(problem: Problem, deviation: float) -> Callable[[Weights, Weights], Any]:
    """Returns (x, z) -> f(x + deviation z) for each of the samples z.

    Products with x and z apart save a pass over a copy of the weights per sample, and a gradient
    in x is summed over the samples before it meets the images.
    """
    images, labels = tensor(problem.images), tensor(problem.labels)

    def losses(x: Weights, z: Weights) -> Any:
        around = torch.matmul(images, z[0]) + z[1][:, None]
        hidden = torch.relu(torch.addmm(x[1], images, x[0]) + deviation * around)
        logits = hidden @ (x[2] + deviation * z[2]) + (x[3] + deviation * z[3])[:, None]
        count, batch, classes = logits.shape
        every = cross_entropy(logits.reshape(-1, classes), labels.repeat(count), reduction="none")
        return every.reshape(count, batch).mean(1)

    return losses


def _sum(left: Weights, right: Weights) -> Weights:
    return [a + b for a, b in zip(left, right, strict=True)]
