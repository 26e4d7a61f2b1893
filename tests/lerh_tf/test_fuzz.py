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
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
    Scoping,
    Temperatures,
)

pytestmark = [
    pytest.mark.usefixtures("plain_loops"),
    pytest.mark.filterwarnings("ignore:.*weights? .*left as they were:RuntimeWarning"),
    # Half precision overflows here on purpose.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning"),
]

MORE = os.environ.get("LERH_TF_FUZZ")


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
    LocalEntropy: (
        *("tau", "sampler", "seed", "learning_rate", "subspace", "on_failure", "weight_decay"),
        *("clipnorm", "clipvalue", "global_clipnorm", "use_ema", "ema_momentum"),
        *("loss_scale_factor", "gradient_accumulation_steps", "nonsense"),
    ),
    HeatRegularization: ("tau", "solver", "seed", "learning_rate", "subspace", "on_failure"),
    SGLD: ("samples", "temperatures", "noise", "persistent", "restart", "rao_blackwell"),
    ImportanceSampling: ("samples", "loss_multiplier", "rao_blackwell"),
    RobbinsMonro: ("steps", "samples", "step_sizes"),
    Scoping: ("tau0", "tau1"),
    Temperatures: ("offset",),
    RobbinsMonroSteps: ("c", "alpha", "growing"),
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


KERNELS: dict[str, Any] = {
    "sgld": lambda n, **a: LocalEntropy(sampler=SGLD(n + 1), **a),
    "importance": lambda n, **a: LocalEntropy(sampler=ImportanceSampling(n), **a),
    "rao-blackwell": lambda n, **a: LocalEntropy(
        sampler=ImportanceSampling(n, 1e3, rao_blackwell=True), **a
    ),
    "robbins-monro": lambda n, **a: HeatRegularization(solver=RobbinsMonro(n, n), **a),
}
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
MODELS = st.fixed_dictionaries(
    {
        "kernel": st.sampled_from(list(KERNELS)),
        "loss": st.sampled_from(list(LOSSES)),
        "activation": st.sampled_from([None, "relu", "tanh", "softplus", "exponential"]),
        "dtype": st.sampled_from(["float32", "float64", "float16", "bfloat16"]),
        "tau": st.sampled_from([1e-30, 1e-7, 1e-3, 1.0, 1e4, 1e30]),
        "learning_rate": st.sampled_from([None, 0.0, 0.1, -1.0, 1e30]),
        "samples": st.integers(1, 4),
        "scale": st.sampled_from([0.0, 1.0, 1e3, 1e20]),
        "keras": st.sampled_from(
            [
                {},
                {"weight_decay": 0.1},
                {"clipnorm": 1.0},
                {"global_clipnorm": 1.0},
                {"use_ema": True, "ema_overwrite_frequency": 1},
                {"gradient_accumulation_steps": 2},
            ]
        ),
        "subspace": st.sampled_from(["auto", False]),
    }
)


def case(**choices: Any) -> dict[str, Any]:
    """A tiny model's settings, mild where nothing is chosen."""
    numbers = {"tau": 1e-3, "learning_rate": None, "samples": 1, "scale": 1.0}
    model = {"kernel": "sgld", "loss": "mse", "activation": None, "dtype": "float32"}
    return {**numbers, **model, "keras": {}, "subspace": "auto", **choices}


@few(12)
@example(
    case(dtype="float16", learning_rate=1e30, tau=1e-30, keras={"gradient_accumulation_steps": 2})
)
@example(case(kernel="importance", tau=1e-30, keras={"global_clipnorm": 1.0}, learning_rate=0.1))
@example(case(learning_rate=1e30, keras={"weight_decay": 0.1}))
@given(MODELS)
def test_weights_stay_finite(case: dict[str, Any]) -> None:
    dtype, rng = case["dtype"], np.random.default_rng(0)
    model = keras.Sequential(
        [
            keras.Input((3,), dtype=dtype),
            keras.layers.Dense(2, case["activation"], dtype=dtype),
            keras.layers.Dense(1, dtype=dtype),
        ]
    )
    optimizer = KERNELS[case["kernel"]](
        case["samples"],
        tau=case["tau"],
        learning_rate=case["learning_rate"],
        subspace=case["subspace"],
        seed=0,
        on_failure="warn",
        **case["keras"],
    )
    x = tf.cast(case["scale"] * rng.normal(size=(2, 3)), dtype)
    y = tf.cast(rng.normal(size=(2, 1)), dtype)

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return LOSSES[case["loss"]](y, model(x, training=True))

    for _ in range(3):
        optimizer.step(loss, model.trainable_variables, x, y)
    for variable in (*model.trainable_variables, *kept(optimizer)):
        assert np.isfinite(tf.cast(variable.value, "float64").numpy()).all(), variable.path


def kept(optimizer: Any) -> list[keras.Variable]:
    """The optimizer's variables but the diagnostics, which may be infinite."""
    return [v for v in optimizer.variables if v.name not in optimizer.diagnostics]
