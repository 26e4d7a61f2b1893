"""`step`, for hand-written loops."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    ReplayError,
    RobbinsMonro,
)
from lerh_tf.optimizers._capture import CompiledClosures
from lerh_tf.optimizers._update import find_update

Array = npt.NDArray[Any]
Optimizer = LocalEntropy | HeatRegularization

TAU = 0.25
X = np.random.default_rng(0).standard_normal((7, 3)).astype("float32")
Y = np.random.default_rng(1).standard_normal(7).astype("float32")
BATCHES = [(X[:3], Y[:3]), (X[3:6], Y[3:6]), (X[6:], Y[6:])]


class Regression:
    """Linear regression that counts how often its loss is traced."""

    def __init__(self) -> None:
        self.variables = [keras.Variable([1.0] * 3), keras.Variable(0.5)]
        self.traces = 0

    def loss(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        self.traces += 1
        w, b = (tf.convert_to_tensor(v) for v in self.variables)
        return tf.reduce_mean((tf.tanh(tf.linalg.matvec(x, w)) + b - y) ** 2)

    def weights(self) -> Array:
        return np.concatenate([np.ravel(v.numpy()) for v in self.variables])


def optimizers() -> dict[str, Callable[[], Optimizer]]:
    return {
        "sgld": lambda: LocalEntropy(TAU, SGLD(4, step_sizes=LangevinSteps(10.0)), seed=0),
        "importance-sampling": lambda: LocalEntropy(TAU, ImportanceSampling(10), seed=0),
        "robbins-monro": lambda: HeatRegularization(TAU, RobbinsMonro(3, 2), seed=0),
    }


def test_step_returns_the_loss_before_the_update() -> None:
    model, optimizer = Regression(), optimizers()["sgld"]()
    for batch in BATCHES:
        before = model.loss(*batch)
        np.testing.assert_allclose(optimizer.step(model.loss, model.variables, *batch), before)


CLOSURES: dict[str, tuple[Callable[[tf.Variable], Any], bool]] = {
    "np.mean": (lambda w: np.mean(2.0 * w), True),
    ".numpy()": (lambda w: tf.reduce_sum(2.0 * w).numpy(), True),
    "another": (lambda w: tf.reduce_sum(w).nothing, False),
}


@pytest.mark.parametrize("name", CLOSURES)
def test_a_closure_that_calls_numpy_is_told_how(name: str) -> None:
    closure, advised = CLOSURES[name]
    weight = tf.Variable([1.0, 2.0])
    with pytest.raises((AttributeError, NotImplementedError)) as refusal:
        LocalEntropy(TAU, seed=0).step(lambda: closure(weight), [weight])
    notes = "".join(getattr(refusal.value, "__notes__", ()))
    assert ("`tf.numpy_function`" in notes) == advised


def test_a_closure_is_traced_once_per_signature() -> None:
    model, optimizer = Regression(), optimizers()["sgld"]()
    loss = model.loss
    counts = []
    for batch in [*BATCHES, *BATCHES]:
        optimizer.step(loss, model.variables, *batch)
        counts.append(model.traces)
    # The third batch is a ragged one.
    assert counts == [1, 1, 2, 2, 2, 2]


def test_a_step_that_makes_the_variables_looks_for_an_update_in_one_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = []

    def counted(*arguments: Any) -> Any:
        looked.append(arguments)
        return find_update(*arguments)

    monkeypatch.setattr("lerh_tf.optimizers.base.find_update", counted)
    model, optimizer = Regression(), optimizers()["sgld"]()
    train = tf.function(lambda *batch: optimizer.step(model.loss, model.variables, *batch))
    before = model.weights()
    train(*BATCHES[0])
    optimizer.report_failures()
    assert len(looked) == 1
    assert optimizer.iterations == 1
    assert (model.weights() != before).all()


def test_a_first_trace_that_runs_fails_and_says_what_to_do() -> None:
    model, optimizer = Regression(), optimizers()["sgld"]()
    made: list[tf.Variable] = []

    @tf.function(autograph=False)
    def train(x: tf.Tensor, y: tf.Tensor) -> Any:
        # TensorFlow can't make it ahead of the step.
        made[:] = made or [tf.Variable(tf.reduce_mean(x))]
        return optimizer.step(model.loss, model.variables, x, y)

    before = model.weights()
    train(*map(tf.constant, BATCHES[0]))
    assert (model.weights() == before).all()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"`optimizer.build\(variables\)` before"
    ):
        optimizer.report_failures()
    train(*map(tf.constant, BATCHES[0]))
    assert (model.weights() != before).all()


def test_each_closure_is_traced_once() -> None:
    model, optimizer = Regression(), optimizers()["sgld"]()
    half = {"traces": 0}

    def half_loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        half["traces"] += 1
        return 0.5 * model.loss(x, y)

    loss = model.loss
    for _ in range(3):
        optimizer.step(loss, model.variables, *BATCHES[0])
        optimizer.step(half_loss, model.variables, *BATCHES[0])
    assert half["traces"] == 1
    assert model.traces == 2


@pytest.mark.feature(
    "training",
    "`optimizer.step` with a new closure at each update",
    'each is traced; a warning at the ninth: "Make one closure before the loop"',
)
def test_a_new_closure_at_each_update_is_warned_of_once() -> None:
    closures, variables = CompiledClosures(lambda *_: None), [tf.Variable(1.0)]

    def update() -> None:
        closures.get(lambda: None, variables)

    for _ in range(8):
        update()
    with pytest.warns(UserWarning, match=r"Make one closure before the loop.*Received: closure=<"):
        update()
    update()


def test_batches_of_many_lengths_are_traced_twice() -> None:
    weight, traced = tf.Variable([1.0]), []
    optimizer = LocalEntropy(0.01, ImportanceSampling(2), seed=0)

    def loss(x: tf.Tensor) -> tf.Tensor:
        traced.append(x.shape)
        return tf.reduce_mean(x * weight)

    for length in (3, 1, 4, 2, 5):
        optimizer.step(loss, [weight], np.ones(length, "float32"))
    assert traced == [(3,), (None,)]


def test_inputs_may_be_nests_of_arrays_and_tensors() -> None:
    plain, nested = Regression(), Regression()
    first, second = optimizers()["sgld"](), optimizers()["sgld"]()

    def loss(batch: dict[str, tf.Tensor]) -> tf.Tensor:
        return nested.loss(batch["x"], batch["y"])

    for x, y in BATCHES:
        first.step(plain.loss, plain.variables, x, y)
        second.step(loss, nested.variables, {"x": tf.constant(x), "y": y})
    np.testing.assert_array_equal(nested.weights(), plain.weights())


def train(optimizer: Optimizer, jit_compile: bool | None) -> Array:
    """Trains in a plain loop, or in the user's own function, compiled by XLA or not."""
    model = Regression()

    def update(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return optimizer.step(model.loss, model.variables, x, y)

    optimizer.build(model.variables)
    if jit_compile is not None:
        update = tf.function(update, jit_compile=jit_compile)
    for x, y in BATCHES[:2]:
        update(tf.constant(x), tf.constant(y))
    return model.weights()


@pytest.mark.parametrize("name", optimizers())
def test_step_within_a_function_is_the_same_step(name: str) -> None:
    expected = train(optimizers()[name](), None)
    assert not np.allclose(expected, Regression().weights())
    np.testing.assert_array_equal(train(optimizers()[name](), jit_compile=False), expected)


def wave(seed: int, update: tf.Tensor, like: Sequence[tf.Tensor]) -> Callable[..., Any]:
    """Numbers of order 1 that XLA and TensorFlow agree on; they draw other normal numbers."""

    def draw(block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        def one(x: tf.Tensor) -> tf.Tensor:
            shape = tf.concat([[samples], tf.shape(x)], 0)
            here = tf.range(tf.reduce_prod(shape)) + tf.cast(5 * block + 3 * update, tf.int32)
            return tf.reshape(2.0 * tf.sin(tf.cast(here, x.dtype)), shape)

        return [one(x) for x in like]

    return draw


@pytest.mark.feature("training", "`jit_compile=True`")
@pytest.mark.parametrize("name", optimizers())
def test_step_compiled_by_xla_is_the_same_arithmetic(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lerh_tf.optimizers._update.PhiloxNoise", wave)
    expected = train(optimizers()[name](), jit_compile=False)
    actual = train(optimizers()[name](), jit_compile=True)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_autograph_leaves_the_library_alone(caplog: pytest.LogCaptureFixture) -> None:
    train(optimizers()["sgld"](), jit_compile=False)
    assert "AutoGraph" not in caplog.text


def chain_of(optimizer: Optimizer) -> list[Array]:
    names = ("chain_started", "_chain")
    return [v.numpy() for v in optimizer.variables if v.name.endswith(names)]


@pytest.mark.parametrize("name", optimizers())
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_loss_that_is_not_finite_moves_nothing(name: str, jit_compile: bool) -> None:
    model, optimizer = Regression(), optimizers()[name]()
    optimizer.build(model.variables)

    @tf.function(jit_compile=jit_compile)
    def update(factor: tf.Tensor) -> None:
        optimizer.step(lambda f: f * model.loss(X, Y), model.variables, factor)

    update(tf.constant(1.0))
    weights, chain = model.weights(), chain_of(optimizer)
    update(tf.constant(float("nan")))
    assert optimizer.diagnostics["non_finite"] > 0.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"The weights.* were left as"):
        optimizer.report_failures()
    np.testing.assert_array_equal(model.weights(), weights)
    for now, before in zip(chain_of(optimizer), chain, strict=True):
        np.testing.assert_array_equal(now, before)

    update(tf.constant(1.0))
    assert optimizer.diagnostics["non_finite"] == 0.0
    assert np.isfinite(model.weights()).all()
    assert not np.array_equal(model.weights(), weights)


def test_loss_must_be_a_scalar() -> None:
    variable = keras.Variable([1.0] * 3)
    with pytest.raises(
        ValueError,
        match=r"^The loss must be a scalar: take the mean .*`tf\.reduce_mean\(loss\)`\. Received",
    ):
        LocalEntropy(seed=0).step(lambda: variable * 2.0, [variable])


def test_loss_must_depend_on_the_variables() -> None:
    variable = keras.Variable([1.0] * 3)
    with pytest.raises(ReplayError, match=r"does not depend on any of the weights"):
        LocalEntropy(seed=0).step(lambda: tf.constant(2.0), [variable])


def test_nested_functions_are_sent_to_the_train_step() -> None:
    variable = keras.Variable(1.0)

    def loss() -> tf.Tensor:
        v = tf.convert_to_tensor(variable)
        return tf.while_loop(lambda u: u < 9.0, lambda u: [u * 2.0], [v])[0]

    with pytest.raises(ReplayError, match=r"nested function.*`lerh_tf\.TrainStep`"):
        LocalEntropy(seed=0).step(loss, [variable])
