"""Claim 12: what minibatches do to each estimator, over all minibatches of a tiny data set."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import tensorflow as tf

from lerh_tf import (
    SGLD,
    ImportanceSampling,
    Kernel,
    LangevinSteps,
    LossFunction,
    PhiloxNoise,
    RobbinsMonro,
)
from lerh_tf.oracles import Landscape
from reproduce.landscapes.functions import Array
from reproduce.theory.identities import Measures
from reproduce.theory.protocol import Minibatches

Batch = tuple[int, ...]

_CELLS = 4
"""Nodes of the chain's state space per standard deviation of a move."""

_REACH = 6.0
"""Half that space, in sqrt(tau)."""


def measure(setup: Minibatches, seed: int) -> Measures:
    """Compares the mean over all minibatches with the full data, estimator by estimator.

    Args:
        setup: Data, minibatches and budgets.
        seed: Of the kernels' noise, which all minibatches share.

    Returns:
        Differences from the full data's value, relative to the full data's step |m - x| where they
        are moves. `exact_mean`: of E_q X, importance sampling's limit; `importance` and its
        `importance_error`: of the kernel at `samples` samples, and its standard error over the
        noises; `langevin_move` and `robbins_monro_move`: of one move of Algorithms 3 and 5, with
        gradients; `heat_gradient`: of grad F^H_tau; `local_entropy`: of F_tau. For each step size
        of the Langevin chain, of its stationary mean: `chain_one_minibatch`, one minibatch per
        weight update; `chain_fresh_minibatches`, a fresh one for every move, divided by the step
        size.
    """
    everything: Batch = tuple(range(len(setup.inputs)))
    batches = list(combinations(everything, setup.batch_size))
    found = _exact(setup, batches, everything)
    step = found.pop("step")[0]
    for name, kernel in _moves(setup).items():
        differences = _kernel_differences(setup, kernel, batches, everything, seed) / step
        found[name] = [abs(float(differences.mean()))]
        if name == "importance":
            deviation = float(differences.std(ddof=1))
            found["importance_error"] = [deviation / setup.repetitions**0.5]
    for eps in setup.step_sizes:
        full, fixed, fresh = _stationary_means(setup, batches, everything, eps)
        found.setdefault("chain_one_minibatch", []).append(abs(fixed - full) / step)
        found.setdefault("chain_fresh_minibatches", []).append(abs(fresh - full) / step / eps)
    return found


def _exact(setup: Minibatches, batches: Sequence[Batch], everything: Batch) -> Measures:
    full = _landscape(setup, everything)
    parts = [_landscape(setup, batch) for batch in batches]
    x = setup.x

    def difference(quantity: Callable[[Landscape], Array]) -> float:
        return abs(float(np.mean([quantity(part) for part in parts]) - np.squeeze(quantity(full))))

    step = abs(float(full.mean(x).value[0]) - x)
    return {
        "step": [step],
        "exact_mean": [difference(lambda one: one.mean(x).value) / step],
        "heat_gradient": [difference(lambda one: one.heat_gradient(x).value)],
        "local_entropy": [difference(lambda one: one.local_entropy(x).value)],
    }


def _moves(setup: Minibatches) -> dict[str, Kernel]:
    return {
        "importance": ImportanceSampling(setup.samples),
        "langevin_move": SGLD(2, step_sizes=LangevinSteps(0.0)),
        "robbins_monro_move": RobbinsMonro(1, 30),
    }


def _landscape(setup: Minibatches, batch: Batch) -> Landscape:
    a, y = _data(setup, batch)
    return Landscape(lambda v: setup.scale * _losses(v, a, y, np).mean(axis=-1), setup.tau)


def _data(setup: Minibatches, batch: Batch) -> tuple[Array, Array]:
    return np.array(setup.inputs)[list(batch)], np.array(setup.targets)[list(batch)]


def _losses(v: Array, a: Array, y: Array, xp: object) -> Array:
    """(s(a_i v) - y_i)^2 of points (..., 1), shape (..., data points)."""
    return (1.0 / (1.0 + xp.exp(-v * a)) - y) ** 2  # type: ignore[attr-defined]


def _slope(setup: Minibatches, v: Array, batch: Batch) -> Array:
    """The derivative of the minibatch's f at numbers v."""
    a, y = _data(setup, batch)
    s = 1.0 / (1.0 + np.exp(-v[:, None] * a))
    return np.asarray(setup.scale * (2 * (s - y) * s * (1 - s) * a).mean(axis=-1))


def _kernel_differences(
    setup: Minibatches, kernel: Kernel, batches: Sequence[Batch], everything: Batch, seed: int
) -> Array:
    """Mean displacement over the minibatches less the full data's, one for each noise."""
    a, y = _data(setup, everything)

    @tf.function(autograph=False)
    def displacement(shares: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
        def loss(weights: Sequence[tf.Tensor]) -> tf.Tensor:
            return setup.scale * tf.reduce_sum(shares * _losses(weights[0], a, y, tf))

        x, tau = tf.constant([setup.x], tf.float64), tf.constant(setup.tau, tf.float64)
        found = kernel(LossFunction(loss, 1), [x], tau, PhiloxNoise(seed, update, [x]), [x])
        return found.displacement[0][0]

    data, number = tf.TensorSpec([len(everything)], tf.float64), tf.TensorSpec([], tf.int64)
    traced = displacement.get_concrete_function(data, number)

    def moved(batch: Batch, update: int) -> float:
        shares = np.isin(everything, batch) / len(batch)
        return float(traced(tf.constant(shares), tf.constant(update, tf.int64)))

    return np.array(
        [
            np.mean([moved(batch, update) for batch in batches]) - moved(everything, update)
            for update in range(setup.repetitions)
        ]
    )


def _stationary_means(
    setup: Minibatches, batches: Sequence[Batch], everything: Batch, eps: float
) -> tuple[float, float, float]:
    """The chain's long-run mean: full data, one minibatch throughout (averaged), fresh ones."""
    reach, cell = _REACH * np.sqrt(setup.tau), np.sqrt(eps) / _CELLS
    states = setup.x + np.arange(-reach, reach + cell, cell)
    transitions = [_transition(setup, states, batch, eps) for batch in batches]

    def mean(transition: Array) -> float:
        return float(_stationary(transition) @ states)

    fixed = float(np.mean([mean(transition) for transition in transitions]))
    full = _transition(setup, states, everything, eps)
    return mean(full), fixed, mean(np.mean(transitions, axis=0))


def _transition(setup: Minibatches, states: Array, batch: Batch, eps: float) -> Array:
    """Algorithm 3's law of the next state (columns) given this one (rows), on the grid."""
    drift = _slope(setup, states, batch) + (states - setup.x) / setup.tau
    ahead = states - (states - eps / 2 * drift)[:, None]
    weights = np.exp(-(ahead**2) / (2 * eps))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _stationary(transition: Array) -> Array:
    """The law that the transition leaves as it is."""
    balance = transition.T - np.eye(len(transition))
    balance[0] = 1.0
    return np.asarray(np.linalg.solve(balance, np.eye(len(transition))[0]))
