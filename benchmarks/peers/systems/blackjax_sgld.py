# mypy: disable-error-code="import-not-found"
"""Algorithm 3 by BlackJAX's `sgld` kernel in a jitted scan."""

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from blackjax.sgmcmc.gradients import grad_estimator

from benchmarks.peers.problem import Problem
from benchmarks.peers.systems.jax_loops import Jitted, Step, Weights, cross_entropy
from benchmarks.peers.work import Work


def sgld(problem: Problem, work: Work, seed: int) -> Jitted:
    """Returns the Langevin chain."""
    return Jitted(problem, _sgld(problem, work, 1.0), seed, chained=True)


def noiseless_sgld(problem: Problem, work: Work) -> Jitted:
    """Returns the Langevin chain at temperature zero."""
    return Jitted(problem, _sgld(problem, work, 0.0), 0, chained=True)


def _sgld(problem: Problem, work: Work, temperature: float) -> Step:
    """Returns the update; the chain's target is exp(-f(x + y) - |y|^2 / (2 tau)).

    BlackJAX moves by step_size times the gradient of the log density and adds noise of variance
    2 step_size: Algorithm 3 with step_size = eps_j / 2.
    """
    minibatch = jnp.asarray(problem.images), jnp.asarray(problem.labels)
    eps = jnp.asarray(work.langevin_steps, jnp.float32)

    def log_prior(y: Weights) -> Any:
        return -sum(jnp.vdot(y_v, y_v) for y_v in y) / (2 * work.tau)

    def update(x: Weights, chain: Weights, key: Any) -> tuple[Weights, Weights]:
        def log_likelihood(y: Weights, example: tuple[Any, Any]) -> Any:
            image, label = example
            w = tuple(x_v + y_v for x_v, y_v in zip(x, y, strict=True))
            logits = jax.nn.relu(image @ w[0] + w[1]) @ w[2] + w[3]
            return -cross_entropy(logits, label)

        # `data_size` 1: the mean loss of the minibatch counts once.
        kernel = blackjax.sgld(grad_estimator(log_prior, log_likelihood, 1))

        def move(state: tuple[Weights, Weights], step: Any) -> tuple[tuple[Weights, Weights], None]:
            total, y = state
            key_j, eps_j = step
            total = tuple(t + eps_j * y_v for t, y_v in zip(total, y, strict=True))
            return (total, kernel.step(key_j, y, minibatch, eps_j / 2, temperature)), None

        y = tuple(p - x_v for p, x_v in zip(chain, x, strict=True))
        zeros = tuple(jnp.zeros_like(x_v) for x_v in x)
        steps = (jax.random.split(key, work.samples - 1), eps[:-1])
        (total, y), _ = jax.lax.scan(move, (zeros, y), steps)
        mean = [(t + eps[-1] * y_v) / eps.sum() for t, y_v in zip(total, y, strict=True)]
        return (
            tuple(x_v + m for x_v, m in zip(x, mean, strict=True)),
            tuple(x_v + y_v for x_v, y_v in zip(x, y, strict=True)),
        )

    return update
