"""What no quadrature can answer is refused; scenarios are as they say."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import ndtr

from lerh_tf.oracles import (
    Density,
    Landscape,
    Quadratic,
    QuadratureError,
    gaussian,
    heat_minimizers,
    heat_step,
    iterate,
    kl_divergence,
    local_entropy_step,
    mixture,
)
from tests.lerh_tf.oracles._shared import bimodal, each_scenario, landscape_of
from tests.scenarios import Array, Scenario

# Scenarios


@each_scenario
def test_scenarios_move_far_enough_to_be_seen(scenario: Scenario) -> None:
    for step in (local_entropy_step, heat_step):
        move = step(landscape_of(scenario), scenario.x).value - scenario.x
        assert np.linalg.norm(move) > 0.5 * scenario.tau**0.5


@each_scenario
def test_scenarios_are_one_formula_in_both_libraries(scenario: Scenario) -> None:
    v = np.array(scenario.x) + np.linspace(-1, 1, 7)[:, None]
    np.testing.assert_allclose(scenario.loss(tf.constant(v), tf.exp), scenario.f(v), rtol=1e-12)


# Refusals


@pytest.mark.parametrize("tau", [0.0, -1.0, np.nan, np.inf])
def test_tau_must_be_positive(tau: float) -> None:
    with pytest.raises(ValueError, match=r"`tau` must be positive and finite\. Received: tau="):
        Landscape(lambda v: v[..., 0], tau)
    with pytest.raises(ValueError, match=r"`tau` must be positive and finite\. Received: tau="):
        Quadratic(np.eye(1), np.zeros(1), tau)


@pytest.mark.parametrize("tolerance", [9e-13, 1.0, np.nan])
def test_tolerance_must_be_reachable(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"`tolerance` must be in \[1e-12, 1\)\. Received: tol"):
        Landscape(lambda v: v[..., 0], 1.0, tolerance)


@pytest.mark.parametrize("x", [[0.0, 0.0, 0.0], [[0.0]], np.nan, []])
def test_points_are_of_one_or_two_dimensions(x: Any) -> None:
    with pytest.raises(ValueError, match=r"`x` must be a finite point of R or R\^2\. Received: x"):
        Landscape(lambda v: v[..., 0], 1.0).heat(x)


def test_f_must_drop_the_last_axis() -> None:
    with pytest.raises(ValueError, match=r"`f` must map \(\.\.\., d\) to \(\.\.\.\)\. Received: "):
        Landscape(lambda v: v**2, 1.0).local_entropy(0.0)


@pytest.mark.parametrize("curvature", [-1.0, -1.1])
def test_f_must_not_fall_faster_than_the_gaussian_rises(curvature: float) -> None:
    landscape = Landscape(lambda v: curvature * v[..., 0] ** 2 / 2, tau=1.0)
    for quantity in (landscape.local_entropy, landscape.mean):
        with pytest.raises(
            QuadratureError, match=r"it is not integrable\. Received: mass still at"
        ):
            quantity(0.3)
    with pytest.raises(ValueError, match=r"eigenvalues above -1 / tau\. Received: eigenvalue -1"):
        Quadratic(np.array([[curvature]]), np.zeros(1), tau=1.0)


def test_f_must_not_fall_exponentially() -> None:
    with pytest.raises(QuadratureError, match=r"The integrand must be finite\. Received: log inf"):
        Landscape(lambda v: -np.exp(v[..., 0]), tau=1.0).local_entropy(0.0)


def test_heat_needs_f_to_be_integrable() -> None:
    landscape = Landscape(lambda v: np.exp(v[..., 0] ** 2), tau=1.0)
    assert landscape.local_entropy(0.0).error < 1e-10
    with pytest.raises(QuadratureError, match=r"The integrand must be finite\. Received: log inf"):
        landscape.heat(0.0)


def test_infinite_walls_are_allowed_and_nan_is_not() -> None:
    def wall(v: Array) -> Array:
        return np.where(v[..., 0] > 0, 0.0, np.inf)

    value, error = Landscape(wall, 1.0, tolerance=1e-4).local_entropy(0.3)
    assert abs(value + np.log(ndtr(0.3))) <= error
    with pytest.raises(QuadratureError, match=r"must be finite\. Received: log nan at \[-"):
        Landscape(lambda v: 0 * wall(v), 1.0).local_entropy(0.3)
    with pytest.raises(QuadratureError, match=r"must not vanish everywhere\. Received: zero from"):
        Landscape(lambda v: np.full(v.shape[:-1], np.inf), 1.0).local_entropy(0.3)


def test_what_the_grids_do_not_resolve_is_refused() -> None:
    jump = Landscape(lambda v: 1.0 * (v[..., 0] > 0.1234), tau=1.0)
    with pytest.raises(QuadratureError, match=r"`tolerance`=1e-10\. Received: error .* intervals"):
        jump.local_entropy(0.0)


def test_a_degenerate_minimiser_is_refused() -> None:
    """F^H_tau(y) + y^2 / 2 tau = y^4 + const: a minimum without curvature."""
    tau = 0.5
    flat = Landscape(lambda v: v[..., 0] ** 4 - (6 * tau + 1 / (2 * tau)) * v[..., 0] ** 2, tau)
    with pytest.raises(QuadratureError, match=r"minimiser must be resolved.* Received: "):
        heat_minimizers(flat, 0.0)


def test_densities_have_mass_one() -> None:
    with pytest.raises(ValueError, match=r"must integrate to 1\. Received: mass 2\.506"):
        Density(lambda v: -(v[..., 0] ** 2) / 2, np.zeros(1), 1.0)
    with pytest.raises(ValueError, match=r"must integrate to 1\. Received: mass 1\.2"):
        mixture([0.5, 0.7], [gaussian(0.0, 1.0), gaussian(1.0, 1.0)])
    with pytest.raises(ValueError, match=r"one for each component\. Received: 1 weights for 2"):
        mixture([1.0], [gaussian(0.0, 1.0), gaussian(1.0, 1.0)])
    with pytest.raises(ValueError, match=r"`variance` must be positive and finite\. Received: var"):
        gaussian(0.0, -1.0)


def test_an_infinite_divergence_is_refused() -> None:
    def log_bump(v: Array) -> Array:
        inside = np.minimum(v[..., 0] ** 2, 1.0)
        with np.errstate(divide="ignore"):
            return -1 / (1 - inside) - np.log(0.443993816168079)

    bump = Density(log_bump, np.zeros(1), 0.2)
    assert kl_divergence(bump, gaussian(0.0, 1.0), 1e-10).value > 0
    with pytest.raises(QuadratureError, match=r"must be finite\. Received: log inf at"):
        kl_divergence(gaussian(0.0, 1.0), bump, 1e-10)


@pytest.mark.parametrize(
    ("hessian", "centre", "message"),
    [
        (np.eye(2), np.zeros(1), r"shape \(d, d\) for a `centre` of shape \(d,\)\. Received: shap"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), np.zeros(2), r"`hessian` must be symmetric\. Receiv"),
    ],
)
def test_quadratics_are_well_formed(hessian: Array, centre: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Quadratic(hessian, centre, 1.0)


@pytest.mark.parametrize("steps", [0, -1, 2.5])
def test_steps_are_counted(steps: Any) -> None:
    with pytest.raises(ValueError, match=r"`steps` must be a positive integer\. Received: steps="):
        iterate(local_entropy_step, bimodal(), 0.0, steps)


def test_a_region_beyond_any_grid_is_refused() -> None:
    flat = Landscape(lambda v: -0.4999 * (v**2).sum(axis=-1), tau=1.0)
    with pytest.raises(QuadratureError, match=r"must have at most .* nodes .* Received: \["):
        heat_minimizers(flat, [0.0, 0.0])
