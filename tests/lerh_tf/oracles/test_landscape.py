"""F_tau and its mean against closed forms and SciPy's quadrature."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.differentiate import jacobian
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import foldnorm

from lerh_tf.oracles import (
    Landscape,
    Quadratic,
    heat_minimizers,
    iterate,
    local_entropy_step,
)
from tests.lerh_tf.oracles._shared import (
    assert_close,
    each_scenario,
    each_scenario_in_1d,
    landscape_of,
)
from tests.scenarios import SCENARIOS, Array, Scenario

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
