"""Every way to train, feed and regularize that SGD knows does the same to ours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy
from tests.lerh_tf.keras_features._descent import Array, assert_same, descent, sgd, training

pytestmark = pytest.mark.usefixtures("built_optimizers", "plain_loops", "no_noise")

Build = Callable[[], keras.Model]
schedules = keras.optimizers.schedules

RNG = np.random.default_rng(0)
# Two batches and, at the end of the epoch, a ragged third one.
BATCH = 3
X = RNG.standard_normal((8, 4)).astype("float32")
Y = RNG.standard_normal((8, 2)).astype("float32")
LABELS = RNG.integers(0, 2, 8).astype("int32")
WEIGHTS = np.linspace(0.0, 2.0, 8).astype("float32")
INDICES = RNG.integers(0, 7, (8, 3)).astype("int32")


def stack(*body: Callable[[], Any]) -> Build:
    return lambda: keras.Sequential([keras.Input((4,)), *(make() for make in body)])


def dense(units: int = 2, **arguments: Any) -> Callable[[], Any]:
    return lambda: layers.Dense(units, **arguments)


PLAIN = stack(dense())


def with_state() -> keras.Model:
    """Statistics and seeds that move, metrics of regularizers."""
    return stack(
        dense(3, activation="tanh"),
        layers.BatchNormalization,
        lambda: layers.Dropout(0.5, seed=3),
        dense(),
    )()


def regularized() -> keras.Model:
    return stack(
        dense(3, kernel_regularizer="l2", bias_regularizer="l1", activity_regularizer="l2"), dense()
    )()


class AddsLoss(layers.Layer):
    """A penalty on its own weight and on what goes through it."""

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight(shape=(3,), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        self.add_loss(keras.ops.sum(self.scale**4) + keras.ops.mean(x**2))
        return x * self.scale


def two_headed() -> keras.Model:
    x = keras.Input((4,))
    h = layers.Dense(3, activation="tanh")(x)
    return keras.Model(x, {"a": layers.Dense(2, name="a")(h), "b": layers.Dense(2, name="b")(h)})


def embedded() -> keras.Model:
    return keras.Sequential(
        [keras.Input((3,), dtype="int32"), layers.Embedding(7, 2), layers.Flatten(), dense()()]
    )


def lazy() -> keras.Model:
    return keras.Sequential([dense(3, activation="tanh")(), layers.BatchNormalization(), dense()()])


class Subclassed(keras.Model):
    """Shares one layer, nests a model and makes its own loss."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = layers.Dense(4, activation="tanh")
        self.nested = keras.Sequential([layers.Dense(3), layers.Dense(2)])

    def call(self, x: Any, training: bool = False) -> Any:
        return self.nested(self.shared(self.shared(x)))

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, *rest: Any, **named: Any
    ) -> Any:
        return 2.0 * super().compute_loss(x, y, y_pred, *rest, **named)


class Halves(keras.constraints.Constraint):
    """A constraint that is not idempotent, and counts how often it is called."""

    def __init__(self) -> None:
        self.calls = tf.Variable(0)

    def __call__(self, w: Any) -> Any:
        self.calls.assign_add(1)
        return 0.5 * tf.convert_to_tensor(w)


def constrained() -> keras.Model:
    return stack(dense(3, kernel_constraint=Halves()), dense())()


def frozen() -> keras.Model:
    model = stack(dense(3), layers.BatchNormalization, dense())()
    model.layers[0].trainable = False
    return model


class Batches(keras.utils.PyDataset):
    """The data in its own batches."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        here = slice(BATCH * index, BATCH * (index + 1))
        return X[here], Y[here]


def generator() -> Iterator[tuple[Array, Array]]:
    while True:
        yield from (Batches()[index] for index in range(3))


def unknown_batches() -> tf.data.Dataset:
    """Batches whose size the graph does not know."""
    signature = tuple(tf.TensorSpec([None, size], tf.float32) for size in (4, 2))
    return tf.data.Dataset.from_generator(generator, output_signature=signature)


@dataclass(frozen=True)
class Case:
    """A training.

    Attributes:
        build: makes the model.
        fit: arguments of `Model.fit`.
        compile: arguments of `Model.compile`.
    """

    build: Build = PLAIN
    fit: dict[str, Any] = field(default_factory=lambda: {"x": X, "y": Y})
    compile: dict[str, Any] = field(default_factory=lambda: {"loss": "mse", "metrics": ["mae"]})

    def train(self, model: keras.Model, optimizer: Any) -> None:
        if model.built:
            # Keras then traces its step once, not twice.
            optimizer.build(model.trainable_variables)
        model.compile(optimizer, **self.compile)
        batches = {"batch_size": BATCH} if isinstance(self.fit["x"], np.ndarray) else {}
        model.fit(**self.fit, **batches, epochs=2, shuffle=False, verbose=0)


CROSS_ENTROPY = {
    "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "metrics": ["accuracy"],
    "weighted_metrics": ["accuracy"],
}
TWO = {
    "loss": {"a": CROSS_ENTROPY["loss"], "b": "mse"},
    "loss_weights": {"a": 0.3, "b": 2.0},
    "metrics": {"a": ["accuracy"], "b": ["mae"]},
}
CASES: dict[str, Callable[[], Case]] = {
    "state-metrics-and-a-ragged-batch": lambda: Case(with_state),
    "regularizers": lambda: Case(regularized),
    "constraints": lambda: Case(constrained),
    "add-loss": lambda: Case(stack(dense(3), AddsLoss, dense())),
    "sparse-gradients-of-an-embedding": lambda: Case(embedded, {"x": INDICES, "y": Y}),
    "built-lazily": lambda: Case(lazy),
    "subclassed-nested-shared-own-loss": lambda: Case(Subclassed),
    "frozen-before-compile": lambda: Case(frozen),
    "several-outputs-and-loss-weights": lambda: Case(
        two_headed, {"x": X, "y": {"a": LABELS, "b": Y}}, TWO
    ),
    "sample-weights": lambda: Case(
        fit={"x": X, "y": LABELS, "sample_weight": WEIGHTS}, compile=CROSS_ENTROPY
    ),
    "class-weights": lambda: Case(
        fit={"x": X, "y": LABELS, "class_weight": {0: 0.2, 1: 3.0}}, compile=CROSS_ENTROPY
    ),
    "validation": lambda: Case(fit={"x": X, "y": Y, "validation_split": 0.25}),
    "tf-data": lambda: Case(fit={"x": tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH)}),
    "tf-data-of-unknown-batches": lambda: Case(fit={"x": unknown_batches(), "steps_per_epoch": 3}),
    "generator": lambda: Case(fit={"x": generator(), "steps_per_epoch": 3}),
    "py-dataset": lambda: Case(fit={"x": Batches()}),
    "steps-per-execution": lambda: Case(compile={"loss": "mse", "steps_per_execution": 2}),
}


@pytest.mark.feature("update", "constraints", cases=["constraints"])
@pytest.mark.feature("training", "`steps_per_execution`", "yes", cases=["steps-per-execution"])
@pytest.mark.feature(
    "training", "ragged last batch", "yes", cases=["state-metrics-and-a-ragged-batch"]
)
@pytest.mark.feature(
    "training",
    "`tf.data`, also of unknown batch size",
    "yes",
    cases=["tf-data", "tf-data-of-unknown-batches"],
)
@pytest.mark.feature(
    "training", "generators, `PyDataset`", "yes", cases=["generator", "py-dataset"]
)
@pytest.mark.feature("training", "validation data", "yes", cases=["validation"])
@pytest.mark.feature(
    "training", "sample weights, class weights", "yes", cases=["sample-weights", "class-weights"]
)
@pytest.mark.feature(
    "models", "several outputs, loss weights", "yes", cases=["several-outputs-and-loss-weights"]
)
@pytest.mark.feature("models", "`add_loss`", "yes", cases=["add-loss"])
@pytest.mark.feature(
    "models", "kernel, bias and activity regularizers", "yes", cases=["regularizers"]
)
@pytest.mark.feature(
    "models", "`Embedding` (sparse gradients)", "yes", cases=["sparse-gradients-of-an-embedding"]
)
@pytest.mark.feature(
    "models", "layers frozen before `compile`", "yes", cases=["frozen-before-compile"]
)
@pytest.mark.feature("models", "models built lazily", "yes", cases=["built-lazily"])
@pytest.mark.feature(
    "models",
    "subclassed and nested models, shared layers, own `compute_loss`",
    "yes",
    cases=["subclassed-nested-shared-own-loss"],
)
@pytest.mark.parametrize("name", CASES)
def test_same_as_gradient_descent(name: str) -> None:
    # Made anew: generators go on from where they are.
    ours, stock = CASES[name](), CASES[name]()
    actual = training(descent(), ours.build, ours.train)
    assert_same(actual, training(sgd(), stock.build, stock.train))


def fit(model: keras.Model, optimizer: Any) -> None:
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    model.fit(X, Y, batch_size=2, epochs=1, shuffle=False, verbose=0)


ARGUMENTS: dict[str, dict[str, Any]] = {
    "clipnorm": {"clipnorm": 0.5},
    "clipvalue": {"clipvalue": 0.2},
    "global_clipnorm": {"global_clipnorm": 0.5},
    "weight_decay": {"weight_decay": 0.3},
    "ema": {"use_ema": True, "ema_momentum": 0.5},
    "ema-overwrite": {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2},
    "accumulation": {"gradient_accumulation_steps": 2},
    "accumulation-clipped-decayed-averaged": {
        "gradient_accumulation_steps": 2,
        "clipnorm": 0.5,
        "weight_decay": 0.3,
        "use_ema": True,
    },
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "loss-scale-factor": {"loss_scale_factor": 8.0},
    "learning-rate": {"learning_rate": 0.03},
    "learning-rate-schedule": {"learning_rate": schedules.ExponentialDecay(0.2, 2, 0.5)},
}


@pytest.mark.feature(
    "callbacks",
    "`LearningRateSchedule` as the learning rate",
    "yes",
    cases=["learning-rate-schedule"],
)
@pytest.mark.feature("update", "`clipnorm`", "yes", cases=["clipnorm"])
@pytest.mark.feature("update", "`clipvalue`", "yes", cases=["clipvalue"])
@pytest.mark.feature("update", "`global_clipnorm`", "yes", cases=["global_clipnorm"])
@pytest.mark.feature("update", "`weight_decay`", "yes", cases=["weight_decay"])
@pytest.mark.feature(
    "update", "`use_ema`, `ema_overwrite_frequency`", "yes", cases=["ema", "ema-overwrite"]
)
@pytest.mark.feature(
    "update",
    "`gradient_accumulation_steps`",
    "yes; noise, chain and tau's schedule go on at every batch",
    cases=["accumulation", "accumulation-clipped-decayed-averaged"],
)
@pytest.mark.feature(
    "update", "`loss_scale_factor`", "has no effect: it cancels", cases=["loss-scale-factor"]
)
@pytest.mark.feature("update", "`momentum`, `nesterov`", "yes", cases=["momentum", "nesterov"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_optimizer_s_argument_acts_once_per_weight_update(name: str) -> None:
    arguments = ARGUMENTS[name]
    expected = training(sgd(**arguments), PLAIN, fit)
    assert_same(training(descent(**arguments), PLAIN, fit), expected)
    other = training(sgd(), PLAIN, fit)
    differs = any(
        np.abs(a - b).max() > 1e-3 for a, b in zip(other.state, expected.state, strict=True)
    )
    assert differs or name == "loss-scale-factor"


@pytest.mark.feature("update", "constraints", "yes", cases=["kernel0", "kernel1"])
# Importance sampling without noise has x for a mean.
@pytest.mark.filterwarnings("ignore:.*The mean m was x itself:RuntimeWarning")
@pytest.mark.parametrize("kernel", [SGLD(20), ImportanceSampling(20)])
def test_constraint_acts_once_per_weight_update(kernel: Any) -> None:
    def train(optimizer: Any) -> int:
        halves = Halves()
        model = stack(dense(kernel_constraint=halves))()
        before = model.layers[0].kernel.numpy()
        # With learning rate 0 nothing else moves the weights.
        fit(model, optimizer)
        np.testing.assert_array_equal(model.layers[0].kernel.numpy(), before / 2**4)
        return int(halves.calls.numpy())

    assert train(LocalEntropy(0.1, kernel, seed=0, learning_rate=0.0)) == 4
    assert train(sgd(learning_rate=0.0)) == 4
