"""What is refused where it comes in: by the setters of a live optimizer, by `step` and `build`."""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.optimizers.base_optimizer import BaseOptimizer

from lerh_tf import SGLD, LocalEntropy, LossFunction, Scoping, TrainStep
from lerh_tf.optimizers._replicas import check_strategy
from lerh_tf.optimizers.base import GaussianApproximation

pytestmark = pytest.mark.usefixtures("plain_loops")
X = np.ones((2, 3), "float32")
Y = np.ones((2, 1), "float32")


def made(**arguments: Any) -> LocalEntropy:
    return LocalEntropy(0.25, SGLD(2), seed=0, **arguments)


# Keras itself converts its variables in a way that NumPy 2 deprecates.
@pytest.mark.feature("update", "learning rate set to a schedule")
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning")
def test_schedule_in_the_place_of_a_learning_rate_is_saved_with_the_state(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(made(learning_rate=0.5), "mse")
    model.optimizer.learning_rate = Scoping(0.125, 1.0)
    for _ in range(2):
        model.train_on_batch(X, Y)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert float(loaded.optimizer.learning_rate) == 0.125 / 4
    for actual, expected in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@pytest.mark.feature(
    "update",
    "tau set to a schedule, or given as a bare function",
    'refused: "`keras.optimizers.schedules.LearningRateSchedule` such as `lerh_tf.Scoping`"',
)
@pytest.mark.parametrize(
    ("tau", "error"),
    [(lambda step: 0.1, ValueError), (Scoping(0.1, 0.0), TypeError), (Scoping, ValueError)],
)
def test_tau_is_set_to_no_schedule(tau: Any, error: type[Exception]) -> None:
    optimizer = made()
    with pytest.raises(error, match=r"^`tau` .*construct"):
        optimizer.tau = tau
    assert float(optimizer.tau.numpy()) == 0.25


KERAS_ARGUMENTS = {
    "weight_decay": 0.1,
    "clipnorm": 1.0,
    "clipvalue": 2.0,
    "global_clipnorm": 3.0,
    "use_ema": True,
    "ema_momentum": 0.5,
    "ema_overwrite_frequency": 4,
    "loss_scale_factor": 8.0,
    "gradient_accumulation_steps": 2,
}


@pytest.mark.feature(
    "update",
    "`clipnorm`, `weight_decay` and the like set on the optimizer",
    "they are the inner optimizer's, set and read through ours",
)
@pytest.mark.parametrize("name", KERAS_ARGUMENTS)
def test_keras_s_attributes_are_the_inner_optimizer_s(name: str) -> None:
    optimizer, value = made(), KERAS_ARGUMENTS[name]
    setattr(optimizer, name, value)
    assert getattr(optimizer.inner_optimizer, name) == getattr(optimizer, name) == value
    assert getattr(made(**{name: value}).inner_optimizer, name) == value


@pytest.mark.feature("update", "`clipnorm`, `weight_decay` and the like set on the optimizer")
@pytest.mark.parametrize(("name", "value"), [("momentum", 0.9), ("inner_optimizer", None)])
def test_what_would_have_no_effect_can_t_be_set(name: str, value: Any) -> None:
    optimizer = made()
    before = getattr(optimizer.inner_optimizer, name, optimizer.inner_optimizer)
    with pytest.raises(AttributeError, match=f"^`{name}` can't be set here: .*Received: {name}="):
        setattr(optimizer, name, value)
    assert getattr(optimizer.inner_optimizer, name, optimizer.inner_optimizer) is before


def test_parameter_servers_are_refused() -> None:
    servers = object.__new__(tf.distribute.ParameterServerStrategy)
    with (
        mock.patch.object(tf.distribute, "get_strategy", return_value=servers),
        pytest.raises(NotImplementedError, match=r"Received: ParameterServerStrategy"),
    ):
        check_strategy()


def test_nothing_that_is_set_is_without_effect() -> None:
    # Keras's own arguments are all among those that are handed on.
    parameters = inspect.signature(BaseOptimizer.__init__).parameters
    assert set(KERAS_ARGUMENTS) == set(parameters) - {"self", "learning_rate", "name", "kwargs"}


@pytest.mark.feature("update", "`exclude_from_weight_decay`")
def test_exclude_from_weight_decay_is_the_inner_optimizer_s() -> None:
    weight, kept = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    optimizer = made(weight_decay=0.5, learning_rate=1.0)
    optimizer.exclude_from_weight_decay([kept])
    assert optimizer.inner_optimizer._use_weight_decay(weight)
    assert not optimizer.inner_optimizer._use_weight_decay(kept)


@pytest.mark.feature("update", "tau set to a schedule, or given as a bare function")
@pytest.mark.parametrize("tau", [lambda step: 0.1, Scoping])
def test_tau_is_no_bare_function(tau: Any) -> None:
    text = r"a `keras\.optimizers\.schedules\.LearningRateSchedule` such as `lerh_tf\.Scoping`"
    with pytest.raises(ValueError, match=f"^`tau` must be .*{text}. Received: tau=<"):
        LocalEntropy(tau=tau)


@pytest.mark.feature(
    "training",
    "`optimizer.step` with a function that returns more than the loss, or no tensor",
    'refused: "must return the scalar minibatch loss alone"',
)
@pytest.mark.parametrize(
    "returned",
    [lambda: (loss(), 1), lambda: np.array(1.0), lambda: None],
    ids=["pair", "array", "none"],
)
def test_closure_returns_the_loss_alone(returned: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"^`closure` must return the scalar minibatch loss alone"):
        made().step(returned, [WEIGHT])


@pytest.mark.feature(
    "training",
    "`optimizer.step` with an `Objective` of other weights",
    'refused: "must be those that the objective is a function of"',
)
def test_objective_of_other_weights_is_refused() -> None:
    objective = LossFunction(lambda weights: tf.reduce_sum(weights[0]), 2)
    with pytest.raises(ValueError, match=r"^`variables` must be those .*1 variables, .* has 2$"):
        made().step(lambda: objective, [WEIGHT])


def test_closure_may_be_an_object_without_a_hash() -> None:
    @dataclasses.dataclass
    class Loss:
        weight: tf.Variable
        traces: int = 0

        def __call__(self) -> tf.Tensor:
            self.traces += 1
            return tf.reduce_sum(self.weight**2)

    closure, optimizer = Loss(tf.Variable([1.0])), made()
    for _ in range(2):
        optimizer.step(closure, [closure.weight])
    assert closure.traces == 1


WEIGHT = keras.Variable([1.0, 2.0], name="weight")
FROZEN = keras.Variable([1.0, 2.0], name="frozen", trainable=False)
COUNT = keras.Variable([1, 2], dtype="int32", name="count")


def loss() -> tf.Tensor:
    weights = (tf.cast(tf.convert_to_tensor(v), tf.float32) for v in (WEIGHT, FROZEN, COUNT))
    return tf.add_n([tf.reduce_sum(w**2) for w in weights])


ONE_LIST = (
    r"^`variables` must be a list of variables: pass `model\.trainable_variables`\. "
    "Received: variables="
)
REFUSED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "loss": (tf.constant(1.0), [WEIGHT], TypeError, r"^`closure` must be a function .*closure=<tf"),
    "no-closure": (None, [WEIGHT], TypeError, r"^`closure` must be .*Received: closure=None$"),
    "bare": (loss, WEIGHT, TypeError, rf"{ONE_LIST}Variable of shape \(2,\)$"),
    "bare-of-tensorflow": (
        loss,
        WEIGHT.value,
        TypeError,
        rf"{ONE_LIST}\w+Variable of shape \(2,\)$",
    ),
    "none": (loss, None, TypeError, f"{ONE_LIST}None"),
    "tensors": (loss, [tf.constant(1.0)], TypeError, rf"{ONE_LIST}\[EagerTensor of shape \(\)\]$"),
    "values": (
        loss,
        [np.ones((2, 3)), np.ones(3)] * 3,
        TypeError,
        rf"{ONE_LIST}\[(ndarray of shape \(2, 3\), ndarray of shape \(3,\), ){{2}}\.\.\.\]$",
    ),
    "a-model": (loss, keras.Sequential(name="net"), TypeError, f"{ONE_LIST}<Sequential name=net"),
    "a-dictionary": (loss, {"w": WEIGHT}, TypeError, f"{ONE_LIST}{{'w'"),
    "empty": (loss, [], ValueError, r"^`variables` must hold at least one variable.*=\[\]$"),
    "twice": (loss, [WEIGHT, WEIGHT], ValueError, r"^`variables` must not .*twice\..*'weight "),
    "frozen": (
        loss,
        [WEIGHT, FROZEN],
        ValueError,
        r"must be trainable.*'frozen \(float32\)'\]$",
    ),
    "integers": (loss, [WEIGHT, COUNT], ValueError, r"a floating dtype.*=\['count \(int32\)'\]$"),
}


@pytest.mark.feature(
    "training",
    "`optimizer.step` with a loss in the place of the function",
    'refused: "must be a function that computes the minibatch loss"',
    cases=["loss"],
)
@pytest.mark.feature(
    "training",
    "`optimizer.step` with anything but a list of variables",
    'refused: "must be a list of variables"',
    cases=["bare", "tensors"],
)
@pytest.mark.feature(
    "training",
    "`optimizer.step` with no variable, or with one twice",
    'refused: "must hold at least one variable", "must not hold a variable twice"',
    cases=["empty", "twice"],
)
@pytest.mark.feature(
    "training",
    "`optimizer.step` with variables that are not trainable",
    'refused: "pass `model.trainable_variables`"',
    cases=["frozen"],
)
@pytest.mark.feature("models", "trainable weights of an integer dtype", cases=["integers"])
@pytest.mark.parametrize("name", REFUSED)
def test_step_refuses(name: str) -> None:
    closure, variables, error, message = REFUSED[name]
    optimizer = made()

    def eagerly() -> Any:
        return optimizer.step(closure, variables)

    steps: list[Callable[[], Any]] = [eagerly, tf.function(eagerly, autograph=False)]
    for step in steps:
        with pytest.raises(error, match=message):
            step()
    assert not optimizer.built
    np.testing.assert_array_equal(WEIGHT.numpy(), [1.0, 2.0])


@pytest.mark.feature("training", "`optimizer.step` with anything but a list of variables")
def test_step_takes_any_collection_of_variables() -> None:
    optimizer, weights = made(), [tf.Variable([1.0]), keras.Variable([2.0])]

    def of_both() -> tf.Tensor:
        return tf.add_n([tf.reduce_sum(tf.convert_to_tensor(w) ** 2) for w in weights])

    optimizer.step(of_both, tuple(weights))
    optimizer.step(of_both, iter(weights))
    assert int(optimizer.iterations.numpy()) == 2


class Counts(keras.layers.Layer):
    """A layer whose integer weight is trainable, as `add_weight` makes it."""

    def build(self, input_shape: Any) -> None:
        self.count = self.add_weight(shape=(), dtype="int32", initializer="ones", name="count")

    def call(self, x: Any) -> Any:
        return x * keras.ops.cast(self.count, "float32")


@pytest.mark.feature(
    "models",
    "trainable weights of an integer dtype",
    'refused: "make others with `trainable=False`"; Keras\'s SGD warns',
)
def test_fit_refuses_integer_weights() -> None:
    model = keras.Sequential([keras.Input((3,)), Counts(), keras.layers.Dense(1)])
    model.compile(made(), "mse")
    message = r"^`variables` must be of a floating dtype: make others with `trainable=False`"
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, verbose=0)


class Explicit(TrainStep, keras.Model):
    """A functional model with `TrainStep`."""


@pytest.mark.feature(
    "models",
    "models without trainable weights",
    "nothing moves; Keras warns, as with SGD, and so does `TrainStep`",
)
@pytest.mark.parametrize("cls", [keras.Model, Explicit])
def test_model_without_trainable_weights_is_told_of_as_by_keras(cls: type) -> None:
    x = keras.Input((3,))
    model = cls(x, keras.layers.Dense(1, trainable=False)(x))
    model.compile(made(), "mse")
    with pytest.warns(UserWarning, match="The model does not have any trainable weights"):
        logs = model.train_on_batch(X, Y, return_dict=True)
    assert logs["loss"] == pytest.approx(model.evaluate(X, Y, verbose=0))
    assert isinstance(model.optimizer, GaussianApproximation)
