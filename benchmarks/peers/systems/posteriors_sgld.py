# mypy: disable-error-code="import-not-found"
"""Algorithm 3 by posteriors' `sgld` transform."""

from typing import Any

import posteriors
import torch

from benchmarks.peers.problem import Problem
from benchmarks.peers.systems.torch_loops import Eager, Step, Weights, network_loss
from benchmarks.peers.work import Work


def sgld(problem: Problem, work: Work, seed: int) -> Eager:
    """Returns the Langevin chain."""
    torch.manual_seed(seed)
    return Eager(problem, _sgld(problem, work, 1.0), chained=True)


def noiseless_sgld(problem: Problem, work: Work) -> Eager:
    """Returns the Langevin chain at temperature zero."""
    return Eager(problem, _sgld(problem, work, 0.0), chained=True)


def _sgld(problem: Problem, work: Work, temperature: float) -> Step:
    """Returns the update; the chain's target is exp(-f(x + y) - |y|^2 / (2 tau)).

    The transform moves by lr times the gradient of the log posterior and adds noise of variance
    2 lr: Algorithm 3 with lr = eps_j / 2.
    """
    loss = network_loss(problem)
    eps = work.langevin_steps.tolist()
    halves = [value / 2 for value in eps]

    def update(x: Weights, chain: Weights) -> tuple[Weights, Weights]:
        def log_posterior(y: tuple[Any, ...], batch: None) -> tuple[Any, Any]:
            prior = sum((y_v * y_v).sum() for y_v in y) / (2 * work.tau)
            at = [x_v + y_v for x_v, y_v in zip(x, y, strict=True)]
            return -loss(at) - prior, torch.tensor([])

        transform = posteriors.sgmcmc.sgld.build(
            log_posterior, lr=lambda step: halves[int(step)], temperature=temperature
        )
        y = tuple(p - x_v for p, x_v in zip(chain, x, strict=True))
        # A copy: all states of posteriors 0.1.3 share one step counter, which `inplace` moves.
        state = transform.init(y).clone()
        total = [eps[0] * y_v for y_v in state.params]
        for eps_next in eps[1:]:
            state, _ = transform.update(state, None, inplace=True)
            for t, y_v in zip(total, state.params, strict=True):
                t.add_(y_v, alpha=eps_next)
        mean = [t / sum(eps) for t in total]
        return (
            [x_v + m for x_v, m in zip(x, mean, strict=True)],
            [x_v + y_v for x_v, y_v in zip(x, state.params, strict=True)],
        )

    return update
