"""Which tau the Langevin chain is refused for: those for which it must diverge."""

import numpy as np
import pytest
from keras.optimizers.schedules import PiecewiseConstantDecay

from lerh_tf import SGLD, LangevinSteps
from tests.lerh_tf.kernels._paper import sgld


def constant(eps: float) -> PiecewiseConstantDecay:
    return PiecewiseConstantDecay([0], [eps, eps])


# What stays near x: the paper's settings, eps just below and at 4 tau, and steps that are too large
# at first only; chains of which each starts at x, or whose step sizes go on to fall.
STAYS: dict[str, tuple[float, SGLD]] = {
    "paper": (0.01, SGLD()),
    "largest tau": (1e30, SGLD()),
    "below": (0.25, SGLD(10, step_sizes=constant(0.99))),
    "at": (0.25, SGLD(10, step_sizes=constant(1.0))),
    "at first": (0.1, SGLD(1000, step_sizes=LangevinSteps(0.0))),
    "relative": (1e-4, SGLD(relative_to_tau=True)),
    "from x": (0.25, SGLD(10, step_sizes=constant(1.01), persistent=False)),
    "falling": (0.25, SGLD(10, step_sizes=LangevinSteps(-0.5), restart=False)),
    "unmoved": (0.1, SGLD(3, step_sizes=LangevinSteps(1e30))),
}
DIVERGES: dict[str, tuple[float, SGLD]] = {
    "defaults": (1e-4, SGLD()),
    "above": (0.25, SGLD(10, step_sizes=constant(1.01))),
    "two states": (0.25, SGLD(2, step_sizes=constant(1.01))),
    "relative, too large": (0.01, SGLD(relative_to_tau=True, step_sizes=constant(4.01))),
    "from x, too large": (1e-4, SGLD(persistent=False)),
    "falling, too large": (1e-5, SGLD(restart=False)),
}


@pytest.mark.parametrize("name", STAYS)
def test_tau_whose_chain_stays_is_taken(name: str) -> None:
    tau, kernel = STAYS[name]
    kernel.check_tau(tau)


@pytest.mark.parametrize("name", DIVERGES)
def test_tau_whose_chain_must_diverge_is_refused(name: str) -> None:
    tau, kernel = DIVERGES[name]
    with pytest.raises(ValueError, match=r"`tau` must be so large that SGLD's chain stays near x"):
        kernel.check_tau(tau)


def test_checking_does_not_make_tensorflow_warn(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(12):
        SGLD(3).check_tau(0.1)
    assert "retracing" not in caplog.text


@pytest.mark.parametrize("tau", [1e-4, 1e-6])
def test_the_refusal_says_what_was_received(tau: float) -> None:
    rule = rf"below 4 tau; .* Received: tau={tau}, step_sizes from 0\.000999 to 0\.0005$"
    with pytest.raises(ValueError, match=rule) as refusal:
        SGLD().check_tau(tau)
    assert " inf" not in str(refusal.value)


def largest(kernel: SGLD, tau: float, updates: int) -> float:
    """The largest distance from x in some weight updates where f is flat."""
    rng, last, found = np.random.default_rng(0), np.zeros(3), 0.0
    eps = kernel._step_sizes(0, tau).numpy()
    for update in range(updates):
        if not kernel.restart:
            eps = kernel._step_sizes(update, tau).numpy()
        eta = np.sqrt(eps[:-1, None]) * rng.standard_normal((kernel.samples - 1, 3))
        start = last if kernel.persistent else np.zeros(3)
        states = sgld(np.zeros_like, np.zeros(3), tau, eps, eta, start).states
        last = states[-1]
        found = max(found, float(np.nan_to_num(np.abs(states), nan=np.inf).max()))
    return found


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
@pytest.mark.parametrize("name", [*STAYS, *DIVERGES])
def test_the_rule_is_what_happens(name: str) -> None:
    tau, kernel = (STAYS | DIVERGES)[name]
    repeats = kernel.restart and kernel.samples < 20
    stays = largest(kernel, tau, 1000 if repeats else 2) < 1e3 * np.sqrt(tau)
    assert stays == (name in STAYS)
