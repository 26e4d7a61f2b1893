"""An inventory to control: four items, lost sales, fixed ordering costs, seasonal Poisson demand.

Whole units are ordered and sold, so that a policy's cost is piecewise constant in its weights and
has no useful gradient.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import poisson

from examples.map.randomness import generator

Array = npt.NDArray[Any]

ITEMS = 4
PERIODS = 52
LEAD_TIME = 2
"""Periods between an order and its arrival."""

MEAN_DEMAND = np.array([20.0, 10.0, 5.0, 2.0])
SEASON = 0.5
"""Amplitude of the season, relative to the mean."""
PHASES = np.array([0.0, 0.25, 0.5, 0.75])
DISPERSION = 10.0
"""Shape of the Gamma factor of mean 1 on a scenario's demand."""

HOLDING = np.array([0.5, 1.0, 2.0, 4.0])
"""Cost per unit on hand at the end of a period."""
LOST = np.array([5.0, 10.0, 20.0, 40.0])
"""Cost per unit of demand that is not met."""
ORDERING = 30.0
"""Cost of each order of an item."""
CAPACITY = 120.0
"""Units that can be ordered in a period, of all items together."""

HIDDEN = 6
_FEATURES = 2 * ITEMS + 2
_SHAPES = ((_FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, ITEMS), (ITEMS,))
DIMENSION = sum(int(np.prod(shape)) for shape in _SHAPES)
"""Weights of the policy."""


def demand(purpose: str, seed: int, position: int, scenarios: int) -> Array:
    """Draws demands, shape (scenarios, periods, items)."""
    draws = generator(purpose, seed, position)
    level = draws.gamma(DISPERSION, 1.0 / DISPERSION, (scenarios, 1, ITEMS))
    return draws.poisson(level * _season()).astype(np.float64)


def initial_policy(seed: int) -> Array:
    """Returns weights that order about the mean demand in each period, shape (dimension,)."""
    return 0.1 * generator("weights", seed).standard_normal(DIMENSION)


def costs(policies: Array, demands: Array) -> Array:
    """Returns each policy's mean cost per period.

    A policy is a network with one hidden layer of tanh, from stock on hand and on order per item,
    relative to the mean demand, and the season's sine and cosine, to what is ordered per item,
    mean demand times one plus its output, in whole units.

    Args:
        policies: Weights, shape (policies, dimension).
        demands: Shape (scenarios, periods, items).

    Returns:
        Shape (policies,).
    """
    w1, b1, w2, b2 = _layers(policies)

    def orders(on_hand: Array, on_order: Array, period: int) -> Array:
        season = np.broadcast_to(_phase(period), (*on_hand.shape[:-1], 2))
        features = np.concatenate([on_hand / MEAN_DEMAND, on_order / MEAN_DEMAND, season], -1)
        output = np.tanh(features @ w1 + b1[:, None]) @ w2 + b2[:, None]
        return MEAN_DEMAND * (1.0 + output)

    return _simulate(orders, len(policies), demands).mean(1)


def base_stock_costs(demands: Array) -> Array:
    """Returns the mean cost per period and scenario of the textbook's rule, shape (scenarios,).

    Each item is ordered up to the newsvendor's quantile, lost / (lost + holding), of the season's
    Poisson demand until the next order arrives; fixed costs and capacity are unknown to it.
    """
    rates = np.concatenate([_season(), _season()])
    ahead = np.stack([rates[t : t + LEAD_TIME + 1].sum(0) for t in range(PERIODS)])
    levels: Array = np.asarray(poisson.ppf(LOST / (LOST + HOLDING), ahead))

    def orders(on_hand: Array, on_order: Array, period: int) -> Array:
        return levels[period] - on_hand - on_order

    return _simulate(orders, 1, demands)[0]


def _simulate(orders: Any, policies: int, demands: Array) -> Array:
    """Returns the mean cost per period, shape (policies, scenarios)."""
    scenarios = len(demands)
    on_hand = np.broadcast_to(MEAN_DEMAND * LEAD_TIME, (policies, scenarios, ITEMS))
    # What arrives in the next periods, the soonest first.
    pipeline = [np.broadcast_to(MEAN_DEMAND, on_hand.shape)] * LEAD_TIME
    total = np.zeros((policies, scenarios))
    for period in range(PERIODS):
        wanted = np.floor(np.maximum(orders(on_hand, sum(pipeline), period), 0.0))
        # Not a number orders nothing.
        ordered = np.floor(np.nan_to_num(wanted) * _share_of_capacity(np.nan_to_num(wanted)))
        arrived, *pipeline = [*pipeline, ordered]
        available = on_hand + arrived
        sold = np.minimum(available, demands[:, period])
        on_hand = available - sold
        total += (HOLDING * on_hand + LOST * (demands[:, period] - sold)).sum(-1)
        total += ORDERING * (ordered > 0.0).sum(-1)
    return total / PERIODS


def _share_of_capacity(wanted: Array) -> Array:
    asked = np.maximum(wanted.sum(-1, keepdims=True), 1.0)
    return np.minimum(1.0, CAPACITY / asked)


def _season() -> Array:
    """Mean demands, shape (periods, items)."""
    time = np.arange(PERIODS)[:, None] / PERIODS
    return MEAN_DEMAND * (1.0 + SEASON * np.sin(2.0 * np.pi * (time + PHASES)))


def _phase(period: int) -> Array:
    angle = 2.0 * np.pi * period / PERIODS
    return np.array([np.sin(angle), np.cos(angle)])


def _layers(policies: Array) -> list[Array]:
    ends = np.cumsum([int(np.prod(shape)) for shape in _SHAPES])[:-1]
    parts = np.split(policies, ends, axis=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, _SHAPES, strict=True)]
