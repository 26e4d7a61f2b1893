# mypy: disable-error-code="import-not-found"
"""Algorithms 3, 4 and 5 by hand in JAX, on any of the networks: one jitted scan each."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.peers.networks.problem import KEY, Problem
from benchmarks.peers.problem import Array

Weights = Any
Loss = Callable[[Weights], Any]

_TAU = 0.01
_SAMPLES = 100
_STEPS, _PER_STEP = 10, 10


def systems(network: str, problem: Problem) -> dict[tuple[str, str], Callable[[], object]]:
    """Returns functions that make a weight update, by algorithm and name."""
    loss, x = _loss(network, problem), [jnp.asarray(w) for w in problem.weights]
    steps = {"sgld": _sgld, "is": _importance, "hr": _heat}
    return {(name, "JAX"): _jitted(step, loss, x) for name, step in steps.items()}


def value_and_gradient(network: str, problem: Problem) -> tuple[float, list[Array]]:
    """Returns f and grad f at the first weights."""
    x = [jnp.asarray(w) for w in problem.weights]
    value, gradient = jax.jit(jax.value_and_grad(_loss(network, problem)))(x)
    return float(value), [np.asarray(g) for g in gradient]


def _jitted(step: Callable[..., Any], loss: Loss, x: Weights) -> Callable[[], object]:
    run = jax.jit(lambda x, key: step(loss, x, key))
    counter = itertools.count()

    def update() -> object:
        key = jax.random.fold_in(jax.random.key(0), next(counter))
        return jax.block_until_ready(run(x, key))

    return update


def _normal(key: Any, x: Weights) -> Weights:
    keys = jax.random.split(key, len(x))
    return [jax.random.normal(k, x_v.shape) for k, x_v in zip(keys, x, strict=True)]


def _sgld(loss: Loss, x: Weights, key: Any) -> Weights:
    eps = 1.0 / (1000.0 + jnp.arange(1, _SAMPLES))

    def move(state: Any, inputs: Any) -> Any:
        (position, total), (e, k) = state, inputs
        total = [t + e * p for t, p in zip(total, position, strict=True)]
        moved = [
            p - e / 2 * (g + (p - x_v) / _TAU) + jnp.sqrt(e) * z
            for p, g, x_v, z in zip(
                position, jax.grad(loss)(position), x, _normal(k, x), strict=True
            )
        ]
        return (moved, total), None

    start = (x, [jnp.zeros_like(x_v) for x_v in x])
    return lax.scan(move, start, (eps, jax.random.split(key, len(eps))))[0]


def _importance(loss: Loss, x: Weights, key: Any) -> Weights:
    def add(state: Any, k: Any) -> Any:
        (total, weight), z = state, _normal(k, x)
        w = jnp.exp(-loss([x_v + _TAU**0.5 * z_v for x_v, z_v in zip(x, z, strict=True)]))
        total = [t + w * z_v for t, z_v in zip(total, z, strict=True)]
        return (total, weight + w), None

    start = ([jnp.zeros_like(x_v) for x_v in x], 0.0)
    total, weight = lax.scan(add, start, jax.random.split(key, _SAMPLES))[0]
    return [_TAU**0.5 / weight * t for t in total]


def _heat(loss: Loss, x: Weights, key: Any) -> Weights:
    def move(y: Any, inputs: Any) -> Any:
        a, k = inputs
        centre = [x_v + y_v for x_v, y_v in zip(x, y, strict=True)]

        def add(total: Any, k: Any) -> Any:
            z = _normal(k, x)
            g = jax.grad(loss)([c + _TAU**0.5 * z_v for c, z_v in zip(centre, z, strict=True)])
            return [t + g_v / _PER_STEP for t, g_v in zip(total, g, strict=True)], None

        zeros = [jnp.zeros_like(x_v) for x_v in x]
        mean, _ = lax.scan(add, zeros, jax.random.split(k, _PER_STEP))
        return [y_v - a * (y_v + _TAU * g) for y_v, g in zip(y, mean, strict=True)], None

    a = 0.1 * jnp.arange(1.0, _STEPS + 1) ** -0.7
    start = [jnp.zeros_like(x_v) for x_v in x]
    return lax.scan(move, start, (a, jax.random.split(key, _STEPS)))[0]


def _loss(network: str, problem: Problem) -> Loss:
    x, labels = jnp.asarray(problem.x), jnp.asarray(problem.labels)
    logits = _NETWORKS[network]

    def loss(weights: Weights) -> Any:
        logs = jax.nn.log_softmax(logits(weights, x))
        return -jnp.take_along_axis(logs, labels[:, None], 1).mean()

    return loss


def _wide(w: Weights, x: Any) -> Any:
    hidden = jax.nn.relu(x @ w[0] + w[1])
    return jax.nn.relu(hidden @ w[2] + w[3]) @ w[4] + w[5]


def _convolutional(w: Weights, x: Any) -> Any:
    dimensions = ("NHWC", "HWIO", "NHWC")
    for kernel, bias in (w[:2], w[2:4]):
        x = lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=dimensions)
        x = jax.nn.relu(x + bias)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(len(x), -1) @ w[4] + w[5]


def _attention(w: Weights, x: Any) -> Any:
    embedded = w[0][x]
    query, key, value = (
        jnp.einsum("btd,dhk->bhtk", embedded, w[i]) + w[i + 1][:, None] for i in (1, 3, 5)
    )
    shares = jax.nn.softmax(query @ key.swapaxes(-1, -2) / KEY**0.5, -1)
    hidden = embedded + jnp.einsum("bhtk,hkd->btd", shares @ value, w[7]) + w[8]
    deviation = jnp.sqrt(hidden.var(-1, keepdims=True) + 1e-3)
    hidden = (hidden - hidden.mean(-1, keepdims=True)) / deviation * w[9] + w[10]
    return jax.nn.relu(hidden @ w[11] + w[12]).mean(1) @ w[13] + w[14]


_NETWORKS: Mapping[str, Callable[[Weights, Any], Any]] = {
    "wide": _wide,
    "convolutional": _convolutional,
    "attention": _attention,
}
