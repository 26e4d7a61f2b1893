"""`TrainStep` trains what can't be replayed, with the gradient that Keras's own tape gives.

On noise that is zero, one step of Robbins-Monro of size 1 moves to x - tau grad f(x): stochastic
gradient descent with learning rate tau.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    ReplayError,
    RobbinsMonro,
    RobbinsMonroSteps,
    TrainStep,
    local_entropy,
)

Array = npt.NDArray[Any]

TAU = 0.1
RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 3, 2)).astype("float32")
Y = RNG.standard_normal((4, 1)).astype("float32")


class Explicit(TrainStep, keras.Model):
    """A functional model with `TrainStep`."""


class ExplicitSequence(TrainStep, keras.Sequential):
    """A sequential model with `TrainStep`."""


@tf.custom_gradient
def tripled(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """tanh with three times its gradient."""
    y = tf.tanh(x)
    return y, lambda upstream: 3.0 * upstream * (1.0 - y**2)


BODIES: dict[str, Callable[[Any], Any]] = {
    "lstm": lambda x: layers.LSTM(2)(x),
    "gru": lambda x: layers.GRU(2)(x),
    "stacked": lambda x: layers.GRU(2)(layers.SimpleRNN(2, return_sequences=True)(x)),
    "mapped": lambda x: layers.Lambda(
        lambda h: tf.map_fn(tf.nn.softmax, h, fn_output_signature=tf.TensorSpec([2]))
    )(layers.Dense(2)(layers.Flatten()(x))),
    "silu": lambda x: layers.Dense(2, activation=tf.nn.silu)(layers.Flatten()(x)),
    "custom-gradient": lambda x: layers.Dense(2, activation=tripled)(layers.Flatten()(x)),
}


def build(body: Callable[[Any], Any], cls: type = Explicit) -> keras.Model:
    keras.utils.set_random_seed(1)
    x = keras.Input((3, 2))
    return cls(x, layers.Dense(1)(body(x)))


def train(model: keras.Model, optimizer: Any, epochs: int = 1, **arguments: Any) -> list[Array]:
    model.compile(optimizer, "mse", **arguments)
    model.fit(X, Y, batch_size=2, epochs=epochs, shuffle=False, verbose=0)
    return [v.numpy() for v in model.trainable_variables]


def silence(seed: int, update: tf.Tensor, like: Sequence[tf.Tensor]) -> Callable[..., Any]:
    del seed, update
    return lambda block, samples: [
        tf.zeros(tf.concat([[samples], tf.shape(x)], 0), x.dtype) for x in like
    ]


@pytest.mark.feature("training", "`run_eagerly=True`, `TrainStep`", "yes", cases=["gru-True"])
@pytest.mark.feature("models", "LSTM, GRU, `TrainStep`", "yes", cases=["lstm-False", "gru-True"])
@pytest.mark.feature(
    "models",
    "LSTM, GRU behind layers with weights, `TrainStep`",
    "yes; samples are evaluated one after the other",
    cases=["stacked-False"],
)
@pytest.mark.parametrize(
    ("body", "run_eagerly"),
    [
        ("stacked", False),
        ("mapped", False),
        ("lstm", False),
        ("silu", False),
        ("custom-gradient", False),
        ("gru", True),
        ("silu", True),
    ],
)
def test_gradient_is_the_tape_s(
    body: str, run_eagerly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lerh_tf.optimizers._update.PhiloxNoise", silence)
    expected = train(build(BODIES[body], keras.Model), keras.optimizers.SGD(TAU))
    solver = RobbinsMonro(1, 1, step_sizes=RobbinsMonroSteps(1.0))
    optimizer = HeatRegularization(TAU, solver, seed=0)
    actual = train(build(BODIES[body]), optimizer, run_eagerly=run_eagerly)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


class InFunction(layers.Layer):
    """A dense layer called in a `tf.function` of its own, there or in a branch."""

    def __init__(self, in_branch: bool = False) -> None:
        super().__init__()
        self.dense, self.in_branch = layers.Dense(2), in_branch

    def build(self, shape: Any) -> None:
        self.dense.build(shape)

    @tf.function
    def inner(self, x: tf.Tensor) -> tf.Tensor:
        return self.dense(x)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        if self.in_branch:
            return tf.cond(tf.reduce_sum(x) < np.inf, lambda: self.inner(x), lambda: x[:, :2])
        return self.inner(x)

    def compute_output_shape(self, shape: Any) -> Any:
        return (shape[0], 2)


@pytest.mark.feature(
    "models",
    "a `tf.function` that reads weights, `TrainStep` and measures",
    'refused: "Take the decorator away"',
)
@pytest.mark.parametrize("in_branch", [False, True])
def test_weights_read_in_a_function_of_the_models_own_are_refused(in_branch: bool) -> None:
    refused = pytest.raises(ReplayError, match=r"`tf\.function` that reads the weight '.*dense")
    model = build(lambda x: InFunction(in_branch)(layers.Flatten()(x)))
    with refused:
        train(model, LocalEntropy(TAU, seed=0))
    stock = build(lambda x: InFunction(in_branch)(layers.Flatten()(x)), keras.Model)
    stock.compile("sgd", "mse")
    with refused:
        local_entropy(stock, X, Y, tau=TAU, samples=2, verbose=0)
    # The measure left nothing behind in the function's traces.
    assert np.isfinite(stock.evaluate(X, Y, verbose=0))


def test_an_eager_measure_sees_weights_read_in_a_function() -> None:
    model = build(lambda x: InFunction()(layers.Flatten()(x)), keras.Model)
    plain = build(lambda x: layers.Dense(2)(layers.Flatten()(x)), keras.Model)
    plain.set_weights(model.get_weights())
    found = []
    for each in (model, plain):
        each.compile("sgd", "mse", run_eagerly=True)
        each.evaluate(X, Y, verbose=0)
        found.append(local_entropy(each, X, Y, tau=TAU, samples=3, verbose=0))
    assert found[0].value == pytest.approx(found[1].value, rel=1e-6)
    assert found[0].standard_error > 0.0
    assert not tf.config.functions_run_eagerly()


def test_frozen_weights_may_be_read_in_a_function() -> None:
    frozen = InFunction()
    frozen.trainable = False
    model = build(lambda x: layers.GRU(2)(layers.Reshape((2, 1))(frozen(layers.Flatten()(x)))))
    before = [v.numpy() for v in model.trainable_variables]
    for old, new in zip(before, train(model, LocalEntropy(TAU, seed=0)), strict=True):
        assert (old != new).any()


def test_functions_may_run_eagerly() -> None:
    tf.config.run_functions_eagerly(True)
    try:
        model = build(BODIES["silu"])
        before = model.get_weights()
        model.compile(LocalEntropy(TAU, seed=0), "mse")
        model.train_on_batch(X, Y)
    finally:
        tf.config.run_functions_eagerly(False)
    for old, new in zip(before, model.get_weights(), strict=True):
        assert (old != new).any()
        assert np.isfinite(new).all()


@pytest.mark.feature("models", "LSTM, GRU, control flow, stock model")
@pytest.mark.parametrize("body", BODIES)
def test_stock_train_step_refuses_and_names_the_mixin(body: str) -> None:
    optimizer = LocalEntropy(TAU, SGLD(2), seed=0)
    with pytest.raises(ReplayError, match=r"`lerh_tf\.TrainStep`"):
        train(build(BODIES[body], keras.Model), optimizer)


def test_recurrent_network_learns() -> None:
    model = build(BODIES["gru"])
    train(
        model,
        LocalEntropy(TAU, SGLD(20, step_sizes=LangevinSteps(10.0), noise="linear"), seed=0),
        epochs=5,
    )
    losses = model.history.history["loss"]
    assert losses[-1] < 0.9 * losses[0]


def test_recurrent_network_is_sampled_without_a_gradient() -> None:
    model = build(BODIES["lstm"])
    before = [v.numpy() for v in model.trainable_variables]
    after = train(model, LocalEntropy(TAU, ImportanceSampling(10), seed=0))
    assert all(np.isfinite(now).all() for now in after)
    assert not any(np.array_equal(now, then) for now, then in zip(after, before, strict=True))


@pytest.mark.feature(
    "models",
    "LSTM, GRU, `TrainStep`, `jit_compile=True`",
    "yes; samples are evaluated one after the other",
)
def test_recurrent_network_compiled_by_xla_trains_the_same() -> None:
    plain, by_xla = (
        train(
            build(BODIES["lstm"]),
            LocalEntropy(TAU, ImportanceSampling(5), seed=0),
            jit_compile=jit,
        )
        for jit in (False, True)
    )
    for a, e in zip(by_xla, plain, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-6)


def test_sequential_models_and_sample_weights() -> None:
    def sequence(cls: type) -> keras.Model:
        keras.utils.set_random_seed(1)
        return cls([keras.Input((3, 2)), layers.Flatten(), layers.Dense(1)])

    trained = []
    for cls in (keras.Sequential, ExplicitSequence):
        model = sequence(cls)
        model.compile(LocalEntropy(TAU, SGLD(4), seed=0), "mse", weighted_metrics=["mae"])
        weights = np.array([0.0, 1.0, 2.0, 3.0], "float32")
        model.fit(X, Y, batch_size=2, sample_weight=weights, shuffle=False, verbose=0)
        trained.append([*map(np.asarray, model.get_weights()), *model.history.history.values()])
    for stock, explicit in zip(*trained, strict=True):
        np.testing.assert_array_equal(stock, explicit)


def test_a_loss_that_is_not_finite_raises() -> None:
    model = build(BODIES["gru"])
    model.compile(LocalEntropy(TAU, SGLD(3), seed=0), "mse")
    before = [v.numpy() for v in model.trainable_variables]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"SGLD: the chain reached infinite"):
        model.fit(X, np.full_like(Y, np.nan), batch_size=2, verbose=0)
    for now, then in zip(model.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(now.numpy(), then)


@pytest.mark.parametrize("optimizer", [keras.optimizers.SGD(0.1), keras.optimizers.Adam()])
def test_other_optimizers_are_refused(optimizer: keras.optimizers.Optimizer) -> None:
    with pytest.raises(TypeError, match=r"^`TrainStep` needs `LocalEntropy`.*Received: optim"):
        train(build(BODIES["silu"]), optimizer)


def test_a_wrapping_loss_scale_optimizer_is_refused_with_advice() -> None:
    model = build(BODIES["silu"])
    model.compile(keras.optimizers.LossScaleOptimizer(LocalEntropy(TAU, SGLD(2), seed=0)), "mse")
    with pytest.raises(TypeError, match=r"^`TrainStep` needs .* itself .*`auto_scale_loss=False`"):
        model.train_on_batch(X, Y)


@pytest.mark.feature(
    "models",
    "`TrainStep` behind `keras.Model` among the bases",
    'refused: "must stand before `keras.Model`"',
)
def test_order_of_the_bases_is_checked() -> None:
    text = r"^`TrainStep` must stand before `keras.Model` among the bases of `Wrong`. Received: "
    with pytest.raises(TypeError, match=rf"{text}class Wrong\(Model, TrainStep\)$"):

        class Wrong(keras.Model, TrainStep):
            """The mixin does nothing here."""


def test_evaluation_and_prediction_are_keras_s_own() -> None:
    stock, explicit = build(BODIES["silu"], keras.Model), build(BODIES["silu"])
    for model in (stock, explicit):
        model.compile(LocalEntropy(seed=0), "mse")
    np.testing.assert_array_equal(explicit.predict(X, verbose=0), stock.predict(X, verbose=0))
    assert explicit.evaluate(X, Y, verbose=0) == stock.evaluate(X, Y, verbose=0)


class Noisy(layers.Layer):
    """Adds random numbers."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        super().__init__()
        self._draw = draw

    def call(self, x: Any) -> Any:
        return x + self._draw(tf.shape(x))


class Counting(layers.Layer):
    """Moves a variable that is not Keras's."""

    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(0, trainable=False)

    def call(self, x: Any) -> Any:
        self.count.assign_add(1)
        return x


GENERATOR = tf.random.Generator.from_seed(0)
DRAWS: dict[str, Callable[[Any], Any]] = {
    "tensorflow": tf.random.normal,
    "generator": GENERATOR.normal,
    "keras-without-a-seed": keras.random.normal,
}


def mean(y: tf.Tensor, prediction: tf.Tensor) -> tf.Tensor:
    """A loss that is linear in the weight of a linear model."""
    return tf.reduce_mean(prediction)


def slope_and_move(noise: layers.Layer, run_eagerly: bool) -> tuple[float, float]:
    """The logged loss of w * noise at w = 1, which is its slope in w, and how far w moves."""
    x = keras.Input((1,))
    model = Explicit(x, layers.Dense(1, use_bias=False, kernel_initializer="ones")(noise(x)))
    solver = RobbinsMonro(1, 2, step_sizes=RobbinsMonroSteps(1.0))
    model.compile(HeatRegularization(TAU, solver, seed=0), mean, run_eagerly=run_eagerly)
    logged = model.train_on_batch(np.zeros((3, 1), "float32"), np.zeros((3, 1), "float32"))
    return float(logged), float(model.trainable_variables[0].numpy()[0, 0]) - 1.0


@pytest.mark.feature(
    "training",
    "random numbers of `tf.random` or of `keras.random` without a seed, `TrainStep`",
    "one draw per weight update, that of the logged loss; refused where the model must be run "
    'anew (LSTM, custom gradients, `run_eagerly=True`): "an attribute of the layer"',
)
@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize("draw", DRAWS)
def test_samples_see_the_draw_of_the_logged_loss(draw: str) -> None:
    slope, move = slope_and_move(Noisy(DRAWS[draw]), run_eagerly=False)
    assert abs(slope) > 0.01
    np.testing.assert_allclose(move, -TAU * slope, rtol=1e-4)


@pytest.mark.feature(
    "training",
    "random numbers of a layer's `SeedGenerator`, as `Dropout` and `GaussianNoise` draw, "
    "`TrainStep`",
    "one draw per weight update, that of the logged loss",
)
@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_samples_see_the_draw_of_a_seed_generator(run_eagerly: bool) -> None:
    slope, move = slope_and_move(layers.GaussianNoise(1.0, seed=3), run_eagerly)
    assert abs(slope) > 0.01
    np.testing.assert_allclose(move, -TAU * slope, rtol=1e-4)


REFUSALS = {
    "tensorflow": r"\(RandomStandardNormal\) draws other random numbers in each evaluation",
    "generator": r"\(RngReadAndSkip\) draws other random numbers in each evaluation",
    "keras-without-a-seed": r"moves a `keras.Variable` that is not among the model's",
}


@pytest.mark.feature(
    "training", "random numbers of `tf.random` or of `keras.random` without a seed, `TrainStep`"
)
@pytest.mark.parametrize("draw", REFUSALS)
@pytest.mark.parametrize("body", ["silu", "eager"])
def test_draws_that_the_samples_would_not_share_are_refused(draw: str, body: str) -> None:
    model = build(lambda x: BODIES["silu"](Noisy(DRAWS[draw])(x)))
    with pytest.raises(ReplayError, match=rf"{REFUSALS[draw]}.*`keras\.random\.SeedGenerator`"):
        train(model, LocalEntropy(TAU, SGLD(2), seed=0), run_eagerly=body == "eager")


@pytest.mark.feature(
    "training",
    "random numbers of a layer's `SeedGenerator`, as `Dropout` and `GaussianNoise` draw, "
    "`TrainStep`",
)
@pytest.mark.usefixtures("plain_loops")
def test_a_recurrent_network_s_noise_is_drawn_once_per_update() -> None:
    model = build(lambda x: layers.LSTM(2)(layers.GaussianNoise(1.0, seed=1)(x)))
    optimizer = LocalEntropy(1e-12, ImportanceSampling(100), seed=0)
    train(model, optimizer)
    # Under another draw each, samples at the anchor would have other weights: 93.
    np.testing.assert_allclose(optimizer.diagnostics["effective_sample_size"], 100.0, rtol=1e-5)


@pytest.mark.feature(
    "training",
    "`tf.Variable.assign` in a layer, `TrainStep`",
    "once per weight update; refused where the model must be run anew",
)
@pytest.mark.usefixtures("plain_loops")
def test_variables_that_are_not_keras_s_move_once_per_update_or_are_refused() -> None:
    counting = Counting()
    train(build(lambda x: layers.Flatten()(counting(x))), LocalEntropy(TAU, SGLD(2), seed=0))
    assert int(counting.count.numpy()) == 2
    with pytest.raises(ReplayError, match=r"\(AssignAddVariableOp\) would assign to a variable"):
        train(build(lambda x: BODIES["silu"](Counting()(x))), LocalEntropy(TAU, SGLD(2), seed=0))


@pytest.mark.feature("training", "an optional first input that is None, `TrainStep`", "yes")
@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_first_input_that_is_none_is_skipped(run_eagerly: bool) -> None:
    def network(cls: type) -> keras.Model:
        keras.utils.set_random_seed(1)
        first, second = keras.Input((2,), optional=True), keras.Input((3,))
        return cls([first, second], layers.Dense(1)(SecondOnly()([first, second])))

    logs = []
    for cls, optimizer in (
        (keras.Model, keras.optimizers.SGD(0.0)),
        (Explicit, LocalEntropy(TAU, SGLD(2), seed=0)),
    ):
        model = network(cls)
        model.compile(optimizer, "mse", run_eagerly=run_eagerly)
        logs.append(model.train_on_batch([None, X[:, :, 0]], Y))
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-6)


class SecondOnly(layers.Layer):
    """Returns the second of two inputs."""

    def call(self, inputs: Any) -> Any:
        return inputs[1]
