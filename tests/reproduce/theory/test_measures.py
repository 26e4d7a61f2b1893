"""Each measure at a tiny budget, and that a wrong algorithm or identity would show."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lerh_tf.oracles import Landscape, Value
from reproduce.landscapes.functions import FUNCTIONS, Array
from reproduce.theory import descent, identities, kernels, minibatches, readings
from reproduce.theory.claims import MINIBATCHES, READINGS, THEOREMS
from reproduce.theory.protocol import KERNELS, Estimation, Minibatches, Site
from reproduce.theory.statement import Statement

SITE = Site("double_well", (0.3,), ((1.6,),), steps=3)
TINY = Minibatches(samples=100, repetitions=2, step_sizes=(0.08,))


def judged(
    claims: Sequence[Statement], part: str, found: Mapping[str, list[float]]
) -> dict[str, str]:
    claimed = [claim for claim in claims if claim.part == part]
    return {claim.measure: claim.judge(found[claim.measure]) for claim in claimed}


def test_identities_hold() -> None:
    found = identities.measure(SITE)
    verdicts = judged([*THEOREMS, *READINGS], "identities", found)
    assert set(verdicts) == set(found)
    assert set(verdicts.values()) == {"holds"}


def test_derivative_is_no_restatement_of_the_gradient() -> None:
    def cubic(x: Array) -> Value:
        return Value(np.asarray(x[0] ** 3 + x[0] * x[1]), 0.0)

    slope = identities.derivative(cubic, np.array([0.5, -2.0]), 1.0)
    np.testing.assert_allclose(slope, [0.75 - 2.0, 0.5], rtol=1e-11)


@pytest.mark.parametrize(
    ("algorithm", "part"), [("local_entropy", "algorithm1"), ("heat", "algorithm2")]
)
def test_exact_algorithms_are_monotone(algorithm: str, part: str) -> None:
    found = descent.measure(SITE, algorithm)
    assert len(found["violation"]) == SITE.steps
    assert set(judged(THEOREMS, part, found).values()) == {"holds"}
    assert min(found["decrease"]) > 1e-6


def test_longer_steps_violate(monkeypatch: pytest.MonkeyPatch) -> None:
    right = descent.ALGORITHMS["local_entropy"]

    def overshoot(landscape: Landscape, x: Array) -> Value:
        m, error = right.step(landscape, x)
        return Value(x + 8 * (m - x), error)

    monkeypatch.setitem(descent.ALGORITHMS, "local_entropy", right._replace(step=overshoot))
    verdicts = judged(THEOREMS, "algorithm1", descent.measure(SITE, "local_entropy"))
    moved = [verdicts[name] for name in ("gradient_step", "violation", "surplus")]
    assert set(moved) == {"FAILS"}


def test_readings_tell_what_is_printed_from_what_holds() -> None:
    found = readings.measure()
    verdicts = judged(READINGS, "readings", found)
    printed = {name for name, verdict in verdicts.items() if verdict == "not as printed"}
    assert printed == {
        "constant_as_printed",
        "ratio_spread",
        "gradient_of_slope",
        "hole_local_entropy",
        "step_from_ridge",
    }
    assert set(verdicts.values()) == {"not as printed", "holds"}


def test_growing_steps_do_not_converge() -> None:
    verdicts = judged(READINGS, "growing-steps", kernels.growing_steps(200))
    assert verdicts == {"growing": "not as printed", "decaying": "holds"}


def test_minibatches_bias_what_is_not_linear_in_f() -> None:
    found = minibatches.measure(TINY, seed=0)
    measured = [claim for claim in MINIBATCHES if claim.measure in found]
    assert len(measured) == len(MINIBATCHES) - 1  # the order in eps is told from two step sizes
    assert set(judged(measured, "minibatches", found).values()) == {
        "holds",
        "no: importance sampling's bias",
    }
    # With every data point alike there is nothing that a minibatch could change.
    alike = replace(TINY, inputs=(1.0, 1.0, 1.0), targets=(0.0, 0.0, 0.0))
    assert max(max(values) for values in minibatches.measure(alike, seed=0).values()) < 1e-12


@pytest.mark.parametrize("kernel", KERNELS)
def test_estimated_steps(kernel: str) -> None:
    setup = Estimation(samples=(10,), steps=3, repetitions=2, starts={"quadratic": ((2.0,),)})
    falls = kernels.measure(setup, "quadratic", kernel, seed=0)
    assert np.shape(falls["10"]) == (2, 3)
    assert falls == kernels.measure(setup, "quadratic", kernel, seed=0)


def test_quadratic_landscape_is_started_from_off_its_minimum() -> None:
    assert FUNCTIONS["quadratic"](np.array([[2.0]]))[0] > 1
