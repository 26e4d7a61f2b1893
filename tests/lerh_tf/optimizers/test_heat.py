"""HeatRegularization: construction, configuration and variables."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest

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
    assert solver == RobbinsMonro()
    config = {"c": 0.1, "alpha": 0.7, "growing": False, "largest": None}
    assert solver.step_sizes.get_config() == config


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
        (
            {"solver": 3},
            r'`solver` must be "robbins_monro" or an instance of a `lerh_tf\.Kernel` such as '
            r"`RobbinsMonro\(30, 30\)`\. Received: solver=3$",
        ),
        ({"solver": "sgld"}, r"`SGLD` belongs to `LocalEntropy`\. Received: solver='sgld'$"),
        ({"solver": SGLD()}, r"`SGLD` belongs to `LocalEntropy`\. Received: solver=SGLD\("),
        ({"solver": ImportanceSampling}, "`ImportanceSampling` belongs to `LocalEntropy`"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HeatRegularization(**arguments)


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
