"""Algorithm 4's standard error against the spread of the mean over repetitions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import ImportanceSampling
from lerh_tf.loss.objective import LossFunction
from lerh_tf.noise import PhiloxNoise

Loss = Callable[[tf.Tensor], tf.Tensor]
REPETITIONS = 200


def ratio(
    loss: Loss, samples: int, tau: float, dimensions: int = 60, control_variate: bool = False
) -> tuple[float, float]:
    """The standard error over the spread of m, and the mean effective sample size."""
    x = [tf.zeros(dimensions, tf.float64)]
    objective = LossFunction(lambda v: loss(v[0]), 1)
    kernel = ImportanceSampling(samples, control_variate=control_variate)

    def one(update: tf.Tensor) -> Any:
        noise = PhiloxNoise(5, update, x)
        found = kernel(objective, x, tf.constant(tau, tf.float64), noise)
        names = ("standard_error", "effective_sample_size")
        return (found.displacement[0], *(found.diagnostics[name] for name in names))

    @tf.function(autograph=False)
    def run() -> Any:
        updates = tf.range(REPETITIONS, dtype=tf.int64)
        return tf.map_fn(one, updates, fn_output_signature=(tf.float64,) * 3)

    displacement, errors, sizes = run()
    spread = np.var(displacement, axis=0, ddof=1).sum()
    return float(np.sqrt(np.mean(errors**2) / spread)), float(np.mean(sizes))


def slope(steepness: float, dimensions: int = 20) -> Loss:
    return lambda v: steepness * tf.reduce_sum(v[:dimensions])


def wells(v: tf.Tensor) -> tf.Tensor:
    return 3.0 * tf.reduce_sum((v[:20] ** 2 - 1.0) ** 2)


# f, J, tau and about which effective sample size they give.
FLAT_IN_MOST: dict[str, tuple[Loss, int, float, float]] = {
    "one sample": (slope(0.0), 1, 0.01, 1.0),
    "equal weights": (slope(0.0), 5, 1.5, 5.0),
    "one weight of 20": (slope(1e4), 20, 0.01, 1.0),
    "few weights of 300": (slope(30.0), 300, 0.001, 4.0),
    "many weights of 300": (slope(5.0), 300, 0.001, 182.0),
    "wells": (wells, 30, 1.5, 1.1),
    "shallow wells": (lambda v: 0.2 * wells(v), 30, 0.3, 20.0),
}


@pytest.mark.parametrize("name", FLAT_IN_MOST)
def test_it_is_the_spread_where_f_is_flat_in_most_dimensions(name: str) -> None:
    loss, samples, tau, size = FLAT_IN_MOST[name]
    found, effective = ratio(loss, samples, tau)
    assert effective == pytest.approx(size, rel=0.5)
    # A spread over 200 repetitions in 60 dimensions has a standard error of 1 %.
    assert found == pytest.approx(1.0, abs=0.1)


# Where the weights are all but equal differences of their sums would be 100 times too large.
NEARLY_FLAT = (slope(1e-3), 300, 0.001, 300.0)


@pytest.mark.parametrize("name", [*list(FLAT_IN_MOST)[2:], "nearly flat"])
def test_that_of_the_control_variate_is_the_spread_there(name: str) -> None:
    loss, samples, tau, size = {**FLAT_IN_MOST, "nearly flat": NEARLY_FLAT}[name]
    found, effective = ratio(loss, samples, tau, control_variate=True)
    assert effective == pytest.approx(size, rel=0.5)
    assert found == pytest.approx(1.0, abs=0.1)


def test_it_is_zero_only_where_nothing_moves() -> None:
    x = [tf.zeros(200, tf.float32)]
    kernel = ImportanceSampling(1000, control_variate=True)

    def found(steepness: float) -> Any:
        loss = LossFunction(lambda v: slope(steepness)(v[0]), 1)
        return kernel(loss, x, tf.constant(1e-6), PhiloxNoise(5, tf.constant(0), x))

    # In float32 too: losses that differ in their seventh digit.
    errors = [float(found(s).diagnostics["standard_error"]) for s in (1e-2, 1e-3)]
    assert errors[0] == pytest.approx(10 * errors[1], rel=0.05)
    assert errors[1] > 0.0
    assert float(found(0.0).diagnostics["standard_error"]) == 0.0
    np.testing.assert_array_equal(found(0.0).displacement[0], 0.0)


def test_the_delta_method_alone_is_too_small_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImportanceSampling, "_missed_variance", lambda *_: 0.0)
    for name in ("one sample", "one weight of 20", "few weights of 300"):
        assert ratio(*FLAT_IN_MOST[name][:3])[0] < 0.6


@pytest.mark.parametrize("dimensions", [1, 60])
@pytest.mark.parametrize(("curvature", "samples"), [(1.0, 50), (30.0, 5), (30.0, 300)])
def test_it_is_an_upper_bound_where_f_is_convex(
    curvature: float, samples: int, dimensions: int
) -> None:
    loss = lambda v: 0.5 * curvature * tf.reduce_sum((v - 0.1) ** 2)  # noqa: E731
    found, _ = ratio(loss, samples, 0.1, dimensions)
    assert found > 1.0 - 3 / np.sqrt(2 * REPETITIONS * dimensions)


def test_a_steep_slope_in_one_dimension_is_the_exception() -> None:
    found, _ = ratio(slope(5.0, 1), 500, 0.3, 1)
    assert 0.7 < found < 0.95
