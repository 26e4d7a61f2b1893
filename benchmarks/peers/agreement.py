"""Whether a system computes what `reference` computes, on a small network.

With noise, means and variances of where two weight updates end are compared, and those of the
chain; without it, the end itself. evosax, whose noise can be read, is also held to this library's
kernel on the same noise.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.peers import reference
from benchmarks.peers.problem import Array, Problem, random_minibatch
from benchmarks.peers.processes import Worker
from benchmarks.peers.reference import Outcome
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import SMALL

LARGEST_Z = 6.0
"""Most standard errors that any of several hundred moments, some of them skewed, may be off.

Two samples of the reference came to 5.4 at most in 120 comparisons; a tau that is 10 % off comes
to more than 11.
"""

LARGEST_ERROR = 1e-4
"""Largest relative error of an update without noise; float32 against float64."""

_UPDATES = 2
_REPETITIONS, _REFERENCE_REPETITIONS = 400, 4000
_ROUNDING = 1e-6


def small_problem() -> Problem:
    """Returns a network that sees a part of its weights only: 5 images of 12 pixels, some dark."""
    return Problem.of_minibatch(*random_minibatch(5, pixels=12, classes=3), hidden=8, classes=3)


def check(system: str, *, gpu: bool = False) -> dict[str, Any]:
    """Returns what was compared and whether all of it is within its bound.

    Args:
        system: a key of `SYSTEMS`.
        gpu: whether it computes on the GPU.
    """
    algorithm = SYSTEMS[system].algorithm
    measured: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        problem, path = Path(folder, "problem.npz"), str(Path(folder, "sample.npz"))
        small_problem().save(problem)
        with Worker(system, problem, SMALL[algorithm], threads=1, gpu=gpu) as worker:
            if algorithm != "sgd":
                worker.ask(
                    "sample", repetitions=_REPETITIONS, updates=_UPDATES, path=path, noiseless=False
                )
                measured["z"] = largest_z(_load(path), _with_noise(algorithm))
            if algorithm != "is":
                worker.ask("sample", repetitions=1, updates=_UPDATES, path=path, noiseless=True)
                measured["error"] = relative_error(_load(path), _without_noise(algorithm))
            if system == "is-evosax":
                worker.ask("record", path=path)
                with Worker("is-plain", problem, SMALL["is"], threads=1, gpu=gpu) as ours:
                    measured["same_noise_error"] = ours.ask("replay", path=path)["error"]
    bounds = {"z": LARGEST_Z, "error": LARGEST_ERROR, "same_noise_error": LARGEST_ERROR}
    agrees = all(value < bounds[name] for name, value in measured.items())
    return {**measured, "agrees": agrees}


def largest_z(sample: Outcome, expected: Outcome) -> float:
    """Returns the largest difference of two samples' moments, in standard errors.

    Compared are the mean and mean square of every coordinate, of the displacement along its
    expected direction, and of its length; the same of the chain, and the product of the two.
    """
    direction = expected.weights.mean(0)
    ours, theirs = _features(sample, direction), _features(expected, direction)
    variance = ours.var(0, ddof=1) / len(ours) + theirs.var(0, ddof=1) / len(theirs)
    z = (ours.mean(0) - theirs.mean(0)) / np.sqrt(variance + _ROUNDING**2)
    return float(np.abs(z).max())


def relative_error(sample: Outcome, expected: Outcome) -> float:
    """Returns |d - expected d| / |expected d| of the weights' displacement or the chain's end."""
    pairs = [(sample.weights, expected.weights)]
    if expected.chain.size:
        pairs.append((sample.chain, expected.chain))
    return max(
        float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)) for ours, theirs in pairs
    )


@cache
def _with_noise(algorithm: str) -> Outcome:
    normal = np.random.default_rng(0).standard_normal
    work = SMALL[algorithm]
    return reference.run(small_problem(), work, _REFERENCE_REPETITIONS, _UPDATES, normal)


@cache
def _without_noise(algorithm: str) -> Outcome:
    return reference.run(small_problem(), SMALL[algorithm], 1, _UPDATES, np.zeros)


def _features(outcome: Outcome, direction: Array) -> Array:
    columns = _moments(outcome.weights, direction)
    if outcome.chain.size:
        product = (outcome.weights * outcome.chain).sum(1, keepdims=True)
        columns += [*_moments(outcome.chain, direction), product]
    return np.concatenate(columns, 1)


def _moments(d: Array, direction: Array) -> list[Array]:
    return [d, d**2, (d @ direction)[:, None], (d**2).sum(1, keepdims=True)]


def _load(path: str) -> Outcome:
    with np.load(path) as file:
        return Outcome(file["weights"], file["chain"])
