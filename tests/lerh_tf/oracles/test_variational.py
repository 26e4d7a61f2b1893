"""The theorems, the minimisers and wrong variants of them."""

import numpy as np
import pytest

from lerh_tf.oracles import (
    Density,
    Landscape,
    QuadratureError,
    gaussian,
    heat_minimizers,
    heat_step,
    iterate,
    kl_divergence,
    local_entropy_step,
    mixture,
)
from tests.lerh_tf.oracles._shared import (
    assert_close,
    bimodal,
    each_scenario,
    each_scenario_in_1d,
    landscape_of,
)
from tests.scenarios import SCENARIOS, Array, Scenario


def other_densities(scenario: Scenario) -> list[Density]:
    x, narrow = np.array(scenario.x), scenario.tau / 2
    left, right = gaussian(x - 0.4, narrow), gaussian(x + 0.3, narrow)
    return [
        gaussian(x, narrow),
        gaussian(landscape_of(scenario).mean(x).value, narrow),
        mixture([0.3, 0.7], [left, right]),
        landscape_of(scenario).density(x + 0.2),
    ]


@each_scenario
def test_variational_characterization_of_local_entropy(scenario: Scenario) -> None:
    landscape, x = landscape_of(scenario), scenario.x
    minimum, q = landscape.local_entropy(x), landscape.density(x)
    assert abs(landscape.local_entropy_functional(q, x).value - minimum.value) < 1e-11
    for other in other_densities(scenario):
        gap = landscape.local_entropy_functional(other, x).value - minimum.value
        assert gap > 1e-3
        # Equation (3.2), with the constant its Z leaves out.
        assert_close(gap, kl_divergence(other, q, 1e-10).value)


@each_scenario
def test_variational_characterization_of_heat_regularization(scenario: Scenario) -> None:
    landscape, x = landscape_of(scenario), scenario.x
    minimum = landscape.heat(x)
    at_q = landscape.heat_functional(landscape.density(x), x)
    assert abs(at_q.value - minimum.value) < 1e-11
    # exp(f) q has to be integrable: these decay with exp(-f), as q_{x,tau} does.
    left, right = landscape.density(np.array(x) - 0.3), landscape.density(np.array(x) + 0.2)
    sharper = Landscape(scenario.f, scenario.tau / 2).density(x)
    for other in (left, right, sharper, mixture([0.3, 0.7], [left, right])):
        assert landscape.heat_functional(other, x).value - minimum.value > 1e-3


def test_heat_functional_is_infinite_where_q_decays_too_slowly() -> None:
    scenario = SCENARIOS[0]
    with pytest.raises(QuadratureError, match="must"):
        landscape_of(scenario).heat_functional(gaussian(0.0, scenario.tau), 0.0)


@each_scenario
def test_majorizers_touch_at_the_anchor_and_lie_above_elsewhere(scenario: Scenario) -> None:
    landscape, anchor = landscape_of(scenario), np.array(scenario.x)
    for majorizer, function in (
        (landscape.local_entropy_majorizer, landscape.local_entropy),
        (landscape.heat_majorizer, landscape.heat),
    ):
        assert abs(majorizer(anchor, anchor).value - function(anchor).value) < 1e-11
        for x in (anchor - 0.5, anchor + 0.1):
            assert majorizer(x, anchor).value - function(x).value > 1e-4


@each_scenario
def test_regularizations_decrease_along_their_algorithms(scenario: Scenario) -> None:
    landscape = landscape_of(scenario)
    for step, function in (
        (local_entropy_step, landscape.local_entropy),
        (heat_step, landscape.heat),
    ):
        values = [function(x).value for x in iterate(step, landscape, scenario.x, steps=4)]
        assert (np.diff(values) < 0).all()


def test_too_long_a_step_does_not_decrease_local_entropy() -> None:
    """The monotone decrease is the step's doing, not the landscape's."""
    scenario = SCENARIOS[1]
    landscape, x = landscape_of(scenario), np.array(scenario.x)
    too_far = x + 8 * (landscape.mean(x).value - x)
    assert landscape.local_entropy(too_far).value > landscape.local_entropy(x).value


# Exact Algorithm 2


@each_scenario_in_1d
def test_heat_step_is_the_global_minimiser(scenario: Scenario) -> None:
    landscape, x = landscape_of(scenario), scenario.x
    y = heat_step(landscape, x).value
    best = landscape.kl_mode_seeking(y, x).value
    others = [landscape.kl_mode_seeking(y + u, x).value for u in np.linspace(-2, 2, 20)]
    assert best < min(others)


def test_a_bimodal_density_has_two_local_minimisers() -> None:
    landscape, x = bimodal(), 0.1
    found = heat_minimizers(landscape, x)
    right, left = (float(y.value[0]) for y in found)
    assert left < -0.4 < 0.4 < right
    divergence = [float(landscape.kl_mode_seeking(y, x).value) for y in (right, left)]
    assert divergence[0] < divergence[1]
    assert heat_step(landscape, x).value == found[0].value
    for y in (right, left):
        around = [landscape.kl_mode_seeking(y + u, x).value for u in (-0.05, 0.05)]
        assert min(around) > landscape.kl_mode_seeking(y, x).value
    # Mean-seeking, by contrast, settles between the modes.
    assert left < local_entropy_step(landscape, x).value < right


def test_four_local_minimisers_in_two_dimensions() -> None:
    def f(v: Array) -> Array:
        return np.asarray((8 * (v**2 - 1) ** 2 + 0.2 * v).sum(axis=-1))

    one = sorted(float(y.value[0]) for y in heat_minimizers(bimodal(), 0.1))
    found = np.array([y.value for y in heat_minimizers(Landscape(f, 0.2), [0.1, 0.1])])
    assert_close(found[0], [one[1], one[1]])
    corners = sorted(tuple(np.round(y, 9)) for y in found)
    assert corners == [tuple(np.round((a, b), 9)) for a in one for b in one]


@each_scenario
def test_swapping_the_divergence_moves_elsewhere(scenario: Scenario) -> None:
    landscape, x = landscape_of(scenario), scenario.x
    mean, mode = local_entropy_step(landscape, x).value, heat_step(landscape, x).value
    assert np.linalg.norm(mean - mode) > 0.1 * scenario.tau**0.5
    assert landscape.kl_mean_seeking(mean, x).value < landscape.kl_mean_seeking(mode, x).value
    assert landscape.kl_mode_seeking(mode, x).value < landscape.kl_mode_seeking(mean, x).value
