"""The reference is right where the answer is known otherwise."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import reference
from benchmarks.peers.agreement import small_problem
from benchmarks.peers.problem import Array, Problem, flat, random_minibatch
from benchmarks.peers.work import PAPER, SMALL, Work


def loss(problem: Problem, x: Array) -> float:
    """f at a flat vector of weights, written out for one network."""
    parts = np.split(x, np.cumsum([w.size for w in problem.weights])[:-1])
    w1, b1, w2, b2 = (p.reshape(w.shape) for p, w in zip(parts, problem.weights, strict=True))
    logits = np.maximum(problem.images @ w1 + b1, 0) @ w2 + b2
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return float(-np.log(shares[np.arange(len(logits)), problem.labels]).mean())


def gradient(problem: Problem, x: Array) -> Array:
    h = 1e-6
    steps = np.eye(x.size) * h
    return np.array([(loss(problem, x + s) - loss(problem, x - s)) / (2 * h) for s in steps])


@pytest.fixture(scope="module")
def problem() -> Problem:
    return small_problem()


@pytest.fixture(scope="module")
def x(problem: Problem) -> Array:
    return flat(problem.weights)


def silent(problem: Problem, work: Work, updates: int = 1) -> reference.Outcome:
    return reference.run(problem, work, 1, updates, np.zeros)


def given(noise: Array, problem: Problem) -> Callable[[tuple[int, ...]], Array]:
    """Noise of shape (draws, size), in the order in which weights are drawn."""

    def parts() -> Iterator[Array]:
        for z in noise:
            yield from np.split(z, np.cumsum([w.size for w in problem.weights])[:-1])

    queue = parts()
    return lambda shape: next(queue).reshape(shape)


def test_descent_goes_down_the_gradient(problem: Problem, x: Array) -> None:
    moved = silent(problem, Work("sgd", tau=0.3)).weights[0]
    np.testing.assert_allclose(moved, -0.3 * gradient(problem, x), atol=1e-8)


def test_sgld_by_hand(problem: Problem, x: Array) -> None:
    noise = np.random.default_rng(0).standard_normal((2, x.size))
    outcome = reference.run(
        problem, Work("sgld", samples=3, tau=0.3, offset=20.0), 1, 1, given(noise, problem)
    )
    y, total, eps = np.zeros_like(x), np.zeros_like(x), 1 / np.array([21.0, 22.0, 23.0])
    for j in range(3):
        total += eps[j] * y
        if j < 2:
            drift = gradient(problem, x + y) + y / 0.3
            y = y - eps[j] / 2 * drift + np.sqrt(eps[j]) * noise[j]
    np.testing.assert_allclose(outcome.weights[0], total / eps.sum(), atol=1e-8)
    np.testing.assert_allclose(outcome.chain[0], y, atol=1e-8)


def test_chain_goes_on_in_the_next_update(problem: Problem) -> None:
    work = SMALL["sgld"]
    once, twice = silent(problem, work), silent(problem, work, updates=2)
    moved = Problem(problem.images, problem.labels, _shifted(problem, once.weights[0]))
    afresh = silent(moved, work).weights[0] + once.weights[0]
    assert np.abs(twice.weights[0] - afresh).max() > 1e-3


def _shifted(problem: Problem, d: Array) -> tuple[Array, ...]:
    parts = np.split(d, np.cumsum([w.size for w in problem.weights])[:-1])
    return tuple(w + p.reshape(w.shape) for w, p in zip(problem.weights, parts, strict=True))


def test_importance_sampling_by_hand(problem: Problem, x: Array) -> None:
    noise = np.random.default_rng(1).standard_normal((2, x.size))
    work = Work("is", samples=2, tau=0.3, loss_multiplier=5.0)
    outcome = reference.run(problem, work, 1, 1, given(noise, problem))
    w = np.exp([-5.0 * loss(problem, x + np.sqrt(0.3) * z) for z in noise])
    assert abs(w[0] / w[1] - 1) > 0.1
    np.testing.assert_allclose(outcome.weights[0], np.sqrt(0.3) * (w @ noise) / w.sum(), atol=1e-8)


def test_heat_by_hand(problem: Problem, x: Array) -> None:
    noise = np.random.default_rng(2).standard_normal((4, x.size))
    work = Work("hr", samples=2, steps=2, tau=0.3, c=0.5, alpha=0.7)
    outcome = reference.run(problem, work, 1, 1, given(noise, problem))
    y = np.zeros_like(x)
    for j, a in enumerate((0.5, 0.5 * 2**-0.7)):
        around = [x + y + np.sqrt(0.3) * z for z in noise[2 * j : 2 * j + 2]]
        y = y - a * (y + 0.3 * np.mean([gradient(problem, at) for at in around], 0))
    np.testing.assert_allclose(outcome.weights[0], y, atol=1e-8)


def test_repetitions_are_independent_updates(problem: Problem) -> None:
    outcome = reference.run(problem, SMALL["hr"], 3, 1, np.random.default_rng(3).standard_normal)
    assert outcome.weights.shape == (3, flat(problem.weights).size)
    assert np.abs(outcome.weights[0] - outcome.weights[1]).max() > 1e-3
    assert outcome.chain.size == 0


def test_protocols_are_the_papers() -> None:
    assert PAPER["sgld"].langevin_steps[[0, -1]].tolist() == [1 / 1001, 1 / 2000]
    assert PAPER["hr"].step_sizes[1] == pytest.approx(0.1 * 2**-0.7)
    assert [PAPER[name].size for name in ("sgld", "is", "hr")] == [
        *("J = 1000", "J = 1000"),
        "J = 30, M = 30",
    ]
    assert replace(PAPER["sgd"], tau=1.0).size == "one gradient"


def test_problem_survives_its_file(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "problem.npz"
    problem.save(path)
    loaded = Problem.load(path)
    assert len(loaded.weights) == 4
    np.testing.assert_array_equal(flat(loaded.weights), flat(problem.weights))
    np.testing.assert_array_equal(loaded.images, problem.images)
    np.testing.assert_array_equal(loaded.labels, problem.labels)


def test_random_images_have_dark_pixels_as_mnist_has() -> None:
    images, labels = random_minibatch(20)
    assert images.shape == (20, 784)
    assert images.dtype == np.float32
    assert set(labels) <= set(range(10))
    dark = (images == 0).all(0).mean()
    assert 0.3 < dark < 0.7
