"""The comparison lets equal laws pass and finds those that are a tenth off."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import reference
from benchmarks.peers.agreement import (
    LARGEST_ERROR,
    LARGEST_Z,
    largest_z,
    relative_error,
    small_problem,
)
from benchmarks.peers.reference import Outcome
from benchmarks.peers.work import SMALL


@cache
def sample(algorithm: str, repetitions: int, seed: int, **changes: Any) -> Outcome:
    work = replace(SMALL[algorithm], **changes)
    normal = np.random.default_rng(seed).standard_normal
    return reference.run(small_problem(), work, repetitions, 2, normal)


def noiseless(algorithm: str, **changes: Any) -> Outcome:
    return reference.run(small_problem(), replace(SMALL[algorithm], **changes), 1, 2, np.zeros)


@pytest.fixture(scope="module", params=["sgld", "is", "hr"])
def algorithm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def expected(algorithm: str) -> Outcome:
    return sample(algorithm, 4000, seed=0)


def test_same_law_passes(algorithm: str, expected: Outcome) -> None:
    assert largest_z(sample(algorithm, 400, seed=1), expected) < LARGEST_Z


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_other_tau_is_found(algorithm: str, expected: Outcome, factor: float) -> None:
    wrong = sample(algorithm, 400, seed=1, tau=0.3 * factor)
    assert largest_z(wrong, expected) > LARGEST_Z


def test_equal_weights_are_found() -> None:
    wrong = sample("is", 400, seed=1, loss_multiplier=1e-9)
    assert largest_z(wrong, sample("is", 4000, seed=0)) > LARGEST_Z


@pytest.mark.parametrize("scale", [0.9, 1.1])
def test_other_spread_of_the_chain_alone_is_found(scale: float) -> None:
    right = sample("sgld", 400, seed=1)
    wrong = Outcome(right.weights, scale * right.chain)
    assert largest_z(wrong, sample("sgld", 4000, seed=0)) > LARGEST_Z


def test_chain_of_another_repetition_is_found() -> None:
    right = sample("sgld", 400, seed=1)
    wrong = Outcome(right.weights, np.roll(right.chain, 1, 0))
    assert largest_z(wrong, sample("sgld", 4000, seed=0)) > LARGEST_Z


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("sgld", {"offset": 20.1}),
        ("sgld", {"samples": 41}),
        ("sgld", {"tau": 0.301}),
        ("hr", {"c": 0.501}),
        ("hr", {"steps": 6}),
        ("sgd", {"tau": 0.301}),
    ],
)
def test_without_noise_little_is_enough(name: str, changes: dict[str, Any]) -> None:
    right = noiseless(name)
    assert relative_error(right, right) == 0.0
    assert relative_error(noiseless(name, **changes), right) > LARGEST_ERROR


def test_error_of_the_chain_alone_counts() -> None:
    right = noiseless("sgld")
    wrong = Outcome(right.weights, right.chain * 1.01)
    assert relative_error(wrong, right) == pytest.approx(0.01)
