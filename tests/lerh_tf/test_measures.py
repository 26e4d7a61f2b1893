"""F_tau and F^H_tau of models: against closed forms, quadrature, and NumPy on the same draws."""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from scipy.special import logsumexp

import lerh_tf
from lerh_tf.measures import (
    LossSampler,
    RegularizedLoss,
    SampledLosses,
    heat_regularization_of,
    local_entropy_of,
)
from lerh_tf.noise import PhiloxNoise
from lerh_tf.oracles import Landscape, Quadratic
from tests.lerh_tf._keras_steps import state_of

Array = npt.NDArray[Any]

TAU = 0.2
PENALTY = 0.05
# Standard errors that an estimate may be off.
ERRORS = 3.5
RNG = np.random.default_rng(7)
X = RNG.standard_normal((25, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]]) + RNG.standard_normal((25, 1))).astype("float32")
W = np.array([0.4, -1.0, 1.0], "float32")
WEIGHTS = np.linspace(0.0, 2.0, len(X)).astype("float32")


def linear(**arguments: Any) -> keras.Model:
    """y = x w by mean squares, with a penalty: f is a quadratic."""
    penalty = keras.regularizers.L2(PENALTY)
    layer = keras.layers.Dense(1, use_bias=False, kernel_regularizer=penalty)
    model = keras.Sequential([keras.Input((3,)), layer])
    model.set_weights([W[:, None]])
    model.compile("sgd", "mse", **arguments)
    return model


def quadratic(x: Array, y: Array) -> tuple[Quadratic, float]:
    """f but for its least value, and that value, on rows of data."""
    x, y = x.astype("float64"), y.astype("float64")[:, 0]
    hessian = 2 * x.T @ x / len(x) + 2 * PENALTY * np.eye(3)
    centre = np.linalg.solve(hessian, 2 * x.T @ y / len(x))
    least = float(np.mean((x @ centre - y) ** 2) + PENALTY * centre @ centre)
    return Quadratic((hessian + hessian.T) / 2, np.asarray(centre, np.float64), TAU), least


@pytest.fixture(scope="module")
def sampled() -> SampledLosses:
    """Draws on the quadratic."""
    return LossSampler(linear(), 4000, 0).losses(X, Y, tau=TAU)


def off(found: RegularizedLoss, exact: float) -> float:
    """How many standard errors an estimate is off."""
    return abs(found.value - exact) / found.standard_error


def test_quadratics_have_closed_forms(sampled: SampledLosses) -> None:
    exact, least = quadratic(X, Y)
    entropy, heat = local_entropy_of(sampled), heat_regularization_of(sampled)
    assert off(entropy, exact.local_entropy(W) + least) < ERRORS
    assert off(heat, exact.heat(W) + least) < ERRORS
    f = float(exact.f(W)) + least
    assert entropy.loss == heat.loss == pytest.approx(f, rel=1e-6)
    assert heat.gap == pytest.approx(heat.value - f, abs=1e-6)
    # Each is told from the other and from f, and without the penalty, which is no part of a batch.
    assert off(heat, exact.local_entropy(W) + least) > 3 * ERRORS
    assert off(entropy, exact.heat(W) + least) > 3 * ERRORS
    assert min(off(entropy, f), off(heat, f)) > 3 * ERRORS
    assert off(heat, exact.heat(W) + least - PENALTY * float(W @ W)) > 2 * ERRORS


def test_exponentials_averaged_over_batches_are_another_number(sampled: SampledLosses) -> None:
    parts = [quadratic(X[rows], Y[rows]) for rows in np.split(np.arange(25), 5)]
    values = [q.local_entropy(W) + least for q, least in parts]
    wrong = math.log(len(values)) - logsumexp(-np.asarray(values))
    assert off(local_entropy_of(sampled), wrong) > 3 * ERRORS


@pytest.mark.parametrize("of", [local_entropy_of, heat_regularization_of])
def test_standard_errors_are_the_spread_over_repetitions(
    sampled: SampledLosses, of: Callable[[SampledLosses], RegularizedLoss]
) -> None:
    parts = [of(SampledLosses(0.0, part)) for part in np.split(sampled.around, 50)]
    spread = np.std([part.value for part in parts], ddof=1)
    # Of 50 values the spread itself is known to 10 %.
    assert spread == pytest.approx(np.mean([p.standard_error for p in parts]), rel=0.3)


def test_draws_are_functions_of_seed_and_number(sampled: SampledLosses) -> None:
    # 40 draws: a full block of 32, and a part of one.
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), [tf.zeros([3, 1])])
    blocks = [noise(tf.constant(2**30 + b, tf.int64), 32)[0].numpy() for b in range(2)]
    w = W + np.sqrt(TAU) * np.concatenate(blocks)[:40, :, 0].astype("float64")
    exact, least = quadratic(X, Y)
    np.testing.assert_allclose(sampled.around[:40], exact.f(w) + least, rtol=1e-5)
    other = LossSampler(linear(), 40, 1).losses(X, Y, tau=TAU)
    assert not np.isclose(other.around, sampled.around[:40]).any()


def bent(v: Array) -> Array:
    """The loss of the model below, (..., 2) to (...)."""
    return np.mean((np.tanh(v @ X[:8, :2].astype("float64").T) - Y[:8, 0]) ** 2, axis=-1)


def test_two_weights_by_quadrature() -> None:
    layer = keras.layers.Dense(1, "tanh", use_bias=False)
    model = keras.Sequential([keras.Input((2,)), layer])
    model.set_weights([W[:2, None]])
    model.compile("sgd", "mse")
    arguments: dict[str, Any] = {"tau": 0.5, "samples": 2000, "batch_size": 3, "verbose": 0}
    data = (X[:8, :2], Y[:8])
    heat = lerh_tf.heat_regularization(model, *data, **arguments)
    entropy = lerh_tf.local_entropy(model, *data, loss_multiplier=4.0, **arguments)
    assert off(heat, float(Landscape(bent, 0.5, 1e-6).heat(W[:2]).value)) < ERRORS
    multiplied = Landscape(lambda v: 4.0 * bent(v), 0.5, 1e-6)
    assert off(entropy, float(multiplied.local_entropy(W[:2]).value)) < ERRORS
    assert entropy.loss == pytest.approx(4.0 * heat.loss)
    assert off(entropy, 4.0 * float(Landscape(bent, 0.5, 1e-6).local_entropy(W[:2]).value)) > ERRORS


class Rows(keras.utils.PyDataset):
    """Batches of 10, 10 and 5 rows."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return tuple(each[10 * index : 10 * index + 10] for each in (X, Y, WEIGHTS))


def dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((X, Y, WEIGHTS))


def of_unknown_length() -> tf.data.Dataset:
    # Keras's own `evaluate` counts a batch too many where its size is known and their number not.
    return dataset().batch(5, drop_remainder=True).filter(lambda *_: True)


@pytest.mark.parametrize(
    "data",
    [
        lambda: ((X, Y, WEIGHTS), {"batch_size": 25}),
        lambda: ((X, Y, WEIGHTS), {"batch_size": 7}),
        lambda: ((dataset().batch(7),), {}),
        lambda: ((of_unknown_length(),), {}),
        lambda: ((dataset().batch(5).repeat(),), {"steps": 5}),
        lambda: ((Rows(),), {}),
        lambda: (((Rows()[i] for i in range(3)),), {}),
    ],
    ids=["whole", "unequal", "dataset", "unknown-length", "endless", "PyDataset", "generator"],
)
def test_any_data_in_any_batches(data: Callable[[], tuple[tuple[Any, ...], Any]]) -> None:
    rows, arguments = data()
    model = linear()
    found = lerh_tf.heat_regularization(model, *rows, tau=TAU, samples=2, verbose=0, **arguments)
    residuals = ((X @ W)[:, None] - Y).astype("float64")[:, 0]
    f = np.mean(WEIGHTS * residuals**2) + PENALTY * float(W @ W)
    assert found.loss == pytest.approx(f, rel=1e-6)
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), [tf.zeros([3, 1])])
    z = noise(tf.constant(2**30, tf.int64), 2)[0].numpy()[:, :, 0]
    w = W + np.sqrt(TAU) * z
    around = np.mean(WEIGHTS * (w @ X.T - Y[:, 0]) ** 2, 1) + PENALTY * np.sum(w**2, 1)
    assert found.value == pytest.approx(around.mean(), rel=1e-5)
    assert found.standard_error == pytest.approx(abs(around[0] - around[1]) / 2, rel=1e-4)


class OwnLoss(keras.Model):
    """A `compute_loss` from before Keras told it of training."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None
    ) -> Any:
        return keras.ops.mean((y - y_pred) ** 2)


def test_own_loss_need_not_know_of_training() -> None:
    inputs = keras.Input((3,))
    model = OwnLoss(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd")
    found = lerh_tf.heat_regularization(model, X, Y, tau=TAU, samples=2, verbose=0)
    assert found.loss == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-5)


class Penalised(keras.Model):
    """A loss without targets, beside a compiled one that would need them."""

    def compute_loss(self, y_pred: Any = None, **_: Any) -> Any:
        return sum(self.losses)


@pytest.mark.parametrize(("cls", "loss"), [(keras.Model, None), (Penalised, "mse")])
def test_losses_without_targets_need_none(cls: type, loss: Any) -> None:
    (layer,) = linear().layers
    inputs = keras.Input((3,))
    model = cls(inputs, layer(inputs))
    model.compile("sgd", loss)
    found = lerh_tf.heat_regularization(model, X, tau=TAU, samples=2, verbose=0)
    assert found.loss == pytest.approx(PENALTY * float(W @ W), rel=1e-6)


def branched() -> keras.Model:
    """Two outputs, moving statistics, dropout, a loss of its own, metrics; never evaluated."""
    image = keras.Input((4, 4, 2))
    hidden = keras.layers.BatchNormalization()(keras.layers.Conv2D(2, 3)(image))
    hidden = keras.layers.Dropout(0.5)(keras.layers.Flatten()(hidden))
    hidden = keras.layers.ActivityRegularization(0.1)(hidden)
    model = keras.Model(
        image, {"a": keras.layers.Dense(1, name="a")(hidden), "b": keras.layers.Dense(2)(hidden)}
    )
    model.compile("adam", {"a": "mse", "b": "mae"}, metrics={"a": ["mae"]})
    return model


class Counting(keras.layers.Layer):
    """Draws and counts at each call, in training or not."""

    def __init__(self) -> None:
        super().__init__()
        self.seed = keras.random.SeedGenerator(3)
        self.calls = keras.Variable(0.0, trainable=False)

    def call(self, x: Any) -> Any:
        self.calls.assign(self.calls + 1.0)
        return x + 1e-3 * keras.random.normal(keras.ops.shape(x), seed=self.seed)


def counting() -> keras.Model:
    model = keras.Sequential([keras.Input((3,)), Counting(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def recurrent() -> keras.Model:
    model = keras.Sequential(
        [keras.Input((4, 8)), keras.layers.LSTM(2), keras.layers.Dense(1, "silu")]
    )
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("build", [branched, counting, recurrent])
def test_model_is_evaluated_and_left_as_it_is(build: Callable[[], keras.Model]) -> None:
    keras.utils.set_random_seed(0)
    model = build()
    x = RNG.standard_normal((6, *model.input_shape[1:])).astype("float32")
    y: Any = Y[:6]
    if build is branched:
        y = {"a": Y[:6], "b": Y[:12].reshape(6, 2)}
    variables = [*model.variables, *model.optimizer.variables]
    before = state_of(variables)
    found = lerh_tf.local_entropy(model, x, y, tau=1e-4, samples=3, batch_size=4, verbose=0)
    after = state_of(variables)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(after, before, strict=True))
    counts = [v.numpy() for v in model.metrics_variables]
    assert not any(np.any(count) for count in counts)
    evaluated = model.evaluate(x, y, batch_size=4, verbose=0, return_dict=True)
    logs = evaluated if isinstance(evaluated, dict) else {"loss": evaluated}
    assert found.loss == pytest.approx(logs["loss"], rel=1e-2 if build is counting else 1e-6)
    assert 0.0 < abs(found.gap) < 0.2


def test_eager_models_and_strategies_give_the_same() -> None:
    found = lerh_tf.heat_regularization(linear(), X, Y, tau=TAU, samples=3, verbose=0)
    eager = linear(run_eagerly=True)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        mirrored = linear()
    for model in (eager, mirrored):
        other = lerh_tf.heat_regularization(model, X, Y, tau=TAU, samples=3, verbose=0)
        assert other == pytest.approx(found, rel=1e-6)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lerh_tf.local_entropy(linear(), X, Y, tau=TAU, samples=2, batch_size=5, verbose=1)
    assert "5/5" in capsys.readouterr().out


def test_error_is_a_function_of_the_effective_sample_size() -> None:
    f = np.array([0.3, 0.1, 2.0, 1.0])
    w = np.exp(-f)
    size = w.sum() ** 2 / np.square(w).sum()
    found = local_entropy_of(SampledLosses(0.0, f + 1000.0))
    assert found.standard_error == pytest.approx(math.sqrt((4 / size - 1) / 3))
    assert found.value == pytest.approx(1000.0 - math.log(w.mean()))
    decided = local_entropy_of(SampledLosses(0.0, np.array([0.0, 999.0, 999.0, 999.0])))
    assert decided.standard_error == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_draws_without_a_finite_loss(bad: float) -> None:
    entropy = local_entropy_of(SampledLosses(0.0, np.array([1.0, bad, 1.0, bad])))
    assert entropy.value == pytest.approx(1.0 + math.log(2.0))
    assert entropy.standard_error == pytest.approx(math.sqrt(1 / 3))
    heat = heat_regularization_of(SampledLosses(0.0, np.array([1.0, bad])))
    assert not math.isfinite(heat.value)
    assert math.isnan(heat.standard_error)
    assert local_entropy_of(SampledLosses(0.0, np.array([bad, bad]))).value == math.inf


def unbuilt() -> keras.Model:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (linear, {"tau": 0.0}, "`tau` must be positive and finite. Received: tau=0"),
        (linear, {"samples": 1}, "`samples` must be an integer of at least 2. Received: samples=1"),
        (linear, {"seed": -1}, "`seed` must be an integer of at least 0. Received: seed=-1"),
        (linear, {"batch_size": 0}, "`batch_size` must be a positive integer"),
        (linear, {"loss_multiplier": -1.0}, "`loss_multiplier` must be positive and finite"),
        (linear, {"x": None}, "`x` must hold the data. Received: x=None"),
        (linear, {"y": None}, r"`y` must hold the targets .*`measure_on=\(x, y\)`\. .*loss='mse'"),
        (linear, {"x": X[:0], "y": Y[:0]}, "`x` must hold at least one row of data"),
        (lambda: keras.Sequential([keras.layers.Dense(1)]), {}, "`model` must be compiled"),
        (unbuilt, {}, "`model` must be built and have trainable weights"),
    ],
)
def test_arguments_are_checked(model: Callable[[], Any], arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lerh_tf.local_entropy(model(), **{"x": X, "y": Y, "tau": TAU, "verbose": 0, **arguments})


def test_other_things_are_no_models() -> None:
    with pytest.raises(TypeError, match=r"`model` must be a `keras\.Model`\. Received: model=3"):
        lerh_tf.local_entropy(3, X, Y, tau=TAU)
