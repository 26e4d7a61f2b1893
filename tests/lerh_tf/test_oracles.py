"""The witness on trial: closed forms, SciPy's quadrature, the theorems, wrong variants."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy.differentiate import jacobian
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import foldnorm

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
from tests.scenarios import ONE_DIMENSIONAL, SCENARIOS, Array, Scenario

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
each_scenario_in_1d = pytest.mark.parametrize("scenario", ONE_DIMENSIONAL, ids=str)

QUADRATICS = {
    "1-D": (Quadratic(np.array([[4.0]]), np.array([0.7]), tau=0.3), [-0.4], [1.1]),
    "concave": (Quadratic(np.array([[-2.0]]), np.array([0.7]), tau=0.3), [-0.4], [1.1]),
    "narrow": (Quadratic(np.array([[900.0]]), np.array([9.0]), tau=0.3), [-0.4], [1.1]),
    "2-D": (
        Quadratic(np.array([[3.0, 0.8], [0.8, 0.5]]), np.array([1.0, -2.0]), tau=0.2),
        [0.2, 0.4],
        [-0.5, 1.0],
    ),
}
each_quadratic = pytest.mark.parametrize(
    ("quadratic", "x", "anchor"), QUADRATICS.values(), ids=QUADRATICS
)


def landscape_of(scenario: Scenario) -> Landscape:
    return Landscape(scenario.f, scenario.tau)


def bimodal() -> Landscape:
    return Landscape(lambda v: 8 * (v[..., 0] ** 2 - 1) ** 2 + 0.2 * v[..., 0], tau=0.2)


def assert_close(actual: Any, desired: Any, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, desired, rtol=0, atol=atol)


def integral(g: Callable[[Array], Any], x: float, tau: float) -> float:
    """SciPy's adaptive quadrature of g against phi_{x,tau}."""

    def integrand(v: float) -> float:
        phi = np.exp(-((v - x) ** 2) / (2 * tau)) / np.sqrt(2 * np.pi * tau)
        return float(np.asarray(g(np.array([v]))).item() * phi)

    return float(quad(integrand, x - 12 * tau**0.5, x + 12 * tau**0.5, epsabs=1e-13, limit=200)[0])


# Closed forms


@each_quadratic
@pytest.mark.parametrize(
    "quantity",
    [
        "local_entropy",
        "heat",
        "local_entropy_gradient",
        "heat_gradient",
        "heat_hessian",
        "mean",
        "covariance",
    ],
)
def test_quadratic_at_a_point(
    quantity: str, quadratic: Quadratic, x: list[float], anchor: list[float]
) -> None:
    del anchor
    exact = getattr(quadratic, quantity)(np.array(x))
    value, error = getattr(Landscape(quadratic.f, quadratic.tau), quantity)(x)
    assert np.shape(value) == np.shape(exact)
    assert np.abs(value - exact).max() <= error <= 1e-9 * max(1, np.abs(exact).max())


@each_quadratic
@pytest.mark.parametrize(
    "quantity",
    ["kl_mean_seeking", "kl_mode_seeking", "local_entropy_majorizer", "heat_majorizer"],
)
def test_quadratic_at_two_points(
    quantity: str, quadratic: Quadratic, x: list[float], anchor: list[float]
) -> None:
    exact = getattr(quadratic, quantity)(np.array(x), np.array(anchor))
    value, error = getattr(Landscape(quadratic.f, quadratic.tau), quantity)(x, anchor)
    assert abs(value - exact) <= error <= 1e-9 * max(1, abs(exact))


@each_quadratic
def test_both_algorithms_move_alike_on_a_quadratic(
    quadratic: Quadratic, x: list[float], anchor: list[float]
) -> None:
    del anchor
    landscape, exact = Landscape(quadratic.f, quadratic.tau), quadratic.mean(np.array(x))
    for value, error in (local_entropy_step(landscape, x), *heat_minimizers(landscape, x)):
        assert np.abs(value - exact).max() <= error <= 1e-9


def test_isotropic_quadratic_in_its_textbook_form() -> None:
    s, tau, x, c = 0.5, 0.3, np.array([0.8, -0.6]), np.array([0.1, 0.2])
    quadratic = Quadratic(np.eye(2) / s**2, c, tau)
    np.testing.assert_allclose(quadratic.f(x), np.sum((x - c) ** 2) / (2 * s**2))
    np.testing.assert_allclose(quadratic.mean(x), (s**2 * x + tau * c) / (s**2 + tau))
    np.testing.assert_allclose(quadratic.local_entropy_gradient(x), (x - c) / (s**2 + tau))
    np.testing.assert_allclose(quadratic.heat_gradient(x), (x - c) / s**2)


def test_local_entropy_keeps_the_gaussian_s_normalisation() -> None:
    tau = 0.3
    zero = Landscape(lambda v: np.zeros(v.shape[:-1]), tau)
    assert abs(zero.local_entropy([0.4, 1.0]).value) < 1e-13
    z = quad(lambda v: np.exp(-((v - 0.4) ** 2) / (2 * tau)), -10, 10)[0]
    assert abs(zero.local_entropy(0.4).value - (-np.log(z) + np.log(2 * np.pi * tau) / 2)) < 1e-12
    assert abs(-np.log(z)) > 0.1


# Independent quadrature


@each_scenario_in_1d
def test_one_dimension_against_scipy(scenario: Scenario) -> None:
    landscape, f, tau, x = landscape_of(scenario), scenario.f, scenario.tau, scenario.x[0]
    anchor = x - 0.3
    mass = integral(lambda v: np.exp(-f(v)), anchor, tau)
    mean = integral(lambda v: v * np.exp(-f(v)), anchor, tau) / mass
    second = integral(lambda v: v**2 * np.exp(-f(v)), anchor, tau) / mass
    mean_loss = integral(lambda v: f(v) * np.exp(-f(v)), anchor, tau) / mass
    heat = integral(f, x, tau)
    assert_close(landscape.local_entropy(anchor).value, -np.log(mass))
    assert_close(landscape.heat(x).value, heat)
    assert_close(landscape.mean(anchor).value, [mean])
    assert_close(landscape.covariance(anchor).value, [[second - mean**2]])
    # log(q / phi_x) = -f - log(mass) + log(phi_anchor / phi_x), linear in v but for f.
    tilt = ((mean - x) ** 2 - (mean - anchor) ** 2) / (2 * tau)
    mean_seeking = -mean_loss - np.log(mass) + tilt
    assert_close(landscape.kl_mean_seeking(x, anchor).value, mean_seeking)
    mode_seeking = heat + np.log(mass) + (x - anchor) ** 2 / (2 * tau)
    assert_close(landscape.kl_mode_seeking(x, anchor).value, mode_seeking)


def test_two_dimensions_against_gauss_hermite() -> None:
    scenario = SCENARIOS[-1]
    landscape, x = landscape_of(scenario), np.array(scenario.x)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    v = x + scenario.tau**0.5 * np.stack(np.meshgrid(nodes, nodes), axis=-1)
    phi = np.outer(weights, weights) / (2 * np.pi)
    joint = phi * np.exp(-scenario.f(v))
    mean = np.einsum("ij,ijk->k", joint, v) / joint.sum()
    assert_close(landscape.local_entropy(x).value, -np.log(joint.sum()), atol=1e-11)
    assert_close(landscape.heat(x).value, np.sum(phi * scenario.f(v)), atol=1e-11)
    assert_close(landscape.mean(x).value, mean, atol=1e-11)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("place", [-0.3, 0.0, 0.123, 0.7])
def test_reported_error_bounds_the_true_one_at_kinks_and_jumps(
    tolerance: float, place: float
) -> None:
    tau, x, height = 0.3, 0.2, 2.0
    s = (x - place) / tau**0.5
    kink = Landscape(lambda v: np.abs(v[..., 0] - place), tau, tolerance)
    jump = Landscape(lambda v: height * (v[..., 0] > place), tau, tolerance)
    folded = foldnorm.mean(abs(s), scale=tau**0.5)
    two_sided = np.logaddexp(
        log_ndtr(-s - tau**0.5) + s * tau**0.5, log_ndtr(s - tau**0.5) - s * tau**0.5
    )
    stepped = -np.log(ndtr(-s) + np.exp(-height) * ndtr(s))
    for estimate, exact in (
        (kink.heat(x), folded),
        (kink.local_entropy(x), -tau / 2 - two_sided),
        (jump.heat(x), height * ndtr(s)),
        (jump.local_entropy(x), stepped),
    ):
        assert abs(estimate.value - exact) <= estimate.error <= tolerance * max(1, abs(exact))


# Theorems


@each_scenario
def test_gradients_are_the_derivatives(scenario: Scenario) -> None:
    landscape = landscape_of(scenario)
    for function, gradient in (
        (landscape.local_entropy, landscape.local_entropy_gradient),
        (landscape.heat, landscape.heat_gradient),
    ):
        assert_close(gradient(scenario.x).value, slope(function, scenario), atol=1e-9)


def slope(function: Callable[[Array], Any], scenario: Scenario, x: Any = None) -> Array:
    """The gradient of a regularization by finite differences of order 8."""

    def columns(points: Array) -> Array:
        values = [float(function(p).value) for p in points.reshape(len(points), -1).T]
        return np.reshape(values, points.shape[1:])

    at = np.array(scenario.x if x is None else x)
    step = 0.5 * scenario.tau**0.5
    result = jacobian(columns, at, initial_step=step, tolerances={"atol": 1e-11, "rtol": 0})
    return np.asarray(result.df)


@each_scenario_in_1d
def test_algorithm_1_is_gradient_descent_with_rate_tau(scenario: Scenario) -> None:
    landscape = landscape_of(scenario)
    descent = [np.array(scenario.x)]
    for _ in range(4):
        gradient = slope(landscape.local_entropy, scenario, descent[-1])
        descent.append(descent[-1] - scenario.tau * gradient)
    iterates = iterate(local_entropy_step, landscape, scenario.x, steps=4)
    assert_close(iterates, descent)


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
