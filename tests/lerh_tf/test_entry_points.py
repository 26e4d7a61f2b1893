"""Stock `fit`, `optimizer.step` and `TrainStep` make the same weight updates."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

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
    RobbinsMonro,
    TrainStep,
)

Array = npt.NDArray[Any]
Optimizer = LocalEntropy | HeatRegularization
Body = Callable[[Any], Any]

RNG = np.random.default_rng(0)
# Two batches and, at the end of the epoch, a ragged third one.
BATCH = 3
X = RNG.standard_normal((8, 4)).astype("float32")
Y = RNG.standard_normal((8, 2)).astype("float32")
WHOLE = X[: 2 * BATCH], Y[: 2 * BATCH]

OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "sgld": lambda: LocalEntropy(0.1, SGLD(4, step_sizes=LangevinSteps(10.0)), seed=0),
    "importance-sampling": lambda: LocalEntropy(0.1, ImportanceSampling(20), seed=0),
    "robbins-monro": lambda: HeatRegularization(0.1, RobbinsMonro(3, 2), seed=0),
}


class Explicit(TrainStep, keras.Model):
    """A functional model with `TrainStep`."""


def everything(x: Any, activity_regularizer: str | None = "l1") -> Any:
    """Every kind of state and of further loss; the first kernel can be reduced, the second not."""
    x = layers.Dropout(0.5, seed=3)(layers.Dense(5, activation="tanh")(x))
    x = layers.Dense(4, kernel_regularizer="l2", activity_regularizer=activity_regularizer)(x)
    return layers.BatchNormalization()(x)


def masked_and_normalized(x: Any) -> Any:
    """Less of it, for the sake of XLA's compiler."""
    return layers.BatchNormalization()(layers.Dropout(0.5, seed=3)(x))


def build(cls: type = keras.Model, body: Body = everything) -> keras.Model:
    keras.utils.set_random_seed(1)
    x = keras.Input((4,))
    return cls(x, layers.Dense(2)(body(x)))


def run_fit(model: keras.Model, optimizer: Optimizer, data: Any, **compile_arguments: Any) -> Any:
    model.compile(optimizer, "mse", metrics=["mae"], **compile_arguments)
    model.fit(*data, batch_size=BATCH, shuffle=False, verbose=0)
    return model


def fit(optimizer: Optimizer, data: Any, jit: bool = False, body: Body = everything) -> keras.Model:
    return run_fit(build(body=body), optimizer, data, jit_compile=jit)


def train_step(
    optimizer: Optimizer, data: Any, jit: bool = False, body: Body = everything
) -> keras.Model:
    return run_fit(build(Explicit, body), optimizer, data, jit_compile=jit)


def eager_train_step(optimizer: Optimizer, data: Any) -> keras.Model:
    return run_fit(build(Explicit), optimizer, data, run_eagerly=True)


def batches(data: Any) -> Any:
    starts = range(0, len(data[0]), BATCH)
    return [[tf.constant(part[i : i + BATCH]) for part in data] for i in starts]


def loss_of(model: keras.Model) -> Callable[[Any, Any], Any]:
    model.compile(loss="mse")
    return lambda x, y: model.compute_loss(x=x, y=y, y_pred=model(x, training=True))


def step(optimizer: Optimizer, data: Any, body: Body = everything) -> keras.Model:
    model = build(body=body)
    loss = loss_of(model)
    for x, y in batches(data):
        optimizer.step(loss, model.trainable_variables, x, y)
    return model


def step_in_function(
    optimizer: Optimizer, data: Any, jit: bool = False, body: Body = everything
) -> keras.Model:
    model = build(body=body)
    loss = loss_of(model)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=jit)
    def update(x: tf.Tensor, y: tf.Tensor) -> None:
        optimizer.step(loss, model.trainable_variables, x, y)

    for x, y in batches(data):
        update(x, y)
    return model


class State(NamedTuple):
    """What a training leaves behind.

    Attributes:
        lasting: weights, statistics, seeds and all that the optimizer goes on from.
        diagnostics: what the optimizer reports.
    """

    lasting: list[Array]
    diagnostics: list[float]


def run(entry: Any, kernel: str, data: Any = WHOLE, **arguments: Any) -> State:
    optimizer = OPTIMIZERS[kernel]()
    model = entry(optimizer, data, **arguments)
    reported = set(optimizer.diagnostics)
    variables = [*model.trainable_variables, *model.non_trainable_variables, *optimizer.variables]
    lasting = [v.numpy() for v in variables if v.path.split("/")[-1] not in reported]
    return State(lasting, list(optimizer.diagnostics.values()))


def assert_equal(actual: State, expected: State, rtol: float = 0.0) -> None:
    for a, e in zip(actual.lasting, expected.lasting, strict=True):
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol)
    # Sums over all weights, in an order of the compiler's choice.
    np.testing.assert_allclose(actual.diagnostics, expected.diagnostics, rtol=1e-5)


@pytest.fixture
def no_inner_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the kernels' inner loops to TensorFlow, which is ready sooner."""
    monkeypatch.setattr("lerh_tf.loss.compilation.is_compilable", lambda objective: False)


@pytest.mark.feature("training", "`run_eagerly=True`, `TrainStep`")
@pytest.mark.feature("training", "hand-written loop, `optimizer.step`", "yes")
@pytest.mark.usefixtures("built_optimizers")
@pytest.mark.parametrize("kernel", OPTIMIZERS)
def test_entry_points_agree_to_the_bit(kernel: str, request: pytest.FixtureRequest) -> None:
    if kernel != "sgld":
        request.getfixturevalue("no_inner_compilation")
    expected = run(fit, kernel)
    assert_equal(run(step, kernel), expected)
    assert_equal(run(train_step, kernel), expected)
    # The pass that moves statistics and seeds runs eagerly: its sums may be rounded otherwise.
    assert_equal(run(eager_train_step, kernel), expected, rtol=1e-6)


@pytest.mark.feature("training", "`jit_compile=True`", "yes")
@pytest.mark.usefixtures("built_optimizers")
@pytest.mark.parametrize("kernel", OPTIMIZERS)
def test_entry_points_agree_compiled_by_xla(kernel: str) -> None:
    arguments = {"jit": True, "body": masked_and_normalized}
    entry = step_in_function if kernel == "sgld" else train_step
    assert_equal(run(entry, kernel, **arguments), run(fit, kernel, **arguments), rtol=1e-6)


def not_trained(model: keras.Model) -> list[Array]:
    return [v.numpy() for v in model.non_trainable_variables]


@pytest.mark.feature("logs", "logged loss and metrics")
@pytest.mark.usefixtures("built_optimizers", "no_inner_compilation")
@pytest.mark.parametrize(
    "entry", [fit, step, step_in_function, train_step, eager_train_step], ids=lambda d: d.__name__
)
def test_logs_are_keras_s_own_and_state_moves_once_per_update(entry: Any) -> None:
    data = X[:BATCH], Y[:BATCH]
    stock = fit(keras.optimizers.SGD(0.0), data)
    model = entry(OPTIMIZERS["robbins-monro"](), data)

    expected = not_trained(stock)
    assert len(expected) == 3
    for actual, value in zip(not_trained(model), expected, strict=True):
        np.testing.assert_allclose(actual, value, rtol=1e-6)
    if "fit" in entry.__name__ or "train_step" in entry.__name__:
        logs = model.history.history
        assert logs.keys() == stock.history.history.keys() == {"loss", "mae"}
        for name, values in stock.history.history.items():
            np.testing.assert_allclose(logs[name], values, rtol=1e-6)


@pytest.fixture
def double_precision() -> Iterator[None]:
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy(policy)
    keras.config.set_floatx(floatx)


@pytest.mark.usefixtures("built_optimizers", "no_inner_compilation", "double_precision")
def test_ragged_batches() -> None:
    # `fit` does not know their size as it traces, and TensorFlow rounds its sums otherwise: in
    # float32 by so much that a small fault could hide behind it.
    kernel, data = "robbins-monro", (X.astype("float64"), Y.astype("float64"))
    # Keras 3.13 cannot call a layer with such a regularizer in float64.
    body = partial(everything, activity_regularizer=None)
    assert_equal(run(step, kernel, data, body=body), run(fit, kernel, data, body=body), rtol=1e-12)
    optimizer = OPTIMIZERS[kernel]
    expected = fit(optimizer(), data, body=body).history.history
    logs = train_step(optimizer(), data, body=body).history.history
    for name, values in expected.items():
        np.testing.assert_allclose(logs[name], values, rtol=1e-6)


class Counting(layers.Layer):
    """Counts how often it is called, which in a graph is how often it is traced."""

    calls = 0

    def call(self, x: Any) -> Any:
        self.calls += 1
        return x


@pytest.mark.usefixtures("built_optimizers", "no_inner_compilation")
@pytest.mark.parametrize("cls", [keras.Model, Explicit])
def test_a_fit_traces_no_more_as_it_goes_on(cls: type) -> None:
    counting = Counting()
    model = build(cls, lambda x: counting(layers.Dense(5)(x)))
    run_fit(model, OPTIMIZERS["sgld"](), WHOLE)
    calls = counting.calls
    model.fit(*WHOLE, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    assert counting.calls == calls
