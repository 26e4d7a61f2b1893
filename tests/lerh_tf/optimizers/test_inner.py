"""The Keras optimizer inside: it receives g = (x - m) / tau, and all else of it is untouched."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._regression import (
    TAU,
    Array,
    assert_close,
    assert_equal,
    compiled,
    differ,
    fit,
    network,
    np_mean,
    np_trained,
    sampler,
)

pytestmark = [
    pytest.mark.usefixtures("built_optimizers", "plain_loops"),
    # Keras itself converts its variables in a way that NumPy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning"),
]

ROOT = Path(__file__).resolve().parents[3]
UPDATES = 3
optimizers = keras.optimizers
INNER: dict[str, Callable[..., keras.optimizers.Optimizer]] = {
    "nesterov": lambda: optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda: optimizers.Adam(0.05),
    "adamw": lambda: optimizers.AdamW(0.05, weight_decay=0.1),
    "rmsprop": lambda: optimizers.RMSprop(0.05, momentum=0.5),
    "lion": lambda: optimizers.Lion(0.05),
    "nadam": lambda: optimizers.Nadam(0.05),
    "adam-accumulating": lambda: optimizers.Adam(0.05, gradient_accumulation_steps=2, clipnorm=0.3),
}


@pytest.mark.feature(
    "inner",
    "`Adam`, `AdamW`, `RMSprop`, `Lion`, `Nadam`, `SGD` with Nesterov momentum",
    "yes, as applied by hand to the gradients (x - m) / tau",
    cases=["adam", "adamw", "rmsprop", "lion", "nadam", "nesterov"],
)
@pytest.mark.feature(
    "inner", "clipping and accumulation of its own", "yes", cases=["adam-accumulating"]
)
@pytest.mark.parametrize("name", INNER)
def test_it_is_applied_to_the_gradients_by_hand(name: str) -> None:
    by_hand, variables = INNER[name](), network().trainable_variables
    model = compiled(sampler(optimizer=INNER[name]()))
    for update in range(UPDATES):
        x = state_of(variables)
        g = [(a - b) / TAU for a, b in zip(x, np_mean(x, TAU, update), strict=True)]
        by_hand.apply([tf.constant(each, tf.float32) for each in g], variables)
        assert_close(fit(model, 1), state_of(variables), tolerance=2e-5)
    # The paper's own step would be another.
    assert differ(state_of(variables), np_trained(UPDATES))


def go_on(folder: Path) -> None:
    """What the new process does."""
    for name in INNER:
        model = keras.models.load_model(folder / f"{name}.keras")
        fit(model, 1)
        np.savez(folder / f"{name}.npz", *state(model))


def state(model: keras.Model) -> list[Array]:
    return state_of([*model.variables, *model.optimizer.variables])


@pytest.mark.feature(
    "inner", "`.keras` file of each of them, new process goes on", "yes, bit-identically"
)
def test_new_process_goes_on_bit_identically(tmp_path: Path) -> None:
    expected = {}
    for name, make in INNER.items():
        model = compiled(LocalEntropy(TAU, SGLD(4), optimizer=make(), seed=1))
        fit(model, UPDATES)
        model.save(tmp_path / f"{name}.keras")
        fit(model, 1)
        expected[name] = state(model)
    module = "tests.lerh_tf.optimizers.test_inner"
    script = (
        "import pathlib, sys; from lerh_tf.loss import compilation\n"
        "compilation.is_compilable = lambda objective: False\n"
        f"import {module} as m; m.go_on(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=True)
    for name, values in expected.items():
        with np.load(tmp_path / f"{name}.npz") as found:
            assert_equal(list(found.values()), values)


def test_file_holds_each_number_once(tmp_path: Path) -> None:
    model = compiled(sampler(optimizer="adam"))
    fit(model, 1)
    model.save_weights(tmp_path / "model.weights.h5")
    names: list[str] = []
    with h5py.File(tmp_path / "model.weights.h5") as file:
        file["optimizer"].visit(names.append)
    numbers = [name for name in names if name.startswith("vars/")]
    assert len(numbers) == len(model.optimizer.state) + 1
    assert not any("inner_optimizer" in name for name in names)


@pytest.mark.feature("inner", "given by name, `optimizer='adam'`", "yes")
def test_it_may_be_given_by_name() -> None:
    made = HeatRegularization(0.1, optimizer="rmsprop")
    assert type(made.inner_optimizer) is optimizers.RMSprop


@pytest.mark.feature("inner", "automatic names of other optimizers", "are numbered as without ours")
def test_default_takes_no_number_from_names_of_the_user() -> None:
    keras.backend.clear_session()
    alone = optimizers.SGD().name
    keras.backend.clear_session()
    LocalEntropy()
    assert optimizers.SGD().name == alone


OF_SAMPLER = (
    r"A sampler's arguments, .*: `sampler=ImportanceSampling\(30, estimator=\"gradients\"\)`"
)
OF_SOLVER = r"A solver's arguments, .*: `solver=RobbinsMonro\(30, 30\)`"


@pytest.mark.parametrize("arguments", [{"samples": 10}, {"lr": 0.1}, {"sampler": 2}])
def test_arguments_that_sgd_has_not_are_refused(arguments: dict[str, Any]) -> None:
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=r"^Further .*`learning_rate`\. ") as refusal:
        HeatRegularization(momentum=0.9, **arguments)
    assert refusal.match(rf"{OF_SOLVER}\. Received: {name}={value}$")
    with pytest.raises(ValueError, match=rf"^Further .*{OF_SAMPLER}\. Received: samples=3$"):
        LocalEntropy(samples=3)


@pytest.mark.feature(
    "inner",
    "`learning_rate`, `clipnorm` and the like beside `optimizer`",
    'refused: "With `optimizer` given, its own constructor takes Keras\'s arguments"',
)
@pytest.mark.parametrize(
    ("beside", "advice"),
    [
        ({"learning_rate": 0.1}, r": `optimizer=keras\.optimizers\.Adam\(learning_rate=0\.1\)`\."),
        ({"clipnorm": 1.0}, r": `optimizer=keras\.optimizers\.Adam\(clipnorm=1\.0\)`\."),
        ({"momentum": 0.9}, r"\."),
        ({"samples": 10}, rf"\. {OF_SAMPLER}\."),
    ],
)
def test_arguments_beside_it_are_refused(beside: dict[str, Any], advice: str) -> None:
    ((name, value),) = beside.items()
    message = r"^With `optimizer` given, its own constructor takes Keras's arguments"
    for optimizer in ("adam", optimizers.Adam()):
        with pytest.raises(ValueError, match=f"{message}{advice} Received: optimizer=") as refusal:
            LocalEntropy(optimizer=optimizer, **beside)
        assert refusal.match(f" and {name}={value}$")


@pytest.mark.feature(
    "inner",
    "`LossScaleOptimizer`, or one of ours",
    'refused: "must be a Keras optimizer of gradients"',
    cases=["loss-scale", "ours"],
)
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: optimizers.LossScaleOptimizer(optimizers.SGD()), ""),
        (lambda: LocalEntropy(seed=0), ""),
        (lambda: LocalEntropy, ""),
        (lambda: 1e-3, ""),
        (lambda: "adamm", r" Keras knows none of this name\."),
        (lambda: optimizers.Lion, r" Make an instance: `keras\.optimizers\.Lion\(1e-3\)`\."),
    ],
    ids=["loss-scale", "ours", "our-class", "number", "unknown-name", "class"],
)
def test_what_is_no_optimizer_of_gradients_is_refused(wrong: Callable[[], Any], hint: str) -> None:
    rule = (
        r"^`optimizer` must be a Keras optimizer of gradients .*`keras\.optimizers\.Adam\(1e-3\)`"
    )
    with pytest.raises(
        ValueError, match=rf"{rule}.* of this package's\.{hint} Received: optimizer="
    ):
        HeatRegularization(optimizer=wrong())


@pytest.mark.feature("saving", "`keras.optimizers.serialize`, `deserialize`")
def test_configuration_round_trip() -> None:
    made = LocalEntropy(0.2, ImportanceSampling(7), optimizer=optimizers.Adam(0.3, beta_1=0.5))
    config = optimizers.serialize(made)
    copy = optimizers.deserialize(config)
    assert optimizers.serialize(copy) == config
    assert copy.inner_optimizer.get_config() == made.inner_optimizer.get_config()


@pytest.mark.feature("inner", "learning rate read and set", "is its own")
def test_learning_rate_is_its_own_and_can_be_set() -> None:
    made = sampler(optimizer=optimizers.Adam(0.5))
    made.learning_rate = 0.25
    assert float(made.inner_optimizer.learning_rate) == float(made.learning_rate) == 0.25
