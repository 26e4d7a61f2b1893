import json
from typing import Any

import pytest

from reproduce.landscapes.functions import FUNCTIONS
from reproduce.protocols.settings import settings
from reproduce.theory.protocol import (
    QUICK_THEORY,
    THEORY,
    Estimation,
    Minibatches,
    Site,
    Theory,
)


@pytest.mark.parametrize("theory", [THEORY, QUICK_THEORY])
def test_names_known_functions_and_points_of_their_space(theory: Theory) -> None:
    for site in theory.sites:
        assert {len(start) for start in site.starts} == {FUNCTIONS[site.function].dimension}
    for function, starts in theory.estimation.starts.items():
        assert {len(start) for start in starts} == {FUNCTIONS[function].dimension}


@pytest.mark.parametrize("part", [THEORY.sites[0], THEORY.estimation, THEORY.minibatches])
def test_configuration_survives_json(part: Any) -> None:
    assert json.loads(json.dumps(settings(part))) == settings(part)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Site("quadratic", (0.0,), ((1.0,),), 1), "`taus` must be positive"),
        (lambda: Site("quadratic", (0.1,), ((1.0,),), 0), "`steps` must be a positive integer"),
        (lambda: Estimation(samples=(10, 10)), "`samples` must be one or more distinct"),
        (lambda: Minibatches(targets=(1.0,)), "`targets` must be one for each"),
        (lambda: Minibatches(batch_size=6), "`batch_size` must be smaller"),
        (lambda: Theory((THEORY.sites[0],) * 2), "`sites` must be one or more distinct"),
    ],
)
def test_refuses(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
