"""Algorithm 4 against arithmetic done by hand, by NumPy and by quadrature."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import logsumexp

from lerh_tf import ImportanceSampling
from lerh_tf.kernels import importance, weighted_sums
from lerh_tf.loss.objective import scaled
from lerh_tf.noise import PhiloxNoise
from lerh_tf.oracles import Landscape
from tests.lerh_tf._kernels import (
    Array,
    ArrayNoise,
    Result,
    estimate,
    flat,
    replayed,
    size_of_blocks,
)
from tests.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.usefixtures("plain_loops")

SHAPES = ((3,), (2, 2))
BLOCK = size_of_blocks(SHAPES)
TAU = 0.3


def tf_loss(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.exp(a[0] - b[1, 0]) + tf.reduce_sum(a) ** 2 + tf.reduce_sum(tf.sin(b[0] * 2.0))


def np_loss(a: Array, b: Array) -> Array:
    """The same for many weights at once, (samples, *shape) to (samples)."""
    return np.exp(a[:, 0] - b[:, 1, 0]) + a.sum(1) ** 2 + np.sin(b[:, 0] * 2.0).sum(1)


def np_importance(
    loss: Callable[..., Array], x: Sequence[Array], z: Sequence[Array], factor: float = 1.0
) -> Result:
    """Algorithm 4 by its formula, on positions, in float64."""
    positions = [
        np.float64(x_v) + np.sqrt(TAU) * np.float64(z_v) for x_v, z_v in zip(x, z, strict=True)
    ]
    losses = loss(*positions)
    log_w = np.where(np.isfinite(losses), -factor * losses, -np.inf)
    w = np.exp(log_w - logsumexp(log_w))
    mean = [np.tensordot(w, p, 1) for p in positions]
    squares = sum(
        ((p - m) ** 2).reshape(len(p), -1).sum(1) for p, m in zip(positions, mean, strict=True)
    )
    dimensions = sum(x_v.size for x_v in x)
    missed = dimensions * (2.0 * np.sum(w**3) - np.sum(w**2) ** 2)
    return Result(
        [m - x_v for m, x_v in zip(mean, x, strict=True)],
        [],
        {
            "effective_sample_size": 1.0 / np.sum(w**2),
            "local_entropy": np.log(len(losses)) - logsumexp(log_w),
            "standard_error": np.sqrt(np.sum(w**2 * squares) + TAU * missed),
            "non_finite": float(np.sum(~np.isfinite(losses))),
        },
        True,
    )


def draw(samples: int, dtype: str) -> tuple[list[Array], list[Array]]:
    rng = np.random.default_rng(samples)
    x = [0.3 * rng.standard_normal(shape).astype(dtype) for shape in SHAPES]
    z = [rng.standard_normal((samples, *shape)).astype(dtype) for shape in SHAPES]
    return x, z


def assert_agree(found: Result, expected: Result, tolerance: float) -> None:
    difference = np.linalg.norm(flat(found.displacement) - flat(expected.displacement))
    assert difference <= tolerance * np.linalg.norm(flat(expected.displacement))
    for name, value in expected.diagnostics.items():
        assert found.diagnostics[name] == pytest.approx(value, rel=10 * tolerance), name
    assert found.is_valid is expected.is_valid


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("samples", [20, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 452])
def test_agrees_with_numpy(samples: int, dtype: str, tolerance: float) -> None:
    x, z = draw(samples, dtype)
    found = estimate(ImportanceSampling(samples), tf_loss, x, TAU, ArrayNoise(z))
    assert all(d.dtype == dtype for d in found.displacement)
    assert_agree(found, np_importance(np_loss, x, z), tolerance)


@pytest.mark.parametrize("factor", [0.5, 20.0])
def test_loss_multiplier_agrees_with_numpy(factor: float) -> None:
    x, z = draw(20, "float32")
    found = estimate(ImportanceSampling(20, loss_multiplier=factor), tf_loss, x, TAU, ArrayNoise(z))
    assert_agree(found, np_importance(np_loss, x, z, factor), 1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_loops_agree_with_numpy(
    jit_compile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    x, z = draw(BLOCK + 300, "float32")
    kernel = ImportanceSampling(BLOCK + 300)
    found = estimate(kernel, tf_loss, x, TAU, ArrayNoise(z), jit_compile)
    assert_agree(found, np_importance(np_loss, x, z), 1e-5)


def test_one_sample_is_the_new_weight() -> None:
    x, z = draw(1, "float64")
    found = estimate(ImportanceSampling(1), tf_loss, x, TAU, ArrayNoise(z))
    np.testing.assert_allclose(flat(found.displacement), np.sqrt(TAU) * flat(z), rtol=1e-14)
    assert found.diagnostics["effective_sample_size"] == 1.0
    assert found.diagnostics["standard_error"] == pytest.approx(np.sqrt(7 * TAU))
    assert found.diagnostics["local_entropy"] == pytest.approx(
        np_importance(np_loss, x, z).diagnostics["local_entropy"]
    )


def steps(heights: Sequence[float]) -> Callable[[tf.Tensor], tf.Tensor]:
    """A loss on R that is heights[i] around i."""
    table = tf.constant(heights, tf.float32)
    return lambda v: tf.gather(table, tf.cast(tf.round(v[0]), tf.int32))


def at_integers(heights: Sequence[float], tau: float = 1.0) -> Result:
    """The kernel at x = 0 with one sample at each of 0, 1, ..."""
    z = np.arange(len(heights), dtype="float32")[:, None] / np.float32(np.sqrt(tau))
    x = [np.zeros(1, "float32")]
    return estimate(ImportanceSampling(len(heights)), steps(heights), x, tau, ArrayNoise([z]))


def test_step_by_hand() -> None:
    # exp(-log 2) = 1/2, exp(-log 4) = 1/4 and exp(-log 4) = 1/4 at 0, 1 and 2: all sums are dyadic.
    found = at_integers([np.log(2.0), np.log(4.0), np.log(4.0)], tau=0.25)
    assert found.displacement[0][0] == pytest.approx(0.75, rel=1e-6)
    assert found.diagnostics["effective_sample_size"] == pytest.approx(8 / 3, rel=1e-6)
    assert found.diagnostics["local_entropy"] == pytest.approx(np.log(3.0), rel=1e-6)
    # sum w^3 = 1/8 + 1/64 + 1/64 = 5/32 and (sum w^2)^2 = 9/64.
    variance = (0.75**2) / 4 + (0.25**2) / 16 + (1.25**2) / 16 + 0.25 * (2 * 5 / 32 - 9 / 64)
    assert found.diagnostics["standard_error"] == pytest.approx(np.sqrt(variance), rel=1e-5)


@pytest.mark.parametrize("heights", [(200.0, 210.0), (-200.0, -190.0), (20000.0, 20010.0)])
def test_weights_of_losses_that_underflow(heights: tuple[float, float]) -> None:
    found = at_integers(heights)
    assert found.displacement[0][0] == pytest.approx(4.5398e-5, rel=1e-4)
    assert 1.0 - found.displacement[0][0] == pytest.approx(0.99995, abs=5e-6)
    assert found.diagnostics["local_entropy"] == pytest.approx(heights[0] + np.log(2.0), rel=1e-6)


@pytest.mark.feature(
    "numbers",
    "losses that are infinite or NaN at some samples",
    "`ImportanceSampling` gives them weight zero and counts them",
)
@pytest.mark.parametrize("bad", [np.inf, np.nan, -np.inf])
def test_losses_that_are_not_finite_get_weight_zero_and_are_counted(bad: float) -> None:
    clean, found = at_integers([1.0, 2.0, 1.5]), at_integers([1.0, 2.0, 1.5, bad, bad])
    np.testing.assert_array_equal(found.displacement[0], clean.displacement[0])
    assert found.diagnostics["non_finite"] == 2.0
    assert clean.diagnostics["non_finite"] == 0.0
    assert found.diagnostics["effective_sample_size"] == pytest.approx(
        clean.diagnostics["effective_sample_size"]
    )
    # They are samples of the Gaussian with exp(-f) = 0.
    assert found.diagnostics["local_entropy"] == pytest.approx(
        clean.diagnostics["local_entropy"] + np.log(5 / 3), rel=1e-6
    )


@pytest.mark.parametrize("first", [np.inf, np.nan])
def test_a_first_block_without_finite_losses_is_no_obstacle(first: float) -> None:
    samples = 2 * BLOCK
    x, z = draw(samples, "float32")
    z[0][:BLOCK, 0] = np.abs(z[0][:BLOCK, 0]) + 10.0

    def guarded(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.where(a[0] > x[0][0] + 4.0, first, tf_loss(a, b))

    found = estimate(ImportanceSampling(samples), guarded, x, TAU, ArrayNoise(z))
    rest = np_importance(np_loss, x, [z_v[BLOCK:] for z_v in z])
    np.testing.assert_allclose(flat(found.displacement), flat(rest.displacement), rtol=1e-4)
    assert found.diagnostics["non_finite"] == BLOCK


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_no_finite_loss_is_not_valid_and_moves_nothing(bad: float) -> None:
    found = at_integers([bad] * 3)
    assert not found.is_valid
    np.testing.assert_array_equal(found.displacement[0], [0.0])
    assert found.diagnostics["non_finite"] == 3.0
    assert found.diagnostics["effective_sample_size"] == 0.0


def replicated(
    scenario: Scenario, samples: int, replicates: int, tau: float | None = None
) -> tuple[Array, Array, Array]:
    """Displacements (replicates, d), standard errors and estimates of F_tau of independent runs."""
    kernel = ImportanceSampling(samples)
    x = tf.Variable(np.asarray(scenario.x, "float32"))
    variance = tf.constant(scenario.tau if tau is None else tau)

    @tf.function(autograph=False)
    def run() -> Any:
        read = tf.convert_to_tensor(x)
        objective = replayed(scenario.loss(read, tf.exp), [x])

        def one(update: tf.Tensor) -> Any:
            noise = PhiloxNoise(11, update, [read])
            found = kernel(objective, [read], variance, noise)
            names = ("standard_error", "local_entropy")
            return (found.displacement[0], *(found.diagnostics[name] for name in names))

        return tf.map_fn(
            one,
            tf.range(replicates, dtype=tf.int64),
            fn_output_signature=(tf.float32,) * 3,
            parallel_iterations=1,
        )

    displacement, errors, entropies = (found.numpy().astype("float64") for found in run())
    return displacement, errors, entropies


def misses(scenario: Scenario, samples: int = 100_000) -> list[float]:
    """|estimate - quadrature| in standard errors: of m and of F_tau."""
    (displacement,), (error,), (entropy,) = replicated(scenario, samples, replicates=1)
    landscape = Landscape(scenario.f, scenario.tau)
    mean, exact = landscape.mean(scenario.x).value, landscape.local_entropy(scenario.x).value
    distance = np.linalg.norm(np.asarray(scenario.x) + displacement - mean)
    rng = np.random.default_rng(1)
    z = rng.standard_normal((10_000, len(scenario.x)))
    likelihood = np.exp(-scenario.f(scenario.x + np.sqrt(scenario.tau) * z))
    relative = likelihood.std() / likelihood.mean() / np.sqrt(samples)
    return [float(distance / error), float(abs(entropy - exact) / relative)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_meets_quadrature_within_three_standard_errors(scenario: Scenario) -> None:
    assert max(misses(scenario)) < 3.0


def without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    add = weighted_sums.WeightedSums.add

    def add_equally(self: Any, log_weights: tf.Tensor, *others: Any) -> Any:
        return add(self, tf.zeros_like(log_weights), *others)

    monkeypatch.setattr(weighted_sums.WeightedSums, "add", add_equally)


def tau_as_standard_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importance, "scaled", lambda tau, z: scaled(tau**2, z))


@pytest.mark.parametrize("fault", [without_weights, tau_as_standard_deviation])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_wrong_variant_does_not_meet_quadrature(
    scenario: Scenario, fault: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    miss_of_mean, _ = misses(scenario)
    assert miss_of_mean > 3.0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_standard_error_is_the_spread_over_seeds(scenario: Scenario) -> None:
    replicates = 400
    displacement, errors, _ = replicated(scenario, samples=500, replicates=replicates)
    spread = displacement.var(axis=0, ddof=1).sum()
    # The variance of a sample variance of near-Gaussian numbers is 2 / replicates, relatively.
    assert np.mean(errors**2) == pytest.approx(spread, rel=4 * np.sqrt(2 / replicates))


def test_registered_name_and_config() -> None:
    kernel = ImportanceSampling(samples=7, loss_multiplier=20)
    config = keras.saving.serialize_keras_object(kernel)
    assert config["registered_name"] == "lerh_tf>ImportanceSampling"
    assert config["config"] == {
        "samples": 7,
        "estimator": "positions",
        "control_variate": False,
        "loss_multiplier": 20,
    }
    assert keras.saving.deserialize_keras_object(config) == kernel
    assert kernel != dataclasses.replace(kernel, samples=8)


def test_settings_do_not_change() -> None:
    kernel = ImportanceSampling(samples=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernel.samples = 8  # type: ignore[misc]


@pytest.mark.parametrize("samples", [0, -1, 1.5, 10.0, True, "10", None, float("nan")])
def test_samples_must_be_a_positive_integer(samples: Any) -> None:
    with pytest.raises(ValueError, match="`samples` must be a positive integer") as refusal:
        ImportanceSampling(samples)
    assert refusal.match(f"Received: samples={samples!r}$")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "a", True, None, 1e-60])
def test_loss_multiplier_must_be_positive_and_finite(value: Any) -> None:
    with pytest.raises(
        ValueError, match=r"`loss_multiplier` must be .*positive.*finite"
    ) as refusal:
        ImportanceSampling(10, loss_multiplier=value)
    assert refusal.match(f"Received: loss_multiplier={value!r}$")
