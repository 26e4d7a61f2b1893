"""One update of every strategy by hand, and that all of them descend."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from examples.map.costs import middle
from examples.map.randomness import generator
from examples.map.strategies import (
    SIGN_STRATEGIES,
    SNES,
    STRATEGIES,
    Gradientless,
    LocalEntropyByLosses,
    OpenAIES,
    RandomSearch,
    ScheduledOpenAIES,
    Strategy,
    centred_ranks,
    natural_utilities,
)
from lerh_tf.noise import PhiloxNoise

Array = npt.NDArray[Any]
START = np.array([1.0, -2.0, 0.5])
SETTINGS: Mapping[str, float] = {
    "sigma": 0.1,
    "learning_rate": 0.5,
    "rate_factor": 2.0,
    "momentum": 0.0,
    "loss_multiplier": 3.0,
}
ALL = pytest.mark.parametrize(
    "method",
    [*STRATEGIES.values(), SIGN_STRATEGIES["openai_es"]],
    ids=lambda m: m.strategy.__name__,
)


def sphere(population: Array) -> Array:
    return (population**2).sum(1)


def normal(strategy: type[Strategy], count: int) -> Array:
    return generator(strategy.__name__, 7, 0).standard_normal((count, 3), np.float32)


def updated(strategy: type[Strategy], population: int) -> Strategy:
    made = strategy(START, SETTINGS, population, 7, 100)
    made.update(sphere)
    return made


def test_ranks_and_utilities_by_hand() -> None:
    losses = np.array([5.0, 1.0, np.inf, 2.0])
    np.testing.assert_allclose(centred_ranks(losses), [1 / 6, -1 / 2, 1 / 2, -1 / 6])
    raw = np.maximum(0.0, np.log(3.0) - np.log([3.0, 1.0, 4.0, 2.0]))
    np.testing.assert_allclose(natural_utilities(losses), raw / raw.sum() - 0.25)
    assert natural_utilities(losses).sum() == pytest.approx(0.0)


def test_openai_es_by_hand() -> None:
    # From here no coordinate comes to 0, where nothing is near in proportion.
    x, first, second = START + 0.2, np.zeros(3), np.zeros(3)
    strategy = OpenAIES(x, SETTINGS, 4, 7, 100)
    for k in range(2):
        strategy.update(sphere)
        half = generator("OpenAIES", 7, k).standard_normal((2, 3), np.float32)
        z = np.concatenate([half, -half])
        g = centred_ranks(sphere(x + 0.1 * z)) @ z / (4 * 0.1)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        unbiased = first / (1.0 - 0.9 ** (k + 1)), second / (1.0 - 0.999 ** (k + 1))
        x = x - 0.5 * unbiased[0] / np.sqrt(unbiased[1])
        # Adam's epsilon is left out, and its powers are float32.
        np.testing.assert_allclose(strategy.weights, x, rtol=1e-3)


def test_the_sign_networks_openai_es_has_a_schedule_and_decay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws = np.random.default_rng(7).standard_normal((2, 3))
    monkeypatch.setattr(Strategy, "_normal", lambda self, count: draws)
    settings = {**SETTINGS, "weight_decay": 0.4}
    plain, scheduled = (
        strategy(START, settings, 4, 7, 10) for strategy in (OpenAIES, ScheduledOpenAIES)
    )
    for k in range(10):
        before, rate = scheduled.weights, 0.5 * (1.0 + np.cos(np.pi * k / 10)) / 2.0
        moved = plain.weights
        for strategy in (plain, scheduled):
            strategy.update(lambda population: population[:, 0])
        # Weights leave these ranks as they are: both make Adam's step, at other rates.
        step = (plain.weights - moved) / 0.5
        expected = before * (1.0 - 0.4 * rate) + rate * step
        np.testing.assert_allclose(scheduled.weights, expected, rtol=1e-5)
    assert SIGN_STRATEGIES["openai_es"].strategy is ScheduledOpenAIES
    assert STRATEGIES["openai_es"].strategy is OpenAIES


def test_snes_by_hand() -> None:
    found = updated(SNES, 6)
    assert isinstance(found, SNES)
    z = normal(SNES, 6)
    u = natural_utilities(sphere(START + 0.1 * z))
    np.testing.assert_allclose(found.weights, START + 0.1 * (u @ z))
    rate = 2.0 * (3.0 + np.log(3.0)) / (5.0 * np.sqrt(3.0))
    np.testing.assert_allclose(found.deviations, 0.1 * np.exp(rate / 2.0 * (u @ (z**2 - 1.0))))


def test_random_search_moves_to_the_lowest_or_stays() -> None:
    candidates = START + 0.1 * normal(RandomSearch, 3)
    lowest = candidates[np.argmin(sphere(candidates))]
    expected = lowest if sphere(lowest[None]) < sphere(START[None]) else START
    np.testing.assert_allclose(updated(RandomSearch, 4).weights, expected)
    origin = RandomSearch(np.zeros(3), SETTINGS, 4, 7, 100)
    origin.update(sphere)
    np.testing.assert_array_equal(origin.weights, 0.0)


def test_local_entropy_moves_to_the_librarys_mean() -> None:
    found = updated(LocalEntropyByLosses, 64)
    noise = PhiloxNoise(7, 0, [START])
    z = noise(0, 64)[0].numpy()
    losses = sphere(START + 0.1 * z)
    w = np.exp(-3.0 * (losses - losses.min()))
    # tau times the learning rate along (x - m) / tau, with the control variate.
    mean = 0.1 * ((w / w.sum() - 1 / 64) @ z)
    np.testing.assert_allclose(found.weights, START + 0.5 * mean, rtol=1e-5)


@ALL
def test_strategies_descend_and_repeat(method: Gradientless) -> None:
    def run() -> Array:
        strategy = method.strategy(START, middle(method.space), 16, 3, 30)
        for _ in range(30):
            strategy.update(sphere)
        return strategy.weights

    first = run()
    assert sphere(first[None])[0] < 0.9 * sphere(START[None])[0]
    np.testing.assert_array_equal(first, run())


@ALL
def test_losses_that_are_not_finite_are_survived(method: Gradientless) -> None:
    strategy = method.strategy(START, middle(method.space), 16, 3, 30)
    strategy.update(lambda population: np.where(population[:, 0] > 1.0, np.nan, 1.0))
    assert np.isfinite(strategy.weights).all()
