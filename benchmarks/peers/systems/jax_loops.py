# mypy: disable-error-code="import-not-found"
"""Algorithms 4 and 5 as one would write them in JAX: one jitted scan over chunks of samples."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.work import Work

Weights = Any
Step = Callable[[Weights, Weights, Any], tuple[Weights, Weights]]
Normal = Callable[[Any, tuple[int, ...]], Any]

# One sample at a time: chunks that leave the cache double the cost of the noise.
_CHUNK = 1


def importance(problem: Problem, work: Work, seed: int) -> "Jitted":
    """Returns importance sampling."""
    return Jitted(problem, _importance(problem, work, _CHUNK), seed)


def heat(problem: Problem, work: Work, seed: int) -> "Jitted":
    """Returns Robbins-Monro."""
    return Jitted(problem, _heat(problem, work, jax.random.normal), seed)


def noiseless_heat(problem: Problem, work: Work) -> "Jitted":
    """Returns Robbins-Monro without noise."""
    return Jitted(problem, _heat(problem, work, silence), 0)


class Jitted:
    """Weights and chain on the device, moved by one jitted function.

    Args:
        problem: weights and minibatch.
        step: takes (x, start of the chain, key) to (m, end of the chain).
        seed: of the noise.
        chained: whether there is a chain.
    """

    _x: Weights
    _chain: Weights

    def __init__(self, problem: Problem, step: Step, seed: int, *, chained: bool = False):
        self._first = tuple(jnp.asarray(w) for w in problem.weights)
        self._chained = chained
        self._step = jax.jit(step)
        self._key = jax.random.key(seed)
        self.restart()

    def update(self) -> None:
        """See `System`."""
        self._key, key = jax.random.split(self._key)
        self._x, self._chain = jax.block_until_ready(self._step(self._x, self._chain, key))

    def weights(self) -> Sequence[Array]:
        """See `System`."""
        return [np.asarray(x) for x in self._x]

    def chain(self) -> Sequence[Array]:
        """See `System`."""
        return [np.asarray(y) for y in self._chain]

    def restart(self) -> None:
        """See `System`."""
        self._x = self._first
        self._chain = self._first if self._chained else ()


def silence(key: Any, shape: tuple[int, ...]) -> Any:
    """Returns no noise, in place of `jax.random.normal`."""
    return jnp.zeros(shape)


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns the loss of each image; logits of shape (..., batch, classes)."""
    labels = jnp.broadcast_to(labels, logits.shape[:-1])
    picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - picked


def losses_around(problem: Problem, deviation: float) -> Callable[[Weights, Weights], Any]:
    """Returns (x, z) -> f(x + deviation z), one sample z.

    Products with x and z apart save a pass over a copy of the weights per sample.
    """
    images, labels = jnp.asarray(problem.images), jnp.asarray(problem.labels)

    def loss(x: Weights, z: Weights) -> Any:
        inner = images @ x[0] + x[1] + deviation * (images @ z[0] + z[1])
        logits = jax.nn.relu(inner) @ (x[2] + deviation * z[2]) + x[3] + deviation * z[3]
        return cross_entropy(logits, labels).mean()

    return loss


def draws(normal: Normal, key: Any, like: Weights, leading: tuple[int, ...] = ()) -> Weights:
    """Returns noise of the shapes of some weights, behind some leading axes."""
    keys = jax.random.split(key, len(like))
    return tuple(normal(k, (*leading, *x.shape)) for k, x in zip(keys, like, strict=True))


def _importance(problem: Problem, work: Work, chunk: int) -> Step:
    losses = jax.vmap(losses_around(problem, np.sqrt(work.tau)), (None, 0))
    chunks = -(-work.samples // chunk)

    def step(x: Weights, chain: Weights, key: Any) -> tuple[Weights, Weights]:
        def add(sums: Any, index: Any) -> tuple[Any, None]:
            largest, weight, moment = sums
            z = draws(jax.random.normal, jax.random.fold_in(key, index), x, (chunk,))
            log_w = -work.loss_multiplier * losses(x, z)
            log_w = jnp.where(index * chunk + jnp.arange(chunk) < work.samples, log_w, -jnp.inf)
            new = jnp.maximum(largest, log_w.max())
            rescale, w = jnp.exp(largest - new), jnp.exp(log_w - new)
            moment = tuple(
                rescale * m + jnp.tensordot(w, z_v, 1) for m, z_v in zip(moment, z, strict=True)
            )
            return (new, rescale * weight + w.sum(), moment), None

        zeros = tuple(jnp.zeros_like(x_v) for x_v in x)
        start = (jnp.float32(-jnp.inf), jnp.float32(0.0), zeros)
        (_, weight, moment), _ = jax.lax.scan(add, start, jnp.arange(chunks))
        scale = np.sqrt(work.tau) / weight
        return tuple(x_v + scale * m for x_v, m in zip(x, moment, strict=True)), chain

    return step


def _heat(problem: Problem, work: Work, normal: Normal) -> Step:
    a = jnp.asarray(work.step_sizes, jnp.float32)
    gradient = jax.grad(losses_around(problem, np.sqrt(work.tau)))

    def step(x: Weights, chain: Weights, key: Any) -> tuple[Weights, Weights]:
        def move(y: Weights, step: Any) -> tuple[Weights, None]:
            def add(total: Weights, sample_key: Any) -> tuple[Weights, None]:
                return _sum(total, gradient(position, draws(normal, sample_key, x))), None

            key_j, a_j = step
            position = _sum(x, y)
            total, _ = jax.lax.scan(add, zeros, jax.random.split(key_j, work.samples))
            scale = work.tau / work.samples
            return tuple(
                y_v - a_j * (y_v + scale * t) for y_v, t in zip(y, total, strict=True)
            ), None

        zeros = tuple(jnp.zeros_like(x_v) for x_v in x)
        y, _ = jax.lax.scan(move, zeros, (jax.random.split(key, work.steps), a))
        return _sum(x, y), chain

    return step


def _sum(left: Weights, right: Weights) -> Weights:
    return tuple(a + b for a, b in zip(left, right, strict=True))
