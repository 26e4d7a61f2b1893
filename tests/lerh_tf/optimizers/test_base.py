"""What both outer loops share: their state, and Keras's own features around the update."""

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, Estimate, ImportanceSampling, Kernel, LocalEntropy
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._kernels import flat
from tests.lerh_tf._regression import (
    TAU,
    assert_close,
    assert_equal,
    compiled,
    data,
    fit,
    network,
    np_sampled_losses,
    np_trained,
    sampler,
)

pytestmark = pytest.mark.usefixtures("plain_loops")
schedules = keras.optimizers.schedules
SCHEDULE = schedules.ExponentialDecay(0.5, 100, 0.9)
COMMON = ["step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized"]
DIAGNOSTICS = [*COMMON, *ImportanceSampling.diagnostic_names]
MOMENTUM = [f"inner_{index}_momentum" for index in range(2, 6)]
CHAIN = ["chain_started", *(f"chain_{index}" for index in range(4))]


@pytest.mark.parametrize(
    ("optimizer", "own", "inner"),
    [
        (sampler, ["tau"], ["inner_iteration"]),
        (lambda: sampler(SCHEDULE), [], ["inner_iteration"]),
        (lambda: sampler(learning_rate=0.1), ["tau"], ["inner_iteration", "inner_learning_rate"]),
        (
            lambda: LocalEntropy(
                TAU, SGLD(samples=5), optimizer=keras.optimizers.SGD(momentum=0.9)
            ),
            ["tau", *CHAIN],
            [
                "inner_iteration",
                "inner_learning_rate",
                *(f"inner_{i}_momentum" for i in range(2, 6)),
            ],
        ),
    ],
)
def test_state_is_what_the_next_update_needs(
    optimizer: Any, own: list[str], inner: list[str]
) -> None:
    made = optimizer()
    made.build(network().trainable_variables)
    names = ["iteration", *own, *inner]
    assert list(made.state) == names
    assert {id(v) for v in made.state.values()} == {id(v) for v in made.variables}


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


@pytest.mark.feature("saving", "tau set by hand is saved", "yes")
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


@pytest.mark.feature(
    "update",
    "tau set where it follows a schedule",
    'refused: "construct the optimizer with a number for `tau`"',
)
@pytest.mark.parametrize("rate", [None, 0.5])
def test_tau_that_follows_a_schedule_can_t_be_set(rate: float | None) -> None:
    optimizer = sampler(SCHEDULE, learning_rate=rate)
    advice = "construct the optimizer with a number for `tau`"
    with pytest.raises(TypeError, match=f"^`tau` that follows a schedule .*{advice}") as refusal:
        optimizer.tau = 0.5
    assert refusal.match("Received: tau=0.5$")


@pytest.mark.feature(
    "update",
    "learning rate set where it is tied to tau",
    'refused: "set `tau`, or construct the optimizer with a `learning_rate`"',
)
def test_tied_learning_rate_can_t_be_set() -> None:
    optimizer = sampler()
    with pytest.raises(TypeError, match="The learning rate is tied to `tau`") as refusal:
        optimizer.learning_rate = 0.5
    assert refusal.match("Received: learning_rate=0.5$")
    assert optimizer.learning_rate.numpy() == TAU


@pytest.mark.feature(
    "update",
    "learning rate set to a tensor, variable or array of one number",
    "takes effect, if one was given",
)
@pytest.mark.parametrize("make", [float, tf.constant, np.array, keras.Variable])
def test_given_learning_rate_can_be_set(make: Any) -> None:
    optimizer = sampler(learning_rate=0.25)
    optimizer.learning_rate = make(0.5)
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


@pytest.mark.feature(
    "training",
    "hand-written loop in a `tf.function`, `GradientTape` and `scale_loss`",
    'yes; refused where terms come behind `scale_loss`: "Add every term to the loss"',
)
@pytest.mark.parametrize(
    ("total", "rule"),
    [
        (lambda optimizer, f, g: optimizer.scale_loss(f + g), None),
        (lambda optimizer, f, g: optimizer.scale_loss(f) + g, "`grads` must be None for every"),
        (
            lambda optimizer, f, g: optimizer.scale_loss(f) + optimizer.scale_loss(g),
            "`scale_loss` must be called once per weight update",
        ),
    ],
)
def test_all_of_the_loss_goes_through_scale_loss_once(total: Any, rule: str | None) -> None:
    optimizer, variable = sampler(), keras.Variable([0.5, -0.5])
    optimizer.build([variable])

    @tf.function(autograph=False)
    def step() -> None:
        with tf.GradientTape() as tape:
            w = variable.value
            loss = total(optimizer, tf.reduce_sum(w**2), tf.reduce_sum(w))
        optimizer.apply_gradients([(tape.gradient(loss, w), variable)])

    if rule is None:
        step()
    else:
        with pytest.raises(ValueError, match=rule):
            step()
    assert np.all((variable.numpy() != [0.5, -0.5]) == (rule is None))
    # What a trace that failed has left is no obstacle to the next.
    tf.function(lambda: optimizer.scale_loss(tf.reduce_sum(variable.value)))()


@pytest.mark.feature(
    "training", "hand-written loop in a `tf.function`, `GradientTape` and `scale_loss`"
)
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


@dataclasses.dataclass(frozen=True)
class OwnKernel(Kernel):
    """Returns what it is told to."""

    found: Any = None
    diagnostic_names: ClassVar[tuple[str, ...]] = ("mine",)

    def __call__(self, objective: Any, anchor: Any, *_: Any, **__: Any) -> Estimate:
        zeros = [tf.zeros_like(x) for x in anchor]
        return Estimate(zeros, [], {"mine": tf.constant(1.0)}, tf.constant(True))._replace(
            **(self.found or {})
        )


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        ({"displacement": []}, "`displacement` must hold 1 tensors"),
        ({"chain": [0.0]}, "`chain` must hold 0 tensors"),
        ({"diagnostics": {}}, r"`diagnostics` must hold the declared \['mine'\]"),
        ({"is_valid": True}, "`is_valid` must be a scalar bool tensor"),
    ],
)
def test_what_a_kernel_of_one_s_own_returns_is_checked(found: Any, rule: str) -> None:
    weight = tf.Variable([1.0])
    LocalEntropy(0.1, OwnKernel()).step(lambda: tf.reduce_sum(weight**2), [weight])
    with pytest.raises(ValueError, match=f"^{rule} in what `OwnKernel` returns. Received: Est"):
        LocalEntropy(0.1, OwnKernel(found)).step(lambda: tf.reduce_sum(weight**2), [weight])
