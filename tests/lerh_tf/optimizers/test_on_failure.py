"""Updates that fail: the weights, the chain and what Keras adds stay, and the caller is told."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import (
    SGLD,
    Diagnostics,
    HeatRegularization,
    ImportanceSampling,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
    TrainStep,
)
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._kernels import Array

pytestmark = pytest.mark.usefixtures("built_optimizers", "plain_loops")

Made = LocalEntropy | HeatRegularization
Make = Callable[..., Made]
BATCH = 4
KERNELS: dict[str, Make] = {
    "sgld": lambda tau=0.01, **a: LocalEntropy(tau, SGLD(4), seed=0, **a),
    "importance": lambda tau=0.01, **a: LocalEntropy(tau, ImportanceSampling(4), seed=0, **a),
    "robbins-monro": lambda tau=0.01, **a: HeatRegularization(tau, RobbinsMonro(2, 2), seed=0, **a),
}
FOUND_NOTHING = r"The weights( and the chain)? were left as they were"


class BadOnce(keras.optimizers.schedules.LearningRateSchedule):
    """tau = 0.01, but at the third weight update."""

    def __init__(self, bad: float) -> None:
        self._bad = bad

    def __call__(self, step: Any) -> tf.Tensor:
        return tf.where(tf.equal(step, 2), self._bad, 0.01)


@pytest.fixture(params=list(KERNELS))
def make(request: pytest.FixtureRequest) -> Make:
    return KERNELS[request.param]


@pytest.fixture(params=[False, True], ids=["plain", "jit"])
def jit(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def data() -> tuple[Array, Array]:
    """Three minibatches, the second with labels that are NaN."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3 * BATCH, 3)), rng.normal(size=(3 * BATCH, 1))
    y[BATCH : 2 * BATCH] = np.nan
    return x.astype("float32"), y.astype("float32")


def network(optimizer: Any, base: type[keras.Model] = keras.Model, **arguments: Any) -> keras.Model:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    outputs = keras.layers.Dense(1)(keras.layers.Dense(2, "tanh")(inputs))
    model = base(inputs, outputs)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse", **arguments)
    return model


class Trace(keras.callbacks.Callback):
    """The weights, and what the optimizer keeps, after each batch."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.weights: list[list[Array]] = []
        self.kept: list[list[Array]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.weights.append(state_of(self.model.trainable_variables))
        self.kept.append(kept(self.model.optimizer))


def kept(optimizer: Any) -> list[Array]:
    """All of an optimizer's variables but those that count."""
    return [v.numpy() for v in optimizer.variables if v.name != "iteration"]


def equal(actual: list[Array], expected: list[Array]) -> bool:
    return all(np.array_equal(a, e) for a, e in zip(actual, expected, strict=True))


def fit(model: keras.Model, *callbacks: keras.callbacks.Callback) -> None:
    x, y = data()
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=list(callbacks))


@pytest.mark.feature("numbers", "losses that are infinite or NaN")
def test_fit_warns_once_and_goes_on(make: Make, jit: bool) -> None:
    optimizer = make(on_failure="warn", weight_decay=0.1, use_ema=True)
    model, trace = network(optimizer, jit_compile=jit), Trace()
    advice = r"\. Look for NaN in the inputs, then try .*\(In 1 weight update\.\)"
    with pytest.warns(RuntimeWarning, match=f"{FOUND_NOTHING}{advice}"):
        fit(model, trace)
    first, failed, last = trace.weights
    assert equal(failed, first)
    assert equal(trace.kept[1], trace.kept[0])
    assert not equal(last, first)
    assert all(np.isfinite(w).all() for w in last)
    # The next training's is told as well.
    assert int(optimizer.iterations.numpy()) == 3
    assert int(optimizer.inner_optimizer.iterations.numpy()) == 2
    with pytest.warns(RuntimeWarning, match=FOUND_NOTHING):
        fit(model)


@pytest.mark.feature(
    "numbers",
    "losses that are infinite or NaN",
    "nothing moves; `on_failure` raises or warns: at the end of `fit`, after each "
    "batch with the callback `Diagnostics`, at once by `step`",
)
def test_fit_raises(jit: bool) -> None:
    optimizer = KERNELS["sgld"](weight_decay=0.1)
    model, trace = network(optimizer, jit_compile=jit), Trace()
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"^SGLD: .*{FOUND_NOTHING}"):
        fit(model, trace)
    assert all(np.isfinite(w).all() for w in state_of(model.trainable_variables))
    assert equal(trace.weights[1], trace.weights[0])
    optimizer.report_failures()


def test_momentum_does_not_move_the_weights() -> None:
    weight, optimizer = tf.Variable([1.0, 2.0]), KERNELS["importance"](momentum=0.9)

    def loss(factor: tf.Tensor) -> tf.Tensor:
        return factor * tf.reduce_sum(weight**2)

    optimizer.step(loss, [weight], 1.0)
    before = weight.numpy(), kept(optimizer)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^Importance"):
        optimizer.step(loss, [weight], float("nan"))
    np.testing.assert_array_equal(weight.numpy(), before[0])
    assert equal(kept(optimizer), before[1])


@pytest.mark.parametrize("arguments", [{"run_eagerly": True}, {"jit_compile": True}])
def test_train_step_tells(arguments: dict[str, Any]) -> None:
    class Model(TrainStep, keras.Model):
        pass

    optimizer = KERNELS["importance"]()
    model, trace = network(optimizer, Model, **arguments), Trace()
    with pytest.raises(tf.errors.InvalidArgumentError, match=FOUND_NOTHING):
        fit(model, trace)
    assert len(trace.weights) == (1 if "run_eagerly" in arguments else 3)
    assert all(np.isfinite(w).all() for w in state_of(model.trainable_variables))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_bad_tau_moves_nothing(make: Make, bad: float, jit: bool) -> None:
    weight = tf.Variable([1.0, 2.0])
    optimizer = make(BadOnce(bad), on_failure="warn")
    optimizer.build([weight])

    @tf.function(jit_compile=jit)
    def update() -> None:
        optimizer.step(lambda: tf.reduce_sum(weight**2), [weight])

    trace = []
    for _ in range(4):
        update()
        trace.append([weight.numpy(), *kept(optimizer)])
    assert not equal(trace[1][:1], trace[0][:1])
    assert equal(trace[2], trace[1])
    assert not equal(trace[3][:1], trace[2][:1])
    assert np.isfinite(trace[3][0]).all()
    with pytest.warns(
        RuntimeWarning, match=r"`tau` must be positive and finite.*In 1 weight update\.\)"
    ):
        optimizer.report_failures()


def test_step_warns_at_once_with_the_place_of_the_call(make: Make) -> None:
    weight, optimizer = tf.Variable([1.0, 2.0]), make(on_failure="warn")

    def loss(factor: tf.Tensor) -> tf.Tensor:
        return factor * tf.reduce_sum(weight**2)

    optimizer.step(loss, [weight], 1.0)
    before = weight.numpy()
    with warnings.catch_warnings(record=True) as caught:
        # Python's own filter: once for a text and a place.
        warnings.simplefilter("default")
        for factor in ("nan", "inf", "nan"):
            optimizer.step(loss, [weight], float(factor))
    (warned,) = caught
    assert re.search(FOUND_NOTHING, str(warned.message))
    assert warned.filename == __file__
    np.testing.assert_array_equal(weight.numpy(), before)
    optimizer.step(loss, [weight], 1.0)
    assert not np.array_equal(weight.numpy(), before)


def test_each_training_that_fails_is_warned_of() -> None:
    optimizer = KERNELS["importance"](on_failure="warn")
    model = network(optimizer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for callbacks in ([], [Diagnostics()], []):
            fit(model, *callbacks)
    told = [str(each.message) for each in caught]
    assert [text[: text.index(" of `")] for text in told] == [
        f"Up to weight update {3 * count}" for count in (1, 2, 3)
    ]
    assert all(f"`{optimizer.name}`: ImportanceSampling: " in text for text in told)


@pytest.mark.parametrize("inner", [{"momentum": 0.9}, {"optimizer": "adamw"}])
def test_accumulated_update_of_bad_parts_alone_moves_nothing(inner: dict[str, Any]) -> None:
    if "optimizer" in inner:
        inner = {"optimizer": keras.optimizers.AdamW(0.1, gradient_accumulation_steps=2)}
    else:
        inner = {**inner, "gradient_accumulation_steps": 2}
    weight, optimizer = tf.Variable([1.0, 2.0]), KERNELS["sgld"](on_failure="warn", **inner)
    optimizer.build([weight])

    @tf.function
    def update(factor: tf.Tensor) -> None:
        optimizer.step(lambda: factor * tf.reduce_sum(weight**2), [weight])

    trace = []
    for factors in ((1.0, 1.0), (np.nan, np.nan), (np.nan, 1.0)):
        for factor in factors:
            update(tf.constant(factor, tf.float32))
        trace.append([weight.numpy(), *kept(optimizer)])
    assert equal(trace[1], trace[0])
    assert not equal(trace[2][:1], trace[1][:1])
    assert int(optimizer.inner_optimizer._iterations) == 6


def test_a_loop_compiled_by_the_caller_asks() -> None:
    weight, optimizer = tf.Variable([1.0, 2.0]), KERNELS["importance"](weight_decay=0.5)
    optimizer.build([weight])

    @tf.function(jit_compile=True)
    def update() -> None:
        optimizer.step(lambda: tf.reduce_sum(weight / 0.0), [weight])

    for _ in range(2):
        update()
    np.testing.assert_array_equal(weight.numpy(), [1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(In 2 weight updates\.\)"):
        optimizer.report_failures()
    optimizer.report_failures()


def test_samples_without_a_finite_loss_are_left_out_and_nobody_is_told() -> None:
    weight, optimizer = tf.Variable([0.1, -0.1]), LocalEntropy(1.0, ImportanceSampling(64), seed=0)
    optimizer.step(lambda: tf.reduce_sum(tf.math.log(weight)), [weight])
    assert 0 < optimizer.diagnostics["non_finite"] < 64
    assert np.isfinite(weight.numpy()).all()


def test_gradient_out_of_the_dtype_moves_nothing() -> None:
    weight = tf.Variable([1.0, 2.0], dtype="float16")
    optimizer = LocalEntropy(1e-10, ImportanceSampling(2), seed=0, on_failure="warn")
    before = kept_after_build(optimizer, weight)
    with pytest.warns(RuntimeWarning, match=r"^The mean m or the gradient \(x - m\) / tau is"):
        optimizer.step(lambda: tf.reduce_sum(weight**2), [weight])
    np.testing.assert_array_equal(weight.numpy(), [1.0, 2.0])
    assert equal(kept(optimizer), before)


def kept_after_build(optimizer: Any, weight: tf.Variable) -> list[Array]:
    optimizer.build([weight])
    return kept(optimizer)


def test_failed_part_of_an_accumulated_update_counts_as_one_that_does_not_move() -> None:
    def accumulated(*factors: float) -> Array:
        weight = tf.Variable([1.0, 2.0])
        optimizer = LocalEntropy(
            0.1,
            ImportanceSampling(8),
            seed=0,
            on_failure="warn",
            gradient_accumulation_steps=2,
        )
        optimizer.build([weight])

        @tf.function
        def update(factor: tf.Tensor) -> None:
            optimizer.step(lambda: factor * tf.reduce_sum(weight**2), [weight])

        for factor in factors:
            update(tf.constant(factor))
        return weight.numpy() - np.array([1.0, 2.0], "float32")

    alone = LocalEntropy(0.1, ImportanceSampling(8), seed=0)
    weight = tf.Variable([1.0, 2.0])
    alone.step(lambda: tf.reduce_sum(weight**2), [weight])
    move = weight.numpy() - np.array([1.0, 2.0], "float32")
    np.testing.assert_allclose(accumulated(1.0, float("nan")), move / 2, rtol=1e-5)


def test_policy_is_checked_and_saved() -> None:
    with pytest.raises(ValueError, match='`on_failure` must be one of "raise", "warn"'):
        LocalEntropy(on_failure="ignore")
    config = keras.optimizers.serialize(LocalEntropy(on_failure="warn"))
    assert keras.optimizers.deserialize(config).get_config()["on_failure"] == "warn"


@pytest.mark.parametrize("bad", [float("nan"), -0.5, 0.0])
def test_last_part_of_an_accumulated_update_with_a_bad_tau_loses_no_other(bad: float) -> None:
    class BadSecond(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> tf.Tensor:
            return tf.where(tf.equal(step, 1), bad, 0.0625)

    weight = tf.Variable([1.0, 2.0])
    optimizer = HeatRegularization(
        BadSecond(),
        RobbinsMonro(1, 1, step_sizes=RobbinsMonroSteps(1.0)),
        seed=0,
        on_failure="warn",
        gradient_accumulation_steps=2,
    )
    step = tf.function(lambda: optimizer.step(lambda: tf.reduce_sum(weight), [weight]))
    for _ in range(2):
        optimizer.build([weight])
        step()
    # The gradient of the first part is 1, that of the second counts as 0.
    np.testing.assert_allclose(weight.numpy(), np.array([1.0, 2.0]) - 0.0625 / 2, rtol=1e-6)
    with pytest.warns(
        RuntimeWarning, match=r"`tau` must be positive and finite.*In 1 weight update\.\)"
    ):
        optimizer.report_failures()


def test_finite_gradient_is_the_inner_optimizer_s_own_business() -> None:
    weight = tf.Variable([1.0, 2.0])
    optimizer = LocalEntropy(0.1, ImportanceSampling(2), seed=0, learning_rate=1e38)
    optimizer.step(lambda: tf.reduce_sum(weight**2), [weight])
    assert np.abs(weight.numpy()).max() > 1e30


STILL = {"sign": lambda y, p: tf.reduce_mean(tf.sign(p - y)), "flat": lambda y, p: 0.0 * p}


@pytest.mark.feature(
    "numbers",
    "a loss whose gradient is zero at all samples",
    "nothing moves; a warning at the end of the first `fit`",
)
@pytest.mark.parametrize(
    ("made", "loss", "jit"),
    [
        (LocalEntropy, "sign", False),
        (LocalEntropy, "flat", True),
        (HeatRegularization, "sign", True),
    ],
)
def test_fit_that_moves_nothing_is_warned_of_once(made: Make, loss: str, jit: bool) -> None:
    model = network(made(seed=0))
    model.compile(model.optimizer, STILL[loss], jit_compile=jit)
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    with pytest.warns(RuntimeWarning, match=r"gradient is zero at all samples.*control_variate"):
        model.fit(x, y, verbose=0)
    model.fit(x, y, verbose=0)


def test_fit_that_moves_nothing_is_not_warned_of_behind_one_that_did() -> None:
    # A hinge loss is zero, and so is its gradient, where all is right by the margin.
    model = network(LocalEntropy(1e-4, learning_rate=1.0, seed=0))
    model.compile(model.optimizer, "hinge")
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    model.fit(x, y, epochs=20, verbose=0)
    moved = model.get_weights()
    model.fit(x, y, verbose=0)
    assert model.optimizer.diagnostics["step_norm"] == 0.0
    assert equal(model.get_weights(), moved)


def test_failures_alone_are_no_fit_that_moves_nothing() -> None:
    model = network(KERNELS["sgld"](on_failure="warn"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        model.fit(np.full((4, 3), np.nan), np.ones((4, 1)), verbose=0)
    (warned,) = (each for each in caught if each.category is RuntimeWarning)
    assert re.search(FOUND_NOTHING, str(warned.message))
