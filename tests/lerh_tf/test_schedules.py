"""The paper's schedules: formulas, boundaries, serialization, and how the optimizers count."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from lerh_tf import (
    SGLD,
    HeatRegularization,
    LangevinSteps,
    RobbinsMonro,
    RobbinsMonroSteps,
    Scoping,
)

FROM_1 = np.arange(1.0, 50.0)
FROM_0 = np.arange(0.0, 50.0)
FORMULAS: dict[str, tuple[LearningRateSchedule, Any, Any]] = {
    "scoping": (Scoping(1.5, 0.01), FROM_0, 1.5 / 1.01**FROM_0),
    "scoping that grows": (Scoping(0.01, -0.1), FROM_0, 0.01 / 0.9**FROM_0),
    "scoping that stands": (Scoping(0.3, 0.0), FROM_0, np.full(50, 0.3)),
    "step_sizes": (LangevinSteps(), FROM_1, 1 / (1000 + FROM_1)),
    "step sizes of Figure 5": (LangevinSteps(2000), FROM_1, 1 / (2000 + FROM_1)),
    "step sizes from 2": (LangevinSteps(-0.5), FROM_1, 1 / (FROM_1 - 0.5)),
    "steps": (RobbinsMonroSteps(), FROM_1, 0.1 / FROM_1**0.7),
    "steps at the boundary": (RobbinsMonroSteps(2, 1), FROM_1, 2 / FROM_1),
    "capped steps": (
        RobbinsMonroSteps(1.0, 1.0, largest=0.3),
        FROM_1,
        np.minimum(0.3, 1.0 / FROM_1),
    ),
    "growing steps": (RobbinsMonroSteps(0.1, 0.7, growing=True), FROM_1, 0.1 * FROM_1**0.7),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_formula(name: str, dtype: str) -> None:
    schedule, steps, expected = FORMULAS[name]
    one_by_one = [float(schedule(tf.constant(step, dtype))) for step in steps]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-13)
    np.testing.assert_allclose(schedule(tf.constant(steps, dtype)), expected, rtol=1e-13)
    mapped = tf.vectorized_map(schedule, tf.constant(steps, dtype))
    np.testing.assert_allclose(mapped, expected, rtol=1e-13)


@pytest.mark.parametrize("name", FORMULAS)
def test_serialization_round_trip(name: str) -> None:
    schedule, steps, _ = FORMULAS[name]
    config = keras.optimizers.schedules.serialize(schedule)
    assert config["registered_name"] == f"lerh_tf>{type(schedule).__name__}"
    copy = keras.optimizers.schedules.deserialize(config)
    assert type(copy) is type(schedule)
    assert copy.get_config() == schedule.get_config()
    np.testing.assert_array_equal(copy(tf.constant(steps)), schedule(tf.constant(steps)))


def test_scoping_of_section_6_5_1() -> None:
    k = tf.constant([0, 499])
    np.testing.assert_allclose(Scoping(1.5, 0.01)(k), [1.5, 0.0105], rtol=5e-3)
    np.testing.assert_allclose(Scoping(0.01, -0.00997)(k), [0.01, 1.5], rtol=2e-2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scoping(0.0, 0.01), r"`tau0` must be positive and finite\. Received: tau0=0\.0"),
        (lambda: Scoping(-1.0, 0.01), r"`tau0` must be positive and finite\. .*tau0=-1\.0"),
        (lambda: Scoping(True, 0.01), r"`tau0` must be a positive, finite number\. .*tau0=True"),
        (lambda: Scoping(1.0, -1.0), r"`tau1` must be above -1\. Received: tau1=-1\.0"),
        (lambda: Scoping(1.0, -2), r"`tau1` must be above -1\. Received: tau1=-2"),
        (lambda: Scoping(1.0, float("nan")), r"`tau1` must be a finite number\. .*tau1=nan"),
        (lambda: LangevinSteps(-1.0), r"`offset` must be above -1\. Received: offset=-1\.0"),
        (lambda: LangevinSteps(float("inf")), r"`offset` must be a finite number\. .*offset=inf"),
        (lambda: RobbinsMonroSteps(c=0.0), r"`c` must be positive and finite\. .*c=0\.0"),
        (lambda: RobbinsMonroSteps(alpha=0.5), r"`alpha` must be in \(1/2, 1\]\. .*alpha=0\.5"),
        (lambda: RobbinsMonroSteps(alpha=1.01), r"`alpha` must be in \(1/2, 1\]\. .*alpha=1\.01"),
    ],
)
def test_boundaries(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def heat(variable: keras.Variable, tau: Any, updates: int, **arguments: Any) -> list[float]:
    """The iterates of exact Algorithm 2 on f(v) = 2 v, on which x_{k+1} = x_k - 2 tau_k."""
    solver = RobbinsMonro(1, 1, step_sizes=RobbinsMonroSteps(1.0))
    optimizer = HeatRegularization(tau, solver, seed=0, **arguments)

    def loss() -> tf.Tensor:
        return 2.0 * tf.convert_to_tensor(variable)

    iterates = []
    for _ in range(updates):
        optimizer.step(loss, [variable])
        iterates.append(float(variable.numpy()))
    return iterates


def test_tau_follows_its_schedule_from_k_0() -> None:
    iterates = heat(keras.Variable(0.0), Scoping(0.5, 1.0), 4)
    np.testing.assert_allclose(iterates, -np.cumsum([1.0, 0.5, 0.25, 0.125]), rtol=1e-6)


def test_tau_follows_the_raw_counter_under_accumulation() -> None:
    iterates = heat(keras.Variable(0.0), Scoping(0.5, 1.0), 4, gradient_accumulation_steps=2)
    # Weights move at the raw updates 1 and 3.
    np.testing.assert_allclose(iterates, [0.0, -0.5, -0.5, -0.625], rtol=1e-6)


def test_a_number_can_be_set_and_takes_effect_in_a_traced_step() -> None:
    variable = keras.Variable(0.0)
    optimizer = HeatRegularization(
        0.5, RobbinsMonro(1, 1, step_sizes=RobbinsMonroSteps(1.0)), seed=0
    )

    def loss() -> tf.Tensor:
        return 2.0 * tf.convert_to_tensor(variable)

    optimizer.step(loss, [variable])
    optimizer.tau = 0.25
    optimizer.step(loss, [variable])
    np.testing.assert_allclose(variable.numpy(), -1.5, rtol=1e-6)


def test_a_schedule_can_t_be_set() -> None:
    optimizer = HeatRegularization(Scoping(0.5, 1.0), seed=0)
    with pytest.raises(TypeError, match=r"`tau` that follows a schedule can't be set.*tau=0\.1"):
        optimizer.tau = 0.1


def test_learning_rate_schedule_stands_apart_from_tau() -> None:
    iterates = heat(keras.Variable(0.0), 0.5, 3, learning_rate=Scoping(0.1, 1.0))
    np.testing.assert_allclose(iterates, -2 * np.cumsum([0.1, 0.05, 0.025]), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: Scoping(1.5, 0.01), Scoping(1.5, 0.02)),
        (LangevinSteps, LangevinSteps(2000.0)),
        (RobbinsMonroSteps, RobbinsMonroSteps(growing=True)),
        (SGLD, SGLD(step_sizes=LangevinSteps(1.0))),
        (RobbinsMonro, RobbinsMonro(step_sizes=RobbinsMonroSteps(0.2))),
    ],
)
def test_equal_arguments_make_equal_values(make: Any, other: Any) -> None:
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != other
    assert make() != "schedule"
