"""HeatRegularization: construction, configuration, variables and going on after a checkpoint."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
from keras import layers

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
    Scoping,
)

Array = npt.NDArray[Any]
Optimizer = LocalEntropy | HeatRegularization


def test_defaults_are_the_paper_s() -> None:
    optimizer = HeatRegularization()
    assert float(optimizer.tau.numpy()) == np.float32(0.01)
    assert isinstance(optimizer.solver, RobbinsMonro)
    assert optimizer.solver.get_config() == RobbinsMonro().get_config()
    assert float(optimizer.learning_rate.numpy()) == np.float32(0.01)
    assert optimizer.name.startswith("heat_regularization")


def test_solver_by_name_is_the_paper_s() -> None:
    solver = HeatRegularization(solver="robbins_monro").solver
    assert isinstance(solver, RobbinsMonro)
    assert (solver.steps, solver.samples) == (30, 30)
    assert solver.step_sizes.get_config() == {"c": 0.1, "alpha": 0.7, "growing": False}


def test_sampler_by_name_is_the_paper_s() -> None:
    sampler = LocalEntropy(sampler="sgld").sampler
    assert isinstance(sampler, SGLD)
    assert sampler.get_config()["samples"] == 1000
    assert sampler.step_sizes.get_config() == {"offset": 1000.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": 0}, r"`tau` must be positive and finite\. Received: tau=0"),
        ({"tau": float("nan")}, r"`tau` must be positive and finite\. Received: tau=nan"),
        ({"tau": "0.1"}, r"`tau` must be a positive, finite number\. Received: tau='0\.1'"),
        ({"seed": -1}, r"`seed` must be an integer of at least 0\. Received: seed=-1"),
        ({"seed": 2**32}, r"`seed` must be below 2\*\*32\. Received: seed=4294967296"),
        ({"solver": "sgld"}, r'`solver` must be "robbins_monro" or a `lerh_tf\.Kernel` .*\'sgld\''),
        ({"solver": SGLD()}, r"`solver` must be .* other than .*`SGLD`.* Received: solver=SGLD\("),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HeatRegularization(**arguments)


def test_samplers_are_no_solvers() -> None:
    with pytest.raises(
        ValueError, match=r"`sampler` must be .* other than `RobbinsMonro`.*sampler=Robb"
    ):
        LocalEntropy(sampler=RobbinsMonro())  # type: ignore[arg-type, unused-ignore]


CONFIGURED: dict[str, Optimizer] = {
    "heat": HeatRegularization(
        0.3, RobbinsMonro(4, 5, step_sizes=RobbinsMonroSteps(0.2, 0.9, growing=True)), seed=7
    ),
    "heat-scheduled": HeatRegularization(
        Scoping(1.5, 0.01), seed=7, learning_rate=Scoping(0.1, 0.02), clipnorm=1.0
    ),
    "local-entropy-sgld": LocalEntropy(
        0.3,
        SGLD(9, step_sizes=LangevinSteps(20.0), noise="linear", persistent=False, restart=False),
        seed=7,
        learning_rate=0.2,
        use_ema=True,
    ),
    "local-entropy-is": LocalEntropy(
        0.3, ImportanceSampling(9, loss_multiplier=20.0), seed=7, weight_decay=0.1
    ),
}


@pytest.mark.feature("saving", "`keras.optimizers.serialize`, `deserialize`")
@pytest.mark.parametrize("name", CONFIGURED)
def test_configuration_round_trip(name: str) -> None:
    optimizer = CONFIGURED[name]
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == f"lerh_tf>{type(optimizer).__name__}"
    copy = keras.optimizers.deserialize(config)
    assert type(copy) is type(optimizer)
    assert copy.get_config() == optimizer.get_config()
    assert keras.optimizers.serialize(copy) == config


def test_names_are_registered() -> None:
    for cls in (HeatRegularization, LocalEntropy, SGLD, RobbinsMonro, RobbinsMonroSteps, Scoping):
        assert keras.saving.get_registered_object(f"lerh_tf>{cls.__name__}") is cls


def test_learning_rate_tied_to_tau_is_not_set_apart() -> None:
    optimizer = HeatRegularization(0.1)
    with pytest.raises(TypeError, match=r"tied to `tau`.*Received: learning_rate=0\.2"):
        optimizer.learning_rate = 0.2
    optimizer.tau = 0.2
    assert float(optimizer.learning_rate.numpy()) == np.float32(0.2)


RUNS: dict[str, Any] = {
    "heat": lambda: HeatRegularization(Scoping(0.1, 0.05), RobbinsMonro(3, 2), seed=5),
    "sgld": lambda: LocalEntropy(
        0.1,
        SGLD(4, step_sizes=LangevinSteps(20.0), restart=False),
        seed=5,
        gradient_accumulation_steps=3,
    ),
}

# What a new process does: load, go on with the second half of the data, save.
GO_ON = """
import sys
import keras, numpy as np
import lerh_tf
source, target, data = sys.argv[1:]
model = keras.saving.load_model(source)
x, y = np.load(data).values()
model.fit(x, y, batch_size=2, shuffle=False, verbose=0)
values = [v.numpy() for v in [*model.variables, *model.optimizer.variables]]
np.savez(target, *values)
"""


# No dropout: Keras files do not hold the state of its seed, so that SGD does not go on either.
def network() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(4, activation="tanh"),
            layers.BatchNormalization(),
            layers.Dense(1),
        ]
    )


def fit(model: keras.Model, data: tuple[Array, Array]) -> None:
    model.fit(*data, batch_size=2, shuffle=False, verbose=0)


# Keras asks its variables for arrays in a way that NumPy is giving up.
@pytest.mark.feature("saving", "`.keras` file, new process goes on")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", RUNS)
def test_training_goes_on_from_a_file_as_if_uninterrupted(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 3)).astype("float32")
    y = rng.standard_normal((8, 1)).astype("float32")
    model = network()
    model.compile(optimizer=RUNS[name](), loss="mse")
    fit(model, (x[:4], y[:4]))
    model.save(tmp_path / "half way.keras")
    fit(model, (x[4:], y[4:]))
    expected = [v.numpy() for v in [*model.variables, *model.optimizer.variables]]

    np.savez(tmp_path / "data.npz", x=x[4:], y=y[4:])
    files = [tmp_path / file for file in ("half way.keras", "whole.npz", "data.npz")]
    subprocess.run([sys.executable, "-c", GO_ON, *map(str, files)], check=True)
    with np.load(files[1]) as found:
        assert len(found.files) == len(expected)
        for actual, value in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(actual, value)
