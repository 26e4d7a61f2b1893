"""Arguments and tiny models at random: finite weights, or an error that explains itself.

`LERH_TF_FUZZ=500` tries so many examples of each test, at random; the suite tries the same few.
"""

import json
import os
import re
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from lerh_tf import (
    SGLD,
    AdaptTau,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
    Scoping,
    TrainStep,
)
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._kernels import Array

MORE = os.environ.get("LERH_TF_FUZZ")

pytestmark = [
    # TensorFlow hears no signal where it hangs. Far above what any of these tests takes.
    pytest.mark.timeout(20 * 60 + 10 * int(MORE or 0), method="thread"),
    pytest.mark.filterwarnings("ignore:.*weights? .*left as they were:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*The mean m was x itself:RuntimeWarning"),
    # Half precision overflows here on purpose.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning"),
]


def few(examples: int) -> Any:
    """The suite's number of examples, or the environment's."""
    return settings(
        max_examples=int(MORE or examples),
        derandomize=not MORE,
        database=None,
        deadline=None,
        # Smaller models are no faster: shrinking takes minutes and says no more.
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([2**32, 2**70, -(2**70), 10**400]),
    st.floats(),
    st.text(max_size=3),
    st.just([1.0]),
    st.just({"a": 1}),
    st.just(object()),
    st.just(1j),
    st.sampled_from([np.float32(0.5), np.int64(3), np.array([0.5, 0.5]), np.array("sgld")]),
)
CONSTRUCTORS: dict[Any, tuple[str, ...]] = {
    LocalEntropy: (*("tau", "sampler", "seed", "subspace", "on_failure", "nonsense"),),
    HeatRegularization: ("tau", "solver", "seed", "learning_rate", "subspace", "on_failure"),
    SGLD: ("samples", "step_sizes", "noise", "persistent", "restart", "control_variate"),
    ImportanceSampling: ("samples", "estimator", "control_variate", "loss_multiplier"),
    RobbinsMonro: ("steps", "samples", "step_sizes", "tolerance"),
    Scoping: ("tau0", "tau1"),
    LangevinSteps: ("offset",),
    RobbinsMonroSteps: ("c", "alpha", "growing", "largest"),
    AdaptTau: ("target_ess", "rate", "lower", "upper"),
}


@few(300)
@given(st.data())
def test_an_argument_is_taken_or_refused_by_name(data: Any) -> None:
    constructor = data.draw(st.sampled_from(list(CONSTRUCTORS)))
    name = data.draw(st.sampled_from(CONSTRUCTORS[constructor]))
    value = data.draw(ANYTHING)
    arguments = {"tau0": 1.0, "tau1": 0.1} if constructor is Scoping else {}
    try:
        made = constructor(**{**arguments, name: value})
    except (ValueError, TypeError) as error:
        message = str(error)
        assert re.search(rf"\b{name}\b", message)
        assert re.search("Received( instead)?: |not recognized: ", message)
    else:
        # `AdaptTau` is no object that Keras saves; of `use_ema` Keras itself takes the truth value.
        if constructor is not AdaptTau and name != "use_ema":
            json.dumps(keras.saving.serialize_keras_object(made), allow_nan=False)


LOSSES: dict[str, Any] = {
    "mse": lambda y, p: tf.reduce_mean((p - y) ** 2),
    "steep": lambda y, p: tf.reduce_mean(tf.exp(20.0 * (p - y))),
    "logarithm": lambda y, p: tf.reduce_mean(tf.math.log(p)),
    "root": lambda y, p: tf.reduce_mean(tf.sqrt(p - y)),
    "falling": lambda y, p: -tf.reduce_mean((p - y) ** 4),
    "reciprocal": lambda y, p: tf.reduce_mean(1.0 / (p - y)),
    "nan": lambda y, p: tf.reduce_mean(p) * float("nan"),
    "flat": lambda y, p: tf.reduce_mean(p * 0.0),
}


class Explicit(TrainStep, keras.Model):
    """A functional model with the explicit entry point."""


ENTRY_POINTS: dict[str, tuple[type[keras.Model], dict[str, bool]]] = {
    "step": (keras.Model, {}),
    "fit": (keras.Model, {"jit_compile": False}),
    "fit-jit": (keras.Model, {"jit_compile": True}),
    "train-step": (Explicit, {"jit_compile": False}),
    "train-step-jit": (Explicit, {"jit_compile": True}),
    "train-step-eager": (Explicit, {"run_eagerly": True}),
}
UPDATES = 3
COUNTS = st.integers(1, 4)
MULTIPLIERS = st.sampled_from([1.0, 1e3, 1e-30, 1e30])
KERNELS = st.one_of(
    st.builds(
        SGLD,
        samples=st.integers(2, 5),
        step_sizes=st.builds(LangevinSteps, st.sampled_from([1000.0, 0.0, 1e30])),
        noise=st.sampled_from(["langevin", "linear"]),
        persistent=st.booleans(),
        restart=st.booleans(),
        control_variate=st.booleans(),
    ),
    st.builds(
        ImportanceSampling,
        samples=COUNTS,
        estimator=st.sampled_from(["positions", "gradients"]),
        loss_multiplier=MULTIPLIERS,
    ),
    st.builds(
        ImportanceSampling,
        samples=st.integers(2, 5),
        control_variate=st.just(True),
        loss_multiplier=MULTIPLIERS,
    ),
    st.builds(
        RobbinsMonro,
        steps=COUNTS,
        samples=COUNTS,
        step_sizes=st.builds(
            RobbinsMonroSteps, st.sampled_from([0.1, 1.0, 1e30]), growing=st.booleans()
        ),
    ),
)
CLIPPING = st.sampled_from(["clipnorm", "clipvalue", "global_clipnorm"])
KERAS = st.builds(
    lambda clipping, others: {**clipping, **others},
    st.dictionaries(CLIPPING, st.just(1.0), max_size=1),
    st.fixed_dictionaries(
        {},
        optional={
            "weight_decay": st.just(0.1),
            "use_ema": st.booleans(),
            "ema_momentum": st.sampled_from([0.0, 0.9, 1.0]),
            "ema_overwrite_frequency": st.integers(1, 2),
            "gradient_accumulation_steps": st.integers(2, 3),
            "loss_scale_factor": st.sampled_from([1e-30, 1024.0, 1e30]),
        },
    ),
)
MODELS = st.fixed_dictionaries(
    {
        "entry": st.sampled_from(list(ENTRY_POINTS)),
        "on_failure": st.sampled_from(["warn", "raise"]),
        "kernel": KERNELS,
        "loss": st.sampled_from(list(LOSSES)),
        "activation": st.sampled_from([None, "relu", "tanh", "softplus", "exponential"]),
        "dtype": st.sampled_from(
            ["float32", "float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
        ),
        "tau": st.one_of(
            st.sampled_from([1e-30, 1e-7, 1e-3, 1.0, 1e4, 1e30]),
            st.builds(Scoping, st.just(1.0), st.sampled_from([0.5, -0.5, 1e30])),
        ),
        "learning_rate": st.sampled_from([None, 0.0, 0.1]),
        "scales": st.tuples(*[st.sampled_from([0.0, 1.0, 1e3, 1e20])] * UPDATES),
        "keras": KERAS,
        "subspace": st.sampled_from(["auto", False]),
    }
)


def case(**choices: Any) -> dict[str, Any]:
    """A tiny model's settings, mild where nothing is chosen."""
    numbers = {"tau": 1e-3, "learning_rate": None, "scales": (1.0,) * UPDATES}
    model = {"kernel": SGLD(2), "loss": "mse", "activation": None, "dtype": "float32"}
    entry = {"entry": "step", "on_failure": "warn"}
    return {**numbers, **model, **entry, "keras": {}, "subspace": "auto", **choices}


@pytest.mark.usefixtures("plain_loops")
@few(2)
@example(case(dtype="float16", tau=1e-30, keras={"gradient_accumulation_steps": 2}))
@example(case(dtype="float16", tau=1e4))
@example(
    case(
        kernel=ImportanceSampling(1),
        tau=1e-30,
        keras={"global_clipnorm": 1.0},
        learning_rate=0.1,
    )
)
@example(case(loss="steep", scales=(1.0, 1e20, 1.0), on_failure="raise"))
@example(case(entry="fit", kernel=SGLD(3, noise="linear"), keras={"clipvalue": 1.0}))
@example(case(entry="fit", loss="steep", scales=(1.0, 1e20, 1.0), on_failure="raise"))
@example(case(entry="fit-jit", loss="steep", scales=(1.0, 1e20, 1.0), on_failure="raise"))
@example(case(entry="train-step", kernel=SGLD(3, persistent=False, control_variate=True)))
@example(case(entry="train-step-jit", kernel=ImportanceSampling(2), scales=(1.0, 1e20, 1.0)))
@example(case(entry="train-step-eager", kernel=RobbinsMonro(2, 2), loss="nan", on_failure="raise"))
@given(MODELS)
def test_weights_stay_finite(case: dict[str, Any]) -> None:
    check(case)


@few(1)
@example(case(loss="steep", scales=(1.0, 1e20, 1.0), on_failure="raise"))
@example(case(entry="fit", kernel=ImportanceSampling(3, loss_multiplier=1e30)))
@given(MODELS)
def test_weights_stay_finite_with_inner_loops_compiled_by_xla(case: dict[str, Any]) -> None:
    check(case)


def check(case: dict[str, Any]) -> None:
    """Trains for a few updates: the weights stay finite, and an update that fails moves nothing."""
    # The last one printed is the one that hangs, where a test is stopped for that.
    print(json.dumps(case, default=keras.saving.serialize_keras_object))
    if refused(case):
        return
    optimizer = made_optimizer(case)
    model, trace = made_model(case, optimizer), Trace()
    trace.set_model(model)
    try:
        train(model, optimizer, case, trace)
    except tf.errors.InvalidArgumentError as error:
        message = str(error)
        assert case["on_failure"] == "raise"
        assert "were left as they were" in message
        assert re.search("[Tt]ry |must be", message)
        if trace.is_inside:
            trace.assert_nothing_moved()
    if "16" in case["dtype"] and case["keras"]:
        # What clipping, decay and sums make of finite numbers in half precision is Keras's.
        return
    for variable in (*model.trainable_variables, *optimizer.variables):
        assert np.isfinite(tf.cast(variable.value, "float64").numpy()).all(), variable.path


def refused(case: dict[str, Any]) -> bool:
    """Whether SGLD's step sizes are too large for tau."""
    try:
        case["kernel"].check_tau(case["tau"]) if isinstance(case["tau"], float) else None
    except ValueError:
        return True
    return False


def made_optimizer(case: dict[str, Any]) -> Any:
    names = ("tau", "learning_rate", "subspace", "on_failure")
    arguments = {**{name: case[name] for name in names}, **case["keras"], "seed": 0}
    if isinstance(case["kernel"], RobbinsMonro):
        return HeatRegularization(solver=case["kernel"], **arguments)
    return LocalEntropy(sampler=case["kernel"], **arguments)


def made_model(case: dict[str, Any], optimizer: Any) -> keras.Model:
    cls, arguments = ENTRY_POINTS[case["entry"]]
    keras.utils.set_random_seed(0)
    x = keras.Input((3,), dtype=input_dtype(case))
    hidden = keras.layers.Dense(2, case["activation"], dtype=case["dtype"])(x)
    model = cls(x, keras.layers.Dense(1, dtype=case["dtype"])(hidden))
    model.compile(optimizer, LOSSES[case["loss"]], **arguments)
    optimizer.build(model.trainable_variables)
    return model


def input_dtype(case: dict[str, Any]) -> str:
    return "float32" if "mixed" in case["dtype"] else case["dtype"]


def train(model: keras.Model, optimizer: Any, case: dict[str, Any], trace: "Trace") -> None:
    size, rng = 2, np.random.default_rng(0)
    scales = np.repeat(case["scales"], size)[:, None]
    x = tf.cast(scales * rng.normal(size=(size * UPDATES, 3)), input_dtype(case))
    y = tf.cast(rng.normal(size=(size * UPDATES, 1)), input_dtype(case))
    if case["entry"] != "step":
        model.fit(x, y, batch_size=size, shuffle=False, verbose=0, callbacks=[trace])
        return

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return LOSSES[case["loss"]](y, tf.cast(model(x, training=True), y.dtype))

    for batch, start in enumerate(range(0, len(x), size)):
        trace.on_train_batch_begin(batch)
        inputs = x[start : start + size], y[start : start + size]
        optimizer.step(loss, model.trainable_variables, *inputs)
        trace.on_train_batch_end(batch)


class Trace(keras.callbacks.Callback):
    """Compares the weights before and after each update that fails."""

    is_inside = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._weights, self._failures = self._state(), self._counted()
        self.is_inside = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.is_inside = False
        # A failed part of an accumulated update counts as one that does not move; others may.
        is_part = self.model.optimizer.gradient_accumulation_steps
        if self._counted() > self._failures and not is_part:
            self.assert_nothing_moved()

    def assert_nothing_moved(self) -> None:
        for after, before in zip(self._state(), self._weights, strict=True):
            np.testing.assert_array_equal(after, before)

    def _state(self) -> list[Array]:
        return state_of(self.model.trainable_variables)

    def _counted(self) -> int:
        """The failures so far, but those that `step` has told of at once."""
        return int(self.model.optimizer._report._failures.numpy().sum())
