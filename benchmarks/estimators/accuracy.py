"""Errors of every estimator against converged means, on Table 1's network."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.estimators.protocol import ALGORITHMS, Accuracy, settings
from reproduce.records import Run
from reproduce.runner import Job, Outcome, Report

if TYPE_CHECKING:
    from reproduce.data import Mnist

NAME = "estimators"

_SEED = 0
_REFERENCES = (101, 102, 103)
"""Seeds of the references' noise, which no estimator shares."""
_SAMPLES = 100
"""Gradients per move of Algorithm 2's references."""
_ENOUGH = 1000.0
"""Effective samples from which on importance sampling is the reference."""
_LONGER = 5
"""How many times the gradients a chain has that is the reference."""


def jobs(
    accuracy: Accuracy, data: Callable[[], "Mnist"], execution: Mapping[str, Any]
) -> list[Job]:
    """Returns a run per place, a number of weight updates, and tau."""
    return [
        Job(
            Run(NAME, case(updates, tau), _SEED, configuration(accuracy, updates, tau, execution)),
            accuracy.minibatches,
            partial(run, accuracy, updates, tau, data),
        )
        for updates in accuracy.updates
        for tau in accuracy.taus
    ]


def case(updates: int, tau: float) -> str:
    """Returns what a place is called."""
    return f"after-{updates}-tau-{tau:g}"


def configuration(
    accuracy: Accuracy, updates: int, tau: float, execution: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns what decides the numbers of a place.

    A change of this module's constants, on which they depend too, raises the numerics revision.
    """
    place = settings(
        accuracy,
        updates=updates,
        tau=tau,
        minibatches=accuracy.minibatches,
        reference=accuracy.reference,
        trained_with=accuracy.trained_with,
    )
    return {**place, "execution": dict(execution)}


def run(
    accuracy: Accuracy, updates: int, tau: float, data: Callable[[], "Mnist"], report: Report
) -> Outcome:
    """Measures every estimator at one place.

    Returns:
        Per algorithm the references' relative distances, per estimator the relative errors over
        minibatches and repetitions; and the estimators' seconds.
    """
    from benchmarks.estimators import problem
    from benchmarks.estimators.other_noise import NOISES

    mnist = data()
    weights = problem.weights_after(mnist, _SEED, updates, accuracy.trained_with)
    references: dict[str, list[dict[str, Any]]] = {name: [] for name in ALGORITHMS}
    errors: dict[str, list[float]] = {each.label: [] for each in accuracy.estimators}
    seconds: dict[str, list[float]] = {each.label: [] for each in accuracy.estimators}
    for position, batch in enumerate(
        problem.batches(mnist, _SEED, updates, accuracy.minibatches), start=1
    ):
        means = {}
        for algorithm, solve in (
            (ALGORITHMS[0], _local_entropy),
            (ALGORITHMS[1], _heat),
        ):
            means[algorithm], found = solve(weights, batch, tau, accuracy.reference)
            references[algorithm].append(found)
        for each in accuracy.estimators:
            mean = means[each.algorithm]
            estimate = problem.estimator(each.kernel, _SEED, NOISES[each.noise])
            # The first call compiles.
            estimate(weights, batch, tau, 0)
            for repetition in range(1, accuracy.repetitions + 1):
                started = time.perf_counter()
                displacement, _ = estimate(weights, batch, tau, repetition)
                seconds[each.label].append(time.perf_counter() - started)
                size = np.linalg.norm(mean)
                errors[each.label].append(float(np.linalg.norm(displacement - mean) / size))
        report(position)
    result = {"status": "completed", "references": references, "errors": errors}
    return result, {"estimates": {name: median(values) for name, values in seconds.items()}}


def _local_entropy(
    weights: Sequence[Any], batch: Any, tau: float, gradients: int
) -> tuple[Any, dict[str, Any]]:
    """Algorithm 1's mean: by importance sampling where its weights allow, else by long chains.

    One chain starts at x, with step size tau / 20, the other at a draw of N(x, tau I), with
    tau / 10: where they agree, neither the start, the step size nor the length decides.
    """
    from benchmarks.estimators import problem
    from lerh_tf import ImportanceSampling
    from reproduce.methods import controlled_sgld

    def found(kernel: Any, seed: int) -> Any:
        return problem.estimator(kernel, seed)(weights, batch, tau, 0)

    sampled, diagnostics = found(
        ImportanceSampling(gradients, estimator="gradients"), _REFERENCES[0]
    )
    size = diagnostics["effective_sample_size"]
    is_enough = size >= _ENOUGH
    states = gradients if is_enough else _LONGER * gradients
    finer, _ = found(controlled_sgld(states, 0.05), _REFERENCES[1])
    coarser, _ = found(controlled_sgld(states, 0.1, persistent=True), _REFERENCES[2])
    chains = (finer + coarser) / 2.0
    mean = sampled if is_enough else chains
    return mean, {
        "effective_sample_size": size,
        "by": "importance sampling" if is_enough else "chains",
        "chains_apart": _apart(finer, coarser, mean),
        "samplers_apart": _apart(sampled, chains, mean),
        "step": float(np.linalg.norm(mean)),
    }


def _heat(
    weights: Sequence[Any], batch: Any, tau: float, gradients: int
) -> tuple[Any, dict[str, Any]]:
    """Algorithm 2's mean from two starts: x, and one as far from x as a draw of N(x, tau I)."""
    from benchmarks.estimators import problem
    from lerh_tf import RobbinsMonro
    from reproduce.methods import AVERAGING

    steps = max(gradients // _SAMPLES, 2)
    from_x = RobbinsMonro(steps, _SAMPLES, step_sizes=AVERAGING)
    elsewhere = problem.FromElsewhere(steps, _SAMPLES)
    mean, other = (
        problem.estimator(kernel, seed)(weights, batch, tau, 0)[0]
        for kernel, seed in zip((from_x, elsewhere), _REFERENCES, strict=False)
    )
    return mean, {"starts_apart": _apart(mean, other, mean), "step": float(np.linalg.norm(mean))}


def _apart(one: Any, other: Any, mean: Any) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(mean))
