"""Algorithm 3 against NumPy on the same noise; its readings, diagnostics and errors."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.optimizers.schedules import (
    ExponentialDecay,
    InverseTimeDecay,
    LearningRateSchedule,
    PiecewiseConstantDecay,
)

from lerh_tf import SGLD, LangevinSteps
from lerh_tf.kernels.base import Estimate
from lerh_tf.loss.objective import LossFunction
from tests.lerh_tf.kernels._network import (
    ANCHOR,
    ELSEWHERE,
    SIZE,
    TOLERANCES,
    InjectedNoise,
    SeededNoise,
    estimate,
    gradient,
    relative_error,
)
from tests.lerh_tf.kernels._paper import Array, Chain, Gradient, sgld

TAU = 0.3
DTYPES = sorted(TOLERANCES)
# Keras computes its schedules in float32: powers of two come out exact.
SCHEDULES: dict[str, LearningRateSchedule] = {
    "exponential": ExponentialDecay(0.125, 5, 0.5, staircase=True),
    "piecewise": PiecewiseConstantDecay([3, 8], [0.125, 0.0625, 0.5]),
}


def noise_of(blocks: int, size: int) -> Array:
    return np.random.default_rng(blocks).standard_normal((blocks, size, SIZE))


def paper(
    kernel: SGLD,
    z: Array,
    start: Array,
    update: int = 0,
    restart: bool = True,
    of: Gradient = gradient,
) -> Chain:
    """Algorithm 3 in NumPy for the settings of `kernel`."""
    J = kernel.samples
    j = np.arange(1, J + 1) + (0 if restart else J * update)
    eps = np.array([float(kernel.step_sizes(int(j_i))) for j_i in j])
    deviation = np.sqrt(eps) if kernel.noise == "langevin" else eps
    eta = deviation[:-1, None] * z.reshape(-1, SIZE)[: J - 1]
    return sgld(of, ANCHOR, TAU, eps, eta, start)


def assert_equal(actual: Estimate, expected: Chain, dtype: str) -> None:
    tolerance = TOLERANCES[dtype]
    assert relative_error(actual.displacement, expected.mean - ANCHOR) < tolerance
    if actual.chain:
        assert relative_error(actual.chain, expected.states[-1]) < tolerance


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("moves", [1, 10])
@pytest.mark.parametrize("noise", ["langevin", "linear"])
def test_moves_are_the_paper_s(moves: int, noise: str, dtype: str) -> None:
    z = noise_of(1, 32)
    kernel = SGLD(moves + 1, step_sizes=LangevinSteps(10.0), noise=noise)
    assert_equal(estimate(kernel, TAU, z, dtype), paper(kernel, z, ANCHOR), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_any_schedule_of_j(schedule: str, dtype: str) -> None:
    z = noise_of(1, 32)
    kernel = SGLD(11, step_sizes=SCHEDULES[schedule])
    assert_equal(estimate(kernel, TAU, z, dtype), paper(kernel, z, ANCHOR), dtype)


# One full block, one move more, several blocks and a part of one.
@pytest.mark.parametrize("samples", [4, 5, 12])
def test_chain_goes_through_its_blocks_of_noise(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lerh_tf.noise._LARGEST_BLOCK", 3)
    z = noise_of(4, 3)
    kernel = SGLD(samples, step_sizes=LangevinSteps(10.0))
    assert_equal(estimate(kernel, TAU, z, "float64"), paper(kernel, z, ANCHOR), "float64")


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_later_updates(persistent: bool, restart: bool) -> None:
    z = noise_of(1, 32)
    kernel = SGLD(11, step_sizes=LangevinSteps(10.0), persistent=persistent, restart=restart)
    actual = estimate(kernel, TAU, z, "float64", start=ELSEWHERE, update=3)
    start = ELSEWHERE if persistent else ANCHOR
    assert_equal(actual, paper(kernel, z, start, 3, restart), "float64")
    assert bool(actual.chain) == kernel.has_chain == persistent

    other_start = ANCHOR if persistent else ELSEWHERE
    for wrong in (
        paper(kernel, z, other_start, 3, restart),
        paper(kernel, z, start, 3, not restart),
    ):
        assert relative_error(actual.displacement, wrong.mean - ANCHOR) > 1e-3


@pytest.mark.parametrize("noise", ["langevin", "linear"])
@pytest.mark.parametrize("persistent", [True, False])
def test_control_variate_takes_off_the_chain_where_f_is_flat(persistent: bool, noise: str) -> None:
    z, start = noise_of(1, 32), ELSEWHERE if persistent else ANCHOR
    kernel = SGLD(
        11,
        step_sizes=LangevinSteps(3.0),
        persistent=persistent,
        noise=noise,
        control_variate=True,
    )
    found = estimate(kernel, TAU, z, "float64", start=ELSEWHERE)
    plain, flat = (paper(kernel, z, start, of=of) for of in (gradient, np.zeros_like))
    drift = paper(kernel, 0.0 * z, start, of=np.zeros_like)
    expected = plain.mean - flat.mean + drift.mean - ANCHOR
    assert relative_error(found.displacement, expected) < TOLERANCES["float64"]
    if persistent:
        assert relative_error(found.chain, plain.states[-1]) < TOLERANCES["float64"]
    # The start's own share is there, and in it.
    assert relative_error(found.displacement, plain.mean - flat.mean) > 0.1 or not persistent


def variants() -> dict[str, Array]:
    """What plausible mistakes in Algorithm 3 would return as the mean."""
    z, J = noise_of(1, 32).reshape(-1, SIZE), 11
    eps = 1 / (10.0 + np.arange(1, J + 2))
    eta = np.sqrt(eps)[:, None] * z[: J + 1]

    def chain(moves: int, grad: Any = gradient, eta: Array = eta) -> list[Array]:
        return sgld(grad, ANCHOR, TAU, eps[: moves + 1], eta[:moves]).states

    return {
        "right": np.average(chain(J - 1), axis=0, weights=eps[:J]),
        "first state left out": np.average(chain(J - 1)[1:], axis=0, weights=eps[1:J]),
        "one move more": np.average(chain(J)[1:], axis=0, weights=eps[:J]),
        "all of J + 1 states": np.average(chain(J), axis=0, weights=eps),
        "weights not eps": np.mean(chain(J - 1), axis=0),
        "gradient dropped": np.average(chain(J - 1, grad=np.zeros_like), axis=0, weights=eps[:J]),
        "noise not scaled by the root": np.average(
            chain(J - 1, eta=eps[:, None] * z[: J + 1]), axis=0, weights=eps[:J]
        ),
        "last state": chain(J - 1)[-1],
    }


def test_what_a_mistake_would_give_is_told_apart() -> None:
    actual = estimate(
        SGLD(11, step_sizes=LangevinSteps(10.0)), TAU, noise_of(1, 32), "float32"
    ).displacement
    errors = {name: relative_error(actual, m - ANCHOR) for name, m in variants().items()}
    assert errors.pop("right") < TOLERANCES["float32"]
    assert min(errors.values()) > 1e-3, errors


def run(kernel: SGLD, objective: LossFunction, x: Array, tau: float) -> Estimate:
    """What the kernel, compiled, finds for one variable in float64."""

    @tf.function(autograph=False)
    def compiled() -> Estimate:
        anchor, noise = [tf.constant(x)], SeededNoise(0, x.shape)
        return kernel(objective, anchor, tf.constant(tau, tf.float64), noise, anchor)

    return compiled()


FLAT = LossFunction(lambda v: 0.0 * tf.reduce_sum(v[0]), 1)


@pytest.mark.parametrize(("noise", "power"), [("langevin", 0.5), ("linear", 1.0)])
def test_spread_grows_with_the_temperature(noise: str, power: float) -> None:
    def spread(eps: float) -> float:
        constant = PiecewiseConstantDecay([0], [eps, eps])
        # Where tau is large the chain is a random walk.
        estimate = run(SGLD(20, step_sizes=constant, noise=noise), FLAT, np.zeros(1000), tau=1e9)
        return float(np.std(estimate.displacement[0]))

    step_sizes = [1e-4, 1e-3, 1e-2]
    slopes = np.diff(np.log([spread(eps) for eps in step_sizes])) / np.log(10)
    np.testing.assert_allclose(slopes, power, atol=1e-6)


def test_a_single_state_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`samples` must be an integer of at least 2\..* samples=1"
    ):
        SGLD(samples=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 2.0}, r"`samples` must be an integer of at least 2\. Received: samples=2\.0"),
        ({"samples": True}, r"`samples` must be an integer of at least 2\. Received: samples=True"),
        ({"noise": "both"}, r'`noise` must be one of "langevin", "linear"\. .*noise=\'both\''),
        (
            {"step_sizes": 0.1},
            r"a `keras.* as `lerh_tf\.LangevinSteps\(.*Received: step_sizes=0\.1",
        ),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SGLD(**arguments)


def test_defaults_are_the_paper_s() -> None:
    kernel = SGLD()
    assert (kernel.samples, kernel.noise, kernel.persistent) == (1000, "langevin", True)
    assert float(kernel.step_sizes(1)) == 1 / 1001
    assert kernel.restart


def test_configuration_round_trip() -> None:
    kernel = SGLD(
        7, step_sizes=ExponentialDecay(0.1, 5, 0.9), noise="linear", persistent=False, restart=False
    )
    config = keras.saving.serialize_keras_object(kernel)
    assert config["registered_name"] == "lerh_tf>SGLD"
    copy = keras.saving.deserialize_keras_object(config)
    assert isinstance(copy, SGLD)
    assert copy.get_config() == kernel.get_config()
    assert float(copy.step_sizes(5)) == float(kernel.step_sizes(5))


BOWL = LossFunction(lambda v: 5.0 * tf.reduce_sum(v[0] ** 2), 1)


@pytest.mark.parametrize("noise", ["langevin", "linear"])
@pytest.mark.parametrize("offset", [10.0, 1000.0])
def test_standard_error_is_the_spread_over_repetitions(offset: float, noise: str) -> None:
    kernel = SGLD(300, step_sizes=LangevinSteps(offset), noise=noise)
    estimate = run(kernel, FLAT, np.zeros(5000), tau=0.1)
    of_all = np.sqrt(5000) * np.std(estimate.displacement[0])
    # The standard error of a spread over 5000 repetitions is 1 %.
    np.testing.assert_allclose(estimate.diagnostics["standard_error"], of_all, rtol=0.03)


def test_standard_error_is_an_upper_bound_where_f_is_curved_upwards() -> None:
    estimate = run(SGLD(300, step_sizes=LangevinSteps(10.0)), BOWL, np.zeros(5000), tau=0.1)
    of_all = np.sqrt(5000) * np.std(estimate.displacement[0])
    assert 1.03 < estimate.diagnostics["standard_error"] / of_all < 3.0


def test_it_is_too_small_where_f_is_curved_downwards() -> None:
    hill = LossFunction(lambda v: -4.0 * tf.reduce_sum(v[0] ** 2), 1)
    estimate = run(SGLD(300, step_sizes=LangevinSteps(10.0)), hill, np.zeros(5000), tau=0.1)
    of_all = np.sqrt(5000) * np.std(estimate.displacement[0])
    assert 0.1 < estimate.diagnostics["standard_error"] / of_all < 0.9


def test_the_start_s_share_of_the_mean_is_told() -> None:
    # f is flat and nothing is drawn: m - x is the start's share of y^1, 1 in each dimension.
    @tf.function(autograph=False)
    def compiled() -> Estimate:
        x, start = [tf.zeros(3, tf.float64)], [tf.ones(3, tf.float64)]
        noise = InjectedNoise([np.zeros((1, 1024, 3))])
        return SGLD()(FLAT, x, tf.constant(1.5, tf.float64), noise, start)

    estimate = compiled()
    share = float(estimate.diagnostics["mean_start"])
    np.testing.assert_allclose(estimate.displacement[0], np.full(3, share), rtol=1e-9)
    assert share == pytest.approx(0.89, abs=0.005)


def test_without_a_chain_it_starts_at_the_anchor() -> None:
    x, tau = [tf.ones(3, tf.float64)], tf.constant(0.1, tf.float64)
    kernel, noise = SGLD(10), SeededNoise(0, (3,))
    alone, at_anchor = kernel(BOWL, x, tau, noise), kernel(BOWL, x, tau, noise, x)
    for found, expected in ((alone.displacement, at_anchor.displacement), (alone.chain, x)):
        assert found[0].shape == expected[0].shape
    np.testing.assert_array_equal(alone.displacement[0], at_anchor.displacement[0])
    np.testing.assert_array_equal(alone.chain[0], at_anchor.chain[0])


def test_step_sizes_relative_to_tau() -> None:
    x, tau = [tf.ones(3, tf.float64)], tf.constant(0.05, tf.float64)
    relative = SGLD(10, step_sizes=LangevinSteps(2.0), relative_to_tau=True)
    absolute = SGLD(10, step_sizes=InverseTimeDecay(0.05 / 2, 2, 1))
    found, expected = (k(BOWL, x, tau, SeededNoise(0, (3,))) for k in (relative, absolute))
    np.testing.assert_allclose(found.displacement[0], expected.displacement[0], rtol=1e-6)
    other = SGLD(10, step_sizes=LangevinSteps(2.0))(BOWL, x, tau, SeededNoise(0, (3,)))
    assert relative_error(other.displacement, found.displacement[0].numpy()) > 0.1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite_moves_nothing(bad: float) -> None:
    objective = LossFunction(lambda v: bad * tf.reduce_sum(v[0]), 1)
    x = np.ones(3)
    estimate = run(SGLD(40, step_sizes=LangevinSteps(10.0)), objective, x, tau=0.1)
    assert not estimate.is_valid
    np.testing.assert_array_equal(estimate.displacement[0], np.zeros(3))
    np.testing.assert_array_equal(estimate.chain[0], x)
    assert estimate.diagnostics["non_finite"] == 1.0


def test_finite_is_said_to_be() -> None:
    estimate = run(SGLD(40, step_sizes=LangevinSteps(10.0)), FLAT, np.ones(3), tau=0.1)
    assert estimate.is_valid
    assert estimate.diagnostics["non_finite"] == 0.0


def nodes(samples: int) -> int:
    @tf.function(autograph=False)
    def compiled(x: tf.Tensor) -> Estimate:
        tau, noise = tf.constant(0.1, tf.float64), SeededNoise(0, (3,))
        return SGLD(samples)(FLAT, [x], tau, noise, [x])

    graph = compiled.get_concrete_function(tf.TensorSpec([3], tf.float64)).graph.as_graph_def()
    return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)


def test_graph_does_not_grow_with_the_samples() -> None:
    assert nodes(100) == nodes(1000)


def test_eager_and_compiled_agree() -> None:
    kernel = SGLD(40, step_sizes=LangevinSteps(10.0))
    compiled = run(kernel, FLAT, np.ones(3), tau=0.1)
    tf.config.run_functions_eagerly(True)
    try:
        eager = run(kernel, FLAT, np.ones(3), tau=0.1)
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose(eager.displacement[0], compiled.displacement[0], rtol=1e-12)
