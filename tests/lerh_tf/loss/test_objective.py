"""f at other weights: equal to what Keras computes once the weights are assigned."""

from typing import NamedTuple

import keras
import numpy as np
import pytest

from tests.lerh_tf._cases import CASES, Case
from tests.lerh_tf._keras_steps import (
    Array,
    Probe,
    Recorder,
    elsewhere,
    relative_error,
    set_state,
    state_of,
)


class Comparison(NamedTuple):
    """One batch at other weights v, by the objective from x and by Keras from v.

    Attributes:
        case: what was compared.
        loss: f(v), f(x) by Keras.
        gradient: grad f(v), grad f(x) by Keras.
        probed_loss: f(v) by the objective in a step at x.
        probed_pair: f(v), f(x) by the vectorised objective in that step.
        probed_gradient: grad f(v) by the objective in that step.
        weights: the trainable weights before and after that step.
        state: the other variables before and after it.
    """

    case: Case
    loss: Array
    gradient: tuple[list[Array], list[Array]]
    probed_loss: float
    probed_pair: Array
    probed_gradient: list[Array]
    weights: tuple[list[Array], list[Array]]
    state: tuple[list[Array], list[Array]]


def compare(case: Case) -> Comparison:
    keras.utils.set_random_seed(1)
    model = case.build()
    x, state = state_of(model.trainable_variables), state_of(model.non_trainable_variables)
    v = elsewhere(model.trainable_variables)
    probe = Probe(model.trainable_variables, v)
    model.compile(optimizer=probe, **case.compile)

    model.train_on_batch(*case.data)
    at_x, probed, pair = probe.gradients(), probe.probed_gradients(), probe.pair()
    x_after, state_after = (
        state_of(model.trainable_variables),
        state_of(model.non_trainable_variables),
    )

    set_state(model.trainable_variables, v)
    set_state(model.non_trainable_variables, state)
    model.train_on_batch(*case.data)
    return Comparison(
        case,
        loss=probe.losses()[::-1],
        gradient=(probe.gradients(), at_x),
        probed_loss=probe.probed_losses()[0],
        probed_pair=pair,
        probed_gradient=probed,
        weights=(x, x_after),
        state=(state, state_after),
    )


@pytest.fixture(scope="module", params=list(CASES))
def comparison(request: pytest.FixtureRequest) -> Comparison:
    return compare(CASES[request.param])


def gradient_errors(comparison: Comparison, gradient: list[Array]) -> list[float]:
    at_v, _ = comparison.gradient
    return [relative_error(g, expected) for g, expected in zip(gradient, at_v, strict=True)]


def test_loss_is_keras_s(comparison: Comparison) -> None:
    error = relative_error(comparison.probed_loss, comparison.loss[0])
    assert error <= comparison.case.loss_tolerance


def test_gradient_is_keras_s(comparison: Comparison) -> None:
    errors = gradient_errors(comparison, comparison.probed_gradient)
    assert max(errors) <= comparison.case.gradient_tolerance


def test_current_weights_would_not_pass(comparison: Comparison) -> None:
    at_v, at_x = comparison.loss
    assert relative_error(at_x, at_v) > 4 * comparison.case.loss_tolerance
    errors = gradient_errors(comparison, comparison.gradient[1])
    assert min(errors) > 4 * comparison.case.gradient_tolerance


def test_vectorized_is_one_by_one(comparison: Comparison) -> None:
    tolerance = 2 * comparison.case.loss_tolerance
    np.testing.assert_allclose(comparison.probed_pair, comparison.loss, rtol=tolerance)


def test_no_weight_moves(comparison: Comparison) -> None:
    for before, after in zip(*comparison.weights, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", ["batch-normalization", "dropout"])
def test_state_moves_once_per_batch(name: str) -> None:
    comparison = compare(CASES[name])
    case, (before, after) = comparison.case, comparison.state
    keras.utils.set_random_seed(1)
    model = case.build()
    model.compile(optimizer=Recorder(model.trainable_variables), **case.compile)
    model.train_on_batch(*case.data)
    for probed, stock in zip(after, state_of(model.non_trainable_variables), strict=True):
        np.testing.assert_array_equal(probed, stock)
    assert all(np.any(a != b) for a, b in zip(before, after, strict=True))
