"""The inventory, against a loop over items and periods in plain Python."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from examples.map import inventory

Array = npt.NDArray[np.float64]


def by_hand(weights: Array, demands: Array) -> float:
    """Returns a policy's mean cost per period, of one scenario after the other."""
    n = inventory.ITEMS
    w1, rest = weights[: 10 * 6].reshape(10, 6), weights[60:]
    b1, w2, b2 = rest[:6], rest[6:30].reshape(6, n), rest[30:]
    total = 0.0
    for demand in demands:
        stock = [2.0 * mean for mean in inventory.MEAN_DEMAND]
        coming = [list(inventory.MEAN_DEMAND) for _ in range(2)]
        for period in range(52):
            angle = 2.0 * math.pi * period / 52
            relative = [stock[i] / inventory.MEAN_DEMAND[i] for i in range(n)]
            due = [sum(c[i] for c in coming) / inventory.MEAN_DEMAND[i] for i in range(n)]
            features = np.array([*relative, *due, math.sin(angle), math.cos(angle)])
            output = np.tanh(features @ w1 + b1) @ w2 + b2
            wanted = [
                math.floor(max(inventory.MEAN_DEMAND[i] * (1.0 + output[i]), 0.0)) for i in range(n)
            ]
            share = min(1.0, 120.0 / max(sum(wanted), 1.0))
            ordered = [math.floor(share * w) for w in wanted]
            coming.append([float(o) for o in ordered])
            arrived = coming.pop(0)
            for i in range(n):
                available = stock[i] + arrived[i]
                sold = min(available, demand[period, i])
                stock[i] = available - sold
                total += inventory.HOLDING[i] * stock[i]
                total += inventory.LOST[i] * (demand[period, i] - sold)
                total += 30.0 * (ordered[i] > 0)
    return total / (52 * len(demands))


def test_costs_are_those_of_the_loop() -> None:
    demands = inventory.demand("test", 0, 0, 2)
    # Weights so large that capacity and nothing at all are both ordered.
    policies = np.stack([inventory.initial_policy(0), 5.0 * inventory.initial_policy(1)])
    expected = [by_hand(policy, demands) for policy in policies]
    np.testing.assert_allclose(inventory.costs(policies, demands), expected, rtol=1e-12)


def test_weights_are_counted() -> None:
    assert inventory.initial_policy(0).shape == (inventory.DIMENSION,) == (94,)


def test_demand_is_seasonal_poisson_and_a_function_of_its_place() -> None:
    drawn = inventory.demand("training", 0, 3, 4000)
    np.testing.assert_array_equal(drawn, inventory.demand("training", 0, 3, 4000))
    assert (drawn != inventory.demand("training", 0, 4, 4000)).any()
    np.testing.assert_allclose(drawn.mean((0, 1)), inventory.MEAN_DEMAND, rtol=0.02)
    # In week 13 the first item's season is at its height.
    assert drawn[:, 13, 0].mean() == pytest.approx(30.0, rel=0.02)


def test_the_rule_is_better_than_ordering_the_mean() -> None:
    demands = inventory.demand("test", 0, 0, 20)
    (mean,) = inventory.costs(np.zeros((1, inventory.DIMENSION)), demands)
    assert inventory.base_stock_costs(demands).mean() < 0.7 * mean


def test_a_policy_without_numbers_orders_nothing() -> None:
    (cost,) = inventory.costs(np.full((1, 94), np.nan), inventory.demand("test", 0, 0, 1))
    assert np.isfinite(cost)
