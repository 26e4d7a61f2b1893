"""Algorithm 5 against NumPy on the same noise; its readings, diagnostics and errors."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.optimizers.schedules import (
    ExponentialDecay,
    LearningRateSchedule,
    PiecewiseConstantDecay,
)

from lerh_tf import RobbinsMonro, RobbinsMonroSteps
from lerh_tf.kernels.base import Estimate
from lerh_tf.loss.objective import LossFunction
from lerh_tf.noise import PhiloxNoise
from tests.lerh_tf.kernels._network import (
    ANCHOR,
    SIZE,
    TOLERANCES,
    InjectedNoise,
    SeededNoise,
    estimate,
    gradient,
    relative_error,
)
from tests.lerh_tf.kernels._paper import Array, Root, robbins_monro

TAU = 0.3
DTYPES = sorted(TOLERANCES)
SCHEDULES: dict[str, LearningRateSchedule] = {
    "growing": RobbinsMonroSteps(0.1, 0.7, growing=True),
    # Keras computes its schedules in float32: powers of two come out exact.
    "exponential": ExponentialDecay(0.5, 5, 0.5, staircase=True),
    "piecewise": PiecewiseConstantDecay([3, 8], [0.125, 0.0625, 0.5]),
}


def noise_of(steps: int, samples: int) -> Array:
    return np.random.default_rng(steps).standard_normal((steps, samples, SIZE))


def paper(kernel: RobbinsMonro, n: Array) -> Root:
    """Algorithm 5 in NumPy for the settings of `kernel`."""
    a = np.array([float(kernel.step_sizes(j)) for j in range(1, kernel.steps + 1)])
    return robbins_monro(gradient, ANCHOR, TAU, a, n)


def assert_equal(actual: Estimate, expected: Root, dtype: str) -> None:
    tolerance = TOLERANCES[dtype]
    assert actual.chain == []
    assert relative_error(actual.displacement, expected.x - ANCHOR) < tolerance
    residual = np.linalg.norm(expected.h)
    np.testing.assert_allclose(actual.diagnostics["residual"], residual, rtol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize("samples", [1, 7])
def test_moves_are_the_paper_s(samples: int, steps: int, dtype: str) -> None:
    n = noise_of(steps, samples)
    kernel = RobbinsMonro(steps, samples)
    assert_equal(estimate(kernel, TAU, n, dtype), paper(kernel, n), dtype)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_any_schedule_of_j(schedule: str) -> None:
    n = noise_of(10, 3)
    kernel = RobbinsMonro(10, 3, step_sizes=SCHEDULES[schedule])
    assert_equal(estimate(kernel, TAU, n, "float64"), paper(kernel, n), "float64")


# Full blocks only, and a part of one.
@pytest.mark.parametrize("samples", [6, 7])
def test_each_step_goes_through_its_own_blocks_of_noise(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lerh_tf.noise._LARGEST_BLOCK", 3)
    blocks = -(-samples // 3)
    n = noise_of(4, 3 * blocks)
    kernel = RobbinsMonro(4, samples)
    actual = estimate(kernel, TAU, n.reshape(4 * blocks, 3, SIZE), "float64")
    assert_equal(actual, paper(kernel, n[:, :samples]), "float64")


def test_what_a_mistake_would_give_is_told_apart() -> None:
    n, j = noise_of(10, 3), np.arange(1.0, 11.0)
    a = np.asarray(0.1 * j**-0.7)
    right = robbins_monro(gradient, ANCHOR, TAU, a, n).x
    wrong = {
        "a move less": robbins_monro(gradient, ANCHOR, TAU, a[:-1], n[:-1]),
        "j from 0": robbins_monro(gradient, ANCHOR, TAU, np.asarray(0.1 * (j + 1) ** -0.7), n),
        "growing": robbins_monro(gradient, ANCHOR, TAU, np.asarray(0.1 * j**0.7), n),
        "gradient dropped": robbins_monro(np.zeros_like, ANCHOR, TAU, a, n),
        "noise dropped": robbins_monro(gradient, ANCHOR, TAU, a, 0 * n),
        "noise of deviation tau": robbins_monro(gradient, ANCHOR, TAU, a, np.sqrt(TAU) * n),
        "one draw for all steps": robbins_monro(gradient, ANCHOR, TAU, a, 0 * n + n[:1]),
        "one draw per step": robbins_monro(gradient, ANCHOR, TAU, a, n[:, :1]),
    }
    actual = estimate(RobbinsMonro(10, 3), TAU, n, "float32").displacement
    assert relative_error(actual, right - ANCHOR) < TOLERANCES["float32"]
    errors = {
        name: np.linalg.norm(root.x - right) / np.linalg.norm(right - ANCHOR)
        for name, root in wrong.items()
    }
    assert min(errors.values()) > 1e-3, errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, r"`steps` must be a positive integer\. Received: steps=0"),
        ({"steps": 1.5}, r"`steps` must be a positive integer\. Received: steps=1\.5"),
        ({"samples": 0}, r"`samples` must be a positive integer\. Received: samples=0"),
        ({"samples": True}, r"`samples` must be a positive integer\. Received: samples=True"),
        (
            {"step_sizes": 0.1},
            r"a `keras.* as `lerh_tf\.RobbinsMonroSteps\(.*Received: step_sizes=0\.1",
        ),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobbinsMonro(**arguments)


def test_defaults_are_the_paper_s_but_for_the_decay() -> None:
    kernel = RobbinsMonro()
    assert (kernel.steps, kernel.samples, kernel.has_chain) == (30, 30, False)
    config = {"c": 0.1, "alpha": 0.7, "growing": False, "largest": None}
    assert kernel.step_sizes.get_config() == config


def test_configuration_round_trip() -> None:
    kernel = RobbinsMonro(4, 5, step_sizes=RobbinsMonroSteps(0.2, 0.9, growing=True))
    config = keras.saving.serialize_keras_object(kernel)
    assert config["registered_name"] == "lerh_tf>RobbinsMonro"
    copy = keras.saving.deserialize_keras_object(config)
    assert isinstance(copy, RobbinsMonro)
    assert copy.get_config() == kernel.get_config()
    assert float(copy.step_sizes(3)) == float(kernel.step_sizes(3))


def run(kernel: RobbinsMonro, objective: LossFunction, x: Array, tau: float) -> Estimate:
    """What the kernel, compiled, finds for one variable in float64 with NumPy's noise."""
    z = np.random.default_rng(0).standard_normal((kernel.steps, kernel.samples, *x.shape))

    @tf.function(autograph=False)
    def compiled() -> Estimate:
        tensors = [tf.constant(x)]
        return kernel(objective, tensors, tf.constant(tau, tf.float64), InjectedNoise([z]))

    return compiled()


FLAT = LossFunction(lambda v: 0.0 * tf.reduce_sum(v[0]), 1)
QUADRATIC = LossFunction(lambda v: 0.5 * tf.reduce_sum(v[0] ** 2), 1)


SLOPE = LossFunction(lambda v: 3.0 * tf.reduce_sum(v[0]), 1)


def test_the_defaults_go_half_of_the_way() -> None:
    estimate = run(RobbinsMonro(), SLOPE, np.ones(4), tau=0.1)
    a = 0.1 * np.arange(1.0, 31.0) ** -0.7
    left, before = np.prod(1 - a), np.prod(1 - a[:-1])
    assert left == pytest.approx(0.51, abs=0.005)
    np.testing.assert_allclose(estimate.displacement[0], -0.3 * (1 - left), rtol=1e-12)
    found = estimate.diagnostics
    np.testing.assert_allclose(found["residual"], 0.6 * before, rtol=1e-12)
    np.testing.assert_allclose(found["relative_residual"], before / (1 - left), rtol=1e-12)


def test_the_relative_residual_is_small_at_the_root_and_zero_where_nothing_moves() -> None:
    kernel = RobbinsMonro(20, 1, step_sizes=PiecewiseConstantDecay([0], [0.75, 0.75]))
    arrived, still = (run(kernel, f, np.ones(4), tau=0.1).diagnostics for f in (SLOPE, FLAT))
    assert arrived["relative_residual"] < 1e-8
    assert still["relative_residual"] == still["residual"] == 0.0


AVERAGE = RobbinsMonroSteps(1.0, 1.0, largest=0.5)
# The noise of a gradient is a hundredth of it; h has slope 1.02.
BOWL = LossFunction(lambda v: 0.1 * tf.reduce_sum((v[0] - 1.0) ** 2), 1)
REPETITIONS = 100


def solved(kernel: RobbinsMonro, tau: float = 0.1) -> tuple[Array, dict[str, Array]]:
    """The displacement in 200 dimensions over repetitions, and the diagnostics."""
    x = tf.zeros([200], tf.float64)

    def once(k: tf.Tensor) -> Any:
        found = kernel(BOWL, [x], tf.constant(tau, tf.float64), PhiloxNoise(3, k, [x]))
        return found.displacement[0], [tf.cast(d, x.dtype) for d in found.diagnostics.values()]

    @tf.function(autograph=False)
    def run() -> Any:
        names = [x.dtype] * len(kernel.diagnostic_names)
        updates = tf.range(REPETITIONS, dtype=tf.int64)
        return tf.map_fn(once, updates, fn_output_signature=(x.dtype, names))

    displacement, diagnostics = run()
    return displacement.numpy(), {
        name: value.numpy()
        for name, value in zip(kernel.diagnostic_names, diagnostics, strict=True)
    }


def test_a_tolerance_is_kept_and_costs_no_more_moves_than_needed() -> None:
    tolerance, root = 0.02, 0.02 / 1.02
    displacement, found = solved(RobbinsMonro(500, 5, step_sizes=AVERAGE, tolerance=tolerance))
    errors = np.linalg.norm(displacement - root, axis=1) / np.linalg.norm(np.full(200, root))
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(tolerance, rel=0.2)
    assert np.ptp(found["steps"]) > 0
    assert found["steps"].max() < 500
    # Half the error takes four times the moves.
    finer = solved(RobbinsMonro(500, 5, step_sizes=AVERAGE, tolerance=tolerance / 2))[1]
    assert finer["steps"].mean() == pytest.approx(4 * found["steps"].mean(), rel=0.2)


@pytest.mark.parametrize("schedule", [AVERAGE, RobbinsMonroSteps()])
def test_standard_error_is_the_spread_over_repetitions(schedule: LearningRateSchedule) -> None:
    displacement, found = solved(RobbinsMonro(20, 4, step_sizes=schedule))
    spread = np.sqrt(displacement.var(0, ddof=1).sum())
    assert np.sqrt(np.mean(found["standard_error"] ** 2)) == pytest.approx(spread, rel=0.1)
    assert set(found["steps"]) == {20.0}


@pytest.mark.parametrize(("largest", "curvature"), [(0.5, 25.0), (0.25, 60.0)])
def test_capped_steps_are_stable_where_plain_ones_are_not(largest: float, curvature: float) -> None:
    steep = LossFunction(lambda v: curvature / 2.0 * tf.reduce_sum(v[0] ** 2), 1)
    root = -0.1 * curvature / (1.0 + 0.1 * curvature)

    def error(largest: float | None) -> float:
        steps = RobbinsMonroSteps(1.0, 1.0, largest=largest)
        still = InjectedNoise([np.zeros((3, 1, 4))], "float32")
        kernel, x, tau = RobbinsMonro(3, 1, step_sizes=steps), [tf.ones([4])], tf.constant(0.1)
        run = tf.function(lambda: kernel(steep, x, tau, still), autograph=False)
        return float(np.abs(run.get_concrete_function()().displacement[0] - root).max())

    assert error(largest) < abs(root) / 2.0
    assert error(largest) < error(None) / 3.0


def test_one_move_says_nothing_of_its_noise() -> None:
    found = run(RobbinsMonro(1, 3), SLOPE, np.ones(4), tau=0.1)
    assert found.diagnostics["standard_error"] == np.inf


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf"), "0.1", True, None])
def test_tolerance_must_be_finite_and_not_negative(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="`tolerance` must be") as refusal:
        RobbinsMonro(tolerance=tolerance)
    assert refusal.match(f"Received: tolerance={tolerance!r}$")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite_moves_nothing(bad: float) -> None:
    objective = LossFunction(lambda v: bad * tf.reduce_sum(v[0]), 1)
    estimate = run(RobbinsMonro(4, 3), objective, np.ones(3), tau=0.1)
    assert not estimate.is_valid
    np.testing.assert_array_equal(estimate.displacement[0], np.zeros(3))
    assert estimate.diagnostics["non_finite"] == 1.0


def test_growing_steps_run_as_printed() -> None:
    # a_30 = 1.08: past the stable range of a steep quadratic, and yet only 30 steps.
    kernel = RobbinsMonro(30, 2, step_sizes=RobbinsMonroSteps(growing=True))
    estimate = run(kernel, QUADRATIC, np.ones(3), tau=0.1)
    assert estimate.is_valid
    assert estimate.diagnostics["non_finite"] == 0.0


def test_eager_and_compiled_agree() -> None:
    kernel = RobbinsMonro(5, 3)
    compiled = run(kernel, QUADRATIC, np.ones(3), tau=0.1)
    tf.config.run_functions_eagerly(True)
    try:
        eager = run(kernel, QUADRATIC, np.ones(3), tau=0.1)
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose(eager.displacement[0], compiled.displacement[0], rtol=1e-12)


def nodes(steps: int, samples: int) -> int:
    @tf.function(autograph=False)
    def compiled(x: tf.Tensor) -> Estimate:
        tau, noise = tf.constant(0.1, tf.float64), SeededNoise(0, (3,))
        return RobbinsMonro(steps, samples)(QUADRATIC, [x], tau, noise)

    graph = compiled.get_concrete_function(tf.TensorSpec([3], tf.float64)).graph.as_graph_def()
    return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)


def test_graph_does_not_grow_with_steps_or_samples() -> None:
    assert nodes(30, 30) == nodes(300, 30) == nodes(30, 3000)
