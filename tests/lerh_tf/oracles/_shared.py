"""What the tests of the oracles share."""

from typing import Any

import numpy as np
import pytest

from lerh_tf.oracles import (
    Landscape,
)
from tests.scenarios import ONE_DIMENSIONAL, SCENARIOS, Scenario

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
each_scenario_in_1d = pytest.mark.parametrize("scenario", ONE_DIMENSIONAL, ids=str)


def landscape_of(scenario: Scenario) -> Landscape:
    return Landscape(scenario.f, scenario.tau)


def bimodal() -> Landscape:
    return Landscape(lambda v: 8 * (v[..., 0] ** 2 - 1) ** 2 + 0.2 * v[..., 0], tau=0.2)


def assert_close(actual: Any, desired: Any, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, desired, rtol=0, atol=atol)
