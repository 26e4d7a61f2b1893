# mypy: disable-error-code="import-not-found"
"""Algorithm 4 by evosax's `SimpleES`: the same update once it is configured so.

Fitness shaping by softmax(-loss_multiplier f) makes the weights, gradient descent with rate 1 the
weighted mean; the standard deviation is sqrt(tau) and stays.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from evosax.algorithms import SimpleES

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.systems.jax_loops import cross_entropy
from benchmarks.peers.work import Work


def importance(problem: Problem, work: Work, seed: int) -> "Evolved":
    """Returns importance sampling."""
    return Evolved(problem, work, seed)


class Evolved:
    """A strategy's state, moved by one jitted round of ask, evaluate and tell."""

    _state: Any

    def __init__(self, problem: Problem, work: Work, seed: int):
        self._first = tuple(jnp.asarray(w) for w in problem.weights)

        def shape(population: Any, fitness: Any, state: Any, params: Any) -> Any:
            return jax.nn.softmax(-work.loss_multiplier * fitness)

        self._strategy = SimpleES(work.samples, self._first, optax.sgd(1.0), shape)
        self._params = self._strategy.default_params.replace(
            std_init=float(np.sqrt(work.tau)), c_std=0.0
        )
        self._losses = jax.vmap(_loss(problem))
        self._key = jax.random.key(seed)
        self._step = jax.jit(self._round)
        self.restart()

    def update(self) -> None:
        """See `System`."""
        self._state = jax.block_until_ready(self._step(self._state, self._next_key()))

    def weights(self) -> Sequence[Array]:
        """See `System`."""
        return [np.asarray(x) for x in self._strategy.get_mean(self._state)]

    def chain(self) -> Sequence[Array]:
        """See `System`."""
        return []

    def restart(self) -> None:
        """See `System`."""
        self._state = self._strategy.init(self._next_key(), self._first, self._params)

    def recorded_update(self) -> Array:
        """Makes an update and returns the noise of its population, shape (samples, size)."""
        ask, _ = jax.random.split(key := self._next_key())
        population, _ = self._strategy.ask(ask, self._state, self._params)
        z = [
            (np.asarray(p, np.float64) - np.asarray(x, np.float64)) / self._params.std_init
            for p, x in zip(population, self._strategy.get_mean(self._state), strict=True)
        ]
        self._state = jax.block_until_ready(self._step(self._state, key))
        return np.concatenate([z_v.reshape(len(z_v), -1) for z_v in z], 1)

    def _round(self, state: Any, key: Any) -> Any:
        ask, tell = jax.random.split(key)
        population, state = self._strategy.ask(ask, state, self._params)
        losses = self._losses(population)
        return self._strategy.tell(tell, population, losses, state, self._params)[0]

    def _next_key(self) -> Any:
        self._key, key = jax.random.split(self._key)
        return key


def _loss(problem: Problem) -> Any:
    images, labels = jnp.asarray(problem.images), jnp.asarray(problem.labels)

    def loss(weights: Any) -> Any:
        hidden = jax.nn.relu(images @ weights[0] + weights[1])
        return cross_entropy(hidden @ weights[2] + weights[3], labels).mean()

    return loss
