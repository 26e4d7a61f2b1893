"""Where the text cannot hold as printed: what it says, and what holds instead, as numbers."""

from collections.abc import Callable
from functools import partial
from itertools import chain

import numpy as np
from scipy.integrate import quad

from lerh_tf.oracles import Landscape, heat_minimizers
from reproduce.landscapes.functions import FUNCTIONS, Array, Function
from reproduce.theory.identities import Measures, Numbers, gathered

_POINTS = (-1.5, -0.4, 0.0, 0.7, 2.0)
_TAUS = (0.1, 0.5)
_SLOPES_AT = (1.0, 10.0, 100.0)
_SMOOTH = ("quadratic", "double_well", "multimodal")


def measure() -> Measures:
    """Measures both sides of what the text says.

    Returns:
        One number per place, by the measure's name.
    """
    parts = (_constant(), _proportional(), _flat(), _critical(), _soft_minimum())
    return gathered(chain.from_iterable(parts))


def _constant() -> Numbers:
    """F_tau = -log Z in the proof of Theorem 3.1; Z by another quadrature than the oracle's."""
    for name in _SMOOTH:
        for tau in _TAUS:
            landscape = Landscape(FUNCTIONS[name], tau)
            for x in _POINTS:
                difference = landscape.local_entropy(x).value + np.log(_z(landscape, x))
                yield "constant_as_printed", abs(difference)
                yield "constant_restored", abs(difference - 0.5 * np.log(2 * np.pi * tau))


def _z(landscape: Landscape, x: float) -> float:
    """The integral of exp(-f(v) - |x - v|^2 / 2 tau)."""

    def integrand(v: float) -> float:
        exponent = -landscape.loss(np.array([v])) - (v - x) ** 2 / (2 * landscape.tau)
        return float(np.exp(exponent))

    reach = 12 * float(np.sqrt(landscape.tau))
    return _integral(integrand, x - reach, x + reach)


def _integral(function: Callable[[float], float], lower: float, upper: float) -> float:
    return float(quad(function, lower, upper, epsabs=0.0, epsrel=1e-13, limit=500)[0])


def _proportional() -> Numbers:
    """Equation (2.5): F_tau proportional to -log(rho_f * phi), rho_f normalised."""
    for name in _SMOOTH:
        f = FUNCTIONS[name]
        log_mass = _log_mass(f)
        for tau in _TAUS:
            entropy = _values(Landscape(f, tau))
            marginal = _values(Landscape(partial(_shifted, f, log_mass), tau))
            yield "ratio_spread", float(np.ptp(entropy / marginal))
            yield "difference_is_constant", float(np.abs(entropy - marginal + log_mass).max())


def _log_mass(f: Function) -> float:
    """The logarithm of the integral of exp(-f)."""
    return float(np.log(_integral(lambda v: float(np.exp(-f(np.array([v])))), -12.0, 12.0)))


def _shifted(f: Function, log_mass: float, v: Array) -> Array:
    """-log rho_f."""
    return f(v) + log_mass


def _values(landscape: Landscape) -> Array:
    return np.array([float(landscape.local_entropy(x).value) for x in _POINTS])


def _flat() -> Numbers:
    """Section 2.1: F_tau becomes constant as tau grows."""
    for tau in _SLOPES_AT:
        straight = Landscape(FUNCTIONS["slope"], tau)
        yield "gradient_of_slope", float(straight.local_entropy_gradient(0.3).value[0])
    well = Landscape(FUNCTIONS["double_well"], _SLOPES_AT[-1])
    yield "gradient_of_well", abs(float(well.local_entropy_gradient(0.3).value[0]))
    wider = Landscape(FUNCTIONS["double_well"], 100 * _SLOPES_AT[-1])
    growth = float(wider.local_entropy(0.3).value - well.local_entropy(0.3).value)
    yield "growth_per_log_tau", growth / np.log(100.0)


def _critical() -> Numbers:
    """Theorem 4.2's proof is called identical to 3.3's, whose second half is x_k = x_{k+1} iff."""
    landscape = Landscape(FUNCTIONS["symmetric_double_well"], 0.2)
    minimisers = heat_minimizers(landscape, 0.0)
    first, second = (float(minimiser.value[0]) for minimiser in minimisers)
    divergences = [float(landscape.kl_mode_seeking(y, 0.0).value) for y in (first, second)]
    yield "gradient_at_ridge", abs(float(landscape.heat_gradient(0.0).value[0]))
    yield "step_from_ridge", abs(first)
    yield "decrease_from_ridge", float(landscape.heat(0.0).value - landscape.heat(first).value)
    yield "minimisers_apart", abs(first - second)
    yield "divergences_apart", abs(divergences[0] - divergences[1])


def _soft_minimum() -> Numbers:
    """Section 2.1 and Figure 1: what makes F_tau small, and how deep a minimum can become."""
    for name in _SMOOTH:
        f = FUNCTIONS[name]
        lowest = float(f(np.linspace(-4, 4, 100_001)[:, None]).min())
        for tau in _TAUS:
            landscape = Landscape(f, tau)
            for x in _POINTS:
                entropy = float(landscape.local_entropy(x).value)
                yield "above_lowest", entropy - lowest
                yield "below_heat", float(landscape.heat(x).value) - entropy
    hole = Landscape(FUNCTIONS["pinhole"], 1.0)
    yield "hole_local_entropy", float(hole.local_entropy(0.0).value)
    yield "hole_heat", float(hole.heat(0.0).value)
