"""Algorithm 1: the update, and what can be asked of it."""

import json
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy, RobbinsMonro
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._regression import (
    SAMPLES,
    TAU,
    assert_close,
    assert_equal,
    compiled,
    differ,
    fit,
    network,
    np_trained,
    sampler,
    trained,
)

pytestmark = pytest.mark.usefixtures("plain_loops")
schedules = keras.optimizers.schedules


@pytest.mark.parametrize("loops", ["plain", "compiled"])
def test_the_next_weights_are_the_mean(loops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if loops == "compiled":
        monkeypatch.undo()
    optimizer = sampler()
    weights = trained(optimizer, updates=3)
    assert_close(weights, np_trained(updates=3))
    assert differ(weights, np_trained(updates=2))


@pytest.fixture
def float64() -> Iterator[None]:
    """Lets Keras compute losses in float64; it does so in `floatx` whatever the weights are."""
    floatx = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(floatx)


@pytest.mark.usefixtures("float64")
def test_the_next_weights_are_the_mean_in_float64() -> None:
    weights = trained(sampler(), updates=3, dtype="float64")
    assert_close(weights, np_trained(updates=3, dtype="float64"), tolerance=1e-12)


def test_a_given_learning_rate_is_a_factor_on_the_gradient_of_local_entropy() -> None:
    rate = 0.05
    expected = np_trained(
        updates=2,
        step=lambda x, m, _: [a - rate * (a - b) / TAU for a, b in zip(x, m, strict=True)],
    )
    assert_close(trained(sampler(learning_rate=rate), updates=2), expected)


def test_learning_rate_tau_is_the_tied_one() -> None:
    assert_equal(trained(sampler(learning_rate=TAU), 1), trained(sampler(), 1))


def test_learning_rate_may_be_a_schedule() -> None:
    rates = [0.05, 0.02]
    schedule = schedules.PiecewiseConstantDecay([0], rates)
    expected = np_trained(
        updates=2,
        step=lambda x, m, k: [a - rates[k] * (a - b) / TAU for a, b in zip(x, m, strict=True)],
    )
    assert_close(trained(sampler(learning_rate=schedule), updates=2), expected)


def test_learning_rate_may_be_an_integer() -> None:
    assert sampler(learning_rate=1).learning_rate.numpy() == 1.0


@pytest.mark.feature("callbacks", "`LearningRateSchedule` as tau", "yes")
def test_tau_schedule_takes_effect_at_each_update() -> None:
    taus = [0.125, 0.5, 0.03125]
    schedule = schedules.PiecewiseConstantDecay([0, 1], taus)
    weights = trained(sampler(schedule), updates=3)
    assert_close(weights, np_trained(updates=3, tau=taus.__getitem__))
    assert differ(weights, np_trained(updates=3))


@pytest.mark.feature("update", "tau set between fits", "takes effect")
def test_tau_set_between_fits_takes_effect_without_a_new_trace() -> None:
    traces = []

    def loss(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        traces.append(1)
        return keras.losses.mean_squared_error(y_true, y_pred)

    optimizer = sampler()
    model = compiled(optimizer, loss=loss)
    fit(model, 1)
    count = len(traces)
    optimizer.tau = 0.5
    weights = fit(model, 1)
    assert len(traces) == count
    assert optimizer.learning_rate.numpy() == 0.5
    assert_close(weights, np_trained(updates=2, tau=[TAU, 0.5].__getitem__))


@pytest.mark.feature(
    "update", "tau set to a tensor, variable or array of one number", "takes effect"
)
@pytest.mark.parametrize(
    "half",
    [lambda tau: tau * 0.5, lambda tau: np.array(0.125), lambda tau: keras.Variable(0.125)],
    ids=["tensor", "array", "variable"],
)
def test_tau_is_set_to_what_holds_one_number(half: Any) -> None:
    optimizer = LocalEntropy(0.25, ImportanceSampling(2), seed=0)
    optimizer.tau = half(optimizer.tau)
    assert float(optimizer.tau.numpy()) == 0.125
    assert float(LocalEntropy(half(tf.constant(0.25))).tau.numpy()) == 0.125
    with pytest.raises(
        ValueError, match=r"^`tau` must be a positive, finite number. Received: tau="
    ):
        optimizer.tau = np.array([0.1, 0.2])


@pytest.mark.parametrize("returned", [None, 1.0])
def test_closure_must_return_a_loss(returned: Any) -> None:
    weight = tf.Variable([1.0])
    with pytest.raises(TypeError, match=f"^`closure` must return the .*Received: {returned}$"):
        sampler().step(lambda: returned, [weight])


def test_one_seed_is_bit_identical_and_another_is_not() -> None:
    first, again, other = (trained(sampler(seed=seed), 1) for seed in (3, 3, 4))
    assert_equal(first, again)
    assert differ(first, other)


def test_seed_none_follows_the_global_seed() -> None:
    def seed() -> int:
        return LocalEntropy().seed

    keras.utils.set_random_seed(5)
    first = [seed(), seed()]
    keras.utils.set_random_seed(5)
    assert [seed(), seed()] == first
    assert first[0] != first[1]
    assert all(0 <= s < 2**32 for s in first)


def infinite(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(y_pred, -1) * 0.0 + np.inf


def test_losses_that_are_all_infinite_are_an_error_of_their_own() -> None:
    model = compiled(sampler(), loss=infinite, jit_compile=False)
    before = state_of(model.trainable_variables)
    message = "ImportanceSampling: the loss, or its gradient, is infinite or NaN at every"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        fit(model, 1)
    assert_equal(state_of(model.trainable_variables), before)


def test_losses_that_are_all_infinite_move_nothing_under_jit() -> None:
    optimizer = sampler()
    model = compiled(optimizer, loss=infinite, jit_compile=True)
    before = state_of(model.trainable_variables)
    with pytest.raises(tf.errors.InvalidArgumentError, match="infinite or NaN at every sample"):
        fit(model, 1)
    assert_equal(state_of(model.trainable_variables), before)
    assert optimizer.diagnostics["non_finite"] == SAMPLES


def test_jit_compiled_steps_train() -> None:
    optimizer = sampler()
    model = compiled(optimizer, jit_compile=True)
    before = state_of(model.trainable_variables)
    first, second = fit(model, 1), fit(model, 1)
    assert differ(first, before)
    assert differ(second, first)
    assert 1.0 < optimizer.diagnostics["effective_sample_size"] < SAMPLES


CONFIGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "kernel": {"sampler": ImportanceSampling(7, loss_multiplier=20.0), "seed": 5},
    "tau-schedule": {"tau": schedules.ExponentialDecay(0.5, 100, 0.9)},
    "learning-rate": {"learning_rate": 0.5, "tau": 0.25},
    "learning-rate-schedule": {"learning_rate": schedules.CosineDecay(0.5, 10)},
    "keras-arguments": {"weight_decay": 0.01, "clipnorm": 1.0, "name": "mine"},
}


@pytest.mark.feature("saving", "`keras.optimizers.serialize`, `deserialize`", "yes")
@pytest.mark.parametrize("arguments", CONFIGS.values(), ids=CONFIGS)
def test_config_round_trip(arguments: dict[str, Any]) -> None:
    optimizer = LocalEntropy(**arguments)
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == "lerh_tf>LocalEntropy"
    restored = keras.optimizers.deserialize(json.loads(json.dumps(config)))
    assert type(restored) is LocalEntropy
    assert restored.get_config() == optimizer.get_config()
    assert restored.sampler.get_config() == optimizer.sampler.get_config()
    assert restored.seed == optimizer.seed
    again = LocalEntropy.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


def test_config_keeps_the_learning_rate_tied() -> None:
    optimizer = LocalEntropy(tau=0.25)
    assert optimizer.get_config()["learning_rate"] is None
    restored = LocalEntropy.from_config(optimizer.get_config())
    restored.tau = 0.5
    assert restored.learning_rate.numpy() == 0.5


def test_config_holds_the_tau_that_was_set() -> None:
    optimizer = LocalEntropy(tau=0.25)
    optimizer.tau = 0.5
    assert optimizer.get_config()["tau"] == 0.5


def test_the_paper_s_settings_have_names_and_the_default_has_gradients() -> None:
    default = LocalEntropy()
    assert default.get_config()["tau"] == pytest.approx(0.01)
    assert default.sampler == ImportanceSampling(30, estimator="gradients")
    assert LocalEntropy(sampler="gradients").sampler == default.sampler
    assert LocalEntropy(sampler="sgld").sampler == SGLD()
    assert LocalEntropy(sampler="importance_sampling").sampler == ImportanceSampling(1000)


@pytest.mark.parametrize("tau", [0, -1, float("nan"), float("inf"), 1e-60, "a", True, None])
def test_tau_must_be_positive_and_finite(tau: Any) -> None:
    with pytest.raises(ValueError, match=r"^`tau` must be (a )?positive.*finite") as refusal:
        LocalEntropy(tau=tau)
    assert refusal.match(f"Received: tau={tau!r}$")
    optimizer = LocalEntropy(tau=0.25)
    with pytest.raises(ValueError, match=r"^`tau` must be"):
        optimizer.tau = tau
    assert optimizer.tau.numpy() == 0.25


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, "a", float("nan")])
def test_seed_must_be_a_32_bit_integer(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"^`seed` must be") as refusal:
        LocalEntropy(seed=seed)
    assert refusal.match(f"Received: seed={seed!r}$")


@pytest.mark.parametrize("seed", [0, 2**32 - 1, np.int64(7)])
def test_seed_at_the_boundary(seed: Any) -> None:
    assert LocalEntropy(seed=seed).get_config()["seed"] == seed


OF_OTHER = " `RobbinsMonro` belongs to `HeatRegularization`."


@pytest.mark.parametrize(
    ("choice", "hint"),
    [
        ("langevin", ""),
        ("ImportanceSampling", ""),
        (None, ""),
        (30, ""),
        (object(), ""),
        (ImportanceSampling, " Make an instance: `ImportanceSampling()`."),
        (RobbinsMonro, OF_OTHER),
        (RobbinsMonro(2, 2), OF_OTHER),
        ("robbins_monro", OF_OTHER),
        ("RobbinsMonro", OF_OTHER),
    ],
)
def test_sampler_must_be_one(choice: Any, hint: str) -> None:
    with pytest.raises(ValueError, match=r"^`sampler` must be ") as refusal:
        LocalEntropy(sampler=choice)
    assert str(refusal.value) == (
        '`sampler` must be "gradients", "sgld", "importance_sampling" or an instance of a '
        '`lerh_tf.Kernel` such as `ImportanceSampling(30, estimator="gradients")`.'
        f"{hint} Received: sampler={choice!r}"
    )


@pytest.mark.parametrize("choice", [None, "always", 1, 0])
def test_subspace_must_be_auto_or_false(choice: Any) -> None:
    rule = r'^`subspace` must be "auto", which True is too, or False'
    with pytest.raises(ValueError, match=rule) as refusal:
        LocalEntropy(subspace=choice)
    assert refusal.match(f"Received: subspace={choice!r}$")
    with pytest.raises(ValueError, match='`inner_jit_compile` must be "auto", True or False'):
        LocalEntropy(inner_jit_compile=choice)
    assert LocalEntropy(subspace=True).subspace == LocalEntropy().subspace == "auto"


@pytest.mark.feature(
    "update",
    "sampler, `seed`, `subspace`, `inner_jit_compile`, `on_failure` set",
    'refused by Python: "has no setter"',
)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampler", ImportanceSampling(7)),
        ("seed", 4),
        ("subspace", "auto"),
        ("inner_jit_compile", False),
        ("on_failure", "warn"),
    ],
)
def test_what_compiled_steps_hold_can_t_be_set(name: str, value: Any) -> None:
    optimizer = sampler()
    before = getattr(optimizer, name)
    with pytest.raises(AttributeError, match=f"property '{name}' .* object has no setter"):
        setattr(optimizer, name, value)
    assert getattr(optimizer, name) == before != value


def test_fit_needs_no_more_than_compile() -> None:
    model = network()
    model.compile(LocalEntropy(TAU, "importance_sampling", seed=0), "mse", metrics=["mae"])
    x = np.zeros((7, 3), "float32")
    history = model.fit(x, x[:, :1], batch_size=4, epochs=2, verbose=0, validation_split=0.3)
    assert set(history.history) == {"loss", "mae", "val_loss", "val_mae"}
    assert all(np.all(np.isfinite(values)) for values in history.history.values())
