"""What both outer loops share: their state, and Keras's own features around the update."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._kernels import flat
from tests.lerh_tf._regression import (
    TAU,
    Array,
    assert_close,
    assert_equal,
    compiled,
    data,
    fit,
    network,
    np_mean,
    np_sampled_losses,
    np_trained,
    sampler,
    trained,
)

pytestmark = pytest.mark.usefixtures("plain_loops")
schedules = keras.optimizers.schedules
SCHEDULE = schedules.ExponentialDecay(0.5, 100, 0.9)
COMMON = ["step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized"]
DIAGNOSTICS = [*COMMON, *ImportanceSampling.diagnostic_names]
BUILT = [*DIAGNOSTICS, "unreported_failures"]
WEIGHTS = 4


def names_of(optimizer: LocalEntropy) -> list[str]:
    """The variables' names without those of the weights in them."""
    return [v.name.rpartition("bias_")[2].rpartition("kernel_")[2] for v in optimizer.variables]


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (sampler, ["iteration", "tau", *BUILT]),
        (lambda: sampler(SCHEDULE), ["iteration", *BUILT]),
        (lambda: sampler(learning_rate=0.1), ["iteration", "learning_rate", "tau", *BUILT]),
        (lambda: sampler(learning_rate=SCHEDULE), ["iteration", "tau", *BUILT]),
        (
            lambda: sampler(use_ema=True, gradient_accumulation_steps=2),
            [
                *("iteration", "tau"),
                *["average"] * WEIGHTS,
                *["gradient_accumulator"] * WEIGHTS,
                *BUILT,
            ],
        ),
        (
            lambda: LocalEntropy(TAU, SGLD(samples=5), seed=0),
            [
                *("iteration", "tau"),
                *COMMON,
                *SGLD.diagnostic_names,
                "unreported_failures",
                "chain_started",
                *["chain"] * WEIGHTS,
            ],
        ),
    ],
)
def test_order_of_the_variables_is_the_file_format(optimizer: Any, expected: list[str]) -> None:
    made = optimizer()
    made.build(network().trainable_variables)
    assert names_of(made) == expected


def test_building_twice_adds_nothing() -> None:
    optimizer, variables = sampler(), network().trainable_variables
    optimizer.build(variables)
    count = len(optimizer.variables)
    optimizer.build(variables)
    assert len(optimizer.variables) == count


# Keras itself converts its variables in a way that NumPy 2 deprecates.
saving = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning")


@saving
def test_saved_model_goes_on_bit_identically(tmp_path: Path) -> None:
    model = compiled(sampler())
    fit(model, 2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_equal(state_of(loaded.optimizer.variables), state_of(model.optimizer.variables))
    uninterrupted = fit(model, 2)
    assert_equal(fit(loaded, 2), uninterrupted)
    assert_close(uninterrupted, np_trained(updates=4), tolerance=1e-5)


@saving
def test_tau_that_was_set_is_saved(tmp_path: Path) -> None:
    optimizer = sampler()
    model = compiled(optimizer)
    fit(model, 1)
    optimizer.tau = 0.5
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.tau.numpy() == 0.5
    assert_equal(fit(loaded, 1), fit(model, 1))


def test_diagnostics_are_the_last_update_s() -> None:
    optimizer = sampler()
    assert optimizer.diagnostics == {}
    model = compiled(optimizer)
    x = state_of(model.trainable_variables)
    for update in range(2):
        m = fit(model, 1)
        found = optimizer.diagnostics
        assert list(found) == DIAGNOSTICS
        assert all(isinstance(value, float) for value in found.values())
        losses = np_sampled_losses(x, TAU, update)
        size = np.sum(np.exp(-losses)) ** 2 / np.sum(np.exp(-2 * losses))
        assert found["effective_sample_size"] == pytest.approx(size, rel=1e-5)
        assert found["local_entropy"] == pytest.approx(-np.log(np.mean(np.exp(-losses))), rel=1e-5)
        distance = np.linalg.norm(flat(m) - flat(x))
        assert found["step_norm"] == pytest.approx(distance, rel=1e-4)
        assert found["dimensions"] == found["sampled_dimensions"] == 3 * 2 + 2 + 2 + 1
        x = m


@pytest.mark.parametrize("rate", [None, 0.5])
def test_tau_that_follows_a_schedule_can_t_be_set(rate: float | None) -> None:
    optimizer = sampler(SCHEDULE, learning_rate=rate)
    with pytest.raises(TypeError, match="`tau` follows a schedule and can't be set") as refusal:
        optimizer.tau = 0.5
    assert refusal.match("Received: tau=0.5$")


def test_tied_learning_rate_can_t_be_set() -> None:
    optimizer = sampler()
    with pytest.raises(TypeError, match="The learning rate is tied to `tau`") as refusal:
        optimizer.learning_rate = 0.5
    assert refusal.match("Received: learning_rate=0.5$")
    assert optimizer.learning_rate.numpy() == TAU


def test_given_learning_rate_can_be_set() -> None:
    optimizer = sampler(learning_rate=0.25)
    optimizer.learning_rate = 0.5
    assert float(optimizer.learning_rate) == 0.5
    assert optimizer.tau.numpy() == TAU


def test_tied_learning_rate_follows_the_schedule() -> None:
    optimizer = sampler(SCHEDULE)
    assert optimizer.learning_rate.numpy() == optimizer.tau.numpy() == 0.5
    optimizer.iterations.assign(100)
    assert optimizer.learning_rate.numpy() == pytest.approx(0.45)


def test_scale_loss_keeps_the_value_and_drops_the_gradient() -> None:
    a, optimizer = tf.Variable(3.0), sampler()

    @tf.function(autograph=False)
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = a**2
            scaled = optimizer.scale_loss(loss)
        assert tape.gradient(scaled, a) is None
        return loss, scaled

    loss, scaled = step()
    assert loss.numpy() == scaled.numpy() == 9.0


def moved() -> list[tuple[Array, Array]]:
    """x and, by NumPy, the mean m of the first update, one pair per weight."""
    x = state_of(network().trainable_variables)
    return list(zip(x, np_mean(x, TAU, update=0), strict=True))


def test_clipnorm_clips_the_gradient_of_local_entropy() -> None:
    norm = 0.3

    def clip(x: Array, m: Array) -> Array:
        g = (x - m) / TAU
        return x - TAU * g * np.minimum(1.0, norm / np.linalg.norm(g))

    optimizer = sampler(clipnorm=norm)
    expected = [clip(x, m) for x, m in moved()]
    weights = trained(optimizer, updates=1)
    assert_close(weights, expected)
    assert not np.allclose(weights[0], np_trained(updates=1)[0], atol=1e-3)


def test_weight_decay_is_keras_s() -> None:
    optimizer = sampler(weight_decay=0.4)
    expected = [m - 0.4 * TAU * x for x, m in moved()]
    assert_close(trained(optimizer, updates=1), expected)


def test_accumulated_gradients_average_two_draws() -> None:
    optimizer = sampler(gradient_accumulation_steps=2)
    model = compiled(optimizer)
    x = state_of(model.trainable_variables)
    assert_equal(fit(model, 1), x)
    means = zip(np_mean(x, TAU, update=0), np_mean(x, TAU, update=1), strict=True)
    assert_close(fit(model, 1), [(a + b) / 2 for a, b in means])


def test_loss_scale_factor_cancels() -> None:
    assert_close(trained(sampler(loss_scale_factor=8.0), 1), np_trained(updates=1))


def test_average_of_the_weights_is_keras_s() -> None:
    # `fit` ends by putting the average in the place of the weights.
    weights = trained(sampler(use_ema=True, ema_momentum=0.5), updates=2)
    pairs = zip(np_trained(updates=1), np_trained(updates=2), strict=True)
    assert_close(weights, [(a + b) / 2 for a, b in pairs])


def test_constraints_hold_after_the_update() -> None:
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(1, kernel_constraint="non_neg")]
    )
    model.compile(optimizer=sampler(), loss="mse")
    fit(model, 1)
    kernel = model.layers[0].kernel.numpy()
    assert kernel.min() >= 0.0


def test_apply_may_leave_the_variables_out_once_built() -> None:
    optimizer, variable = sampler(), keras.Variable([0.5, -0.5])
    optimizer.build([variable])

    @tf.function(autograph=False)
    def step() -> None:
        optimizer.scale_loss(tf.reduce_sum(variable.value**2))
        optimizer.apply([None])

    step()
    assert np.all(variable.numpy() != [0.5, -0.5])
    assert int(optimizer.iterations.numpy()) == 1


def test_custom_loop_of_tensorflow_trains_through_the_stock_door() -> None:
    optimizer, model = sampler(), network()
    x, y = (tf.constant(a) for a in data())

    @tf.function(autograph=False)
    def step() -> None:
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_mean((model(x, training=True) - y) ** 2))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    for _ in range(2):
        step()
    assert_close(state_of(model.trainable_variables), np_trained(updates=2))
