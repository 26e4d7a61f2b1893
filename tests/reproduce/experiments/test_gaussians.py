from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduce.experiments import illustration
from reproduce.experiments.gaussians import Approximation
from reproduce.records import Record, Store
from reproduce.runner import Fate, run_missing
from tests.reproduce._invocation import Lines

EXECUTION = {"threads": 0, "device": "cpu", "jit_compile": False}
COARSE = Approximation(points=61)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    store = Store(tmp_path_factory.mktemp("records"), warn=pytest.fail)
    assert not run_missing(illustration.jobs({"figure3": COARSE}, EXECUTION), store, {}, Lines())[
        Fate.FAILED
    ]
    return store.scan(Approximation.EXPERIMENT)


def test_q_is_the_mixture_and_the_means_are_its_mean_and_near_its_modes(
    records: list[Record],
) -> None:
    result, v = records[0].result, np.array(records[0].result["v"])
    b, x = COARSE.steepness, COARSE.x
    weights = np.exp([-b * x, b * x]) / (2 * np.cosh(b * x))
    parts = np.exp(-((v[:, None] - x - np.array([-b, b])) ** 2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(result["q"], parts @ weights, atol=1e-8)

    mean = result["mean_seeking"]["minimisers"]
    assert len(mean) == 1
    np.testing.assert_allclose(mean[0]["mean"], x + weights @ [-b, b], atol=1e-8)

    modes = [one["mean"] for one in result["mode_seeking"]["minimisers"]]
    np.testing.assert_allclose(modes, [x + b, x - b], atol=0.2)
    first, second = (one["divergence"] for one in result["mode_seeking"]["minimisers"])
    assert first < second < mean[0]["divergence"]
    for name in ("mean_seeking", "mode_seeking"):
        lowest = min(one["divergence"] for one in result[name]["minimisers"])
        assert min(result[name]["divergence"]) >= lowest - 1e-8


def test_figure_is_drawn_from_the_record_alone(records: list[Record], tmp_path: Path) -> None:
    written = illustration.render(records, "figure3", COARSE, tmp_path)
    assert [path.name for path in written] == ["figure3.png", "figure3.pdf", "figure3.csv"]
    values = pd.read_csv(written[2])
    assert (values.curve == "q").sum() == COARSE.points
    assert values.curve.str.startswith("minimiser mode_seeking").sum() == 2


def test_nothing_is_drawn_without_a_record(records: list[Record], tmp_path: Path) -> None:
    assert illustration.recorded(records, "figure3", COARSE)
    assert not illustration.recorded(records, "figure3", Approximation())
    assert illustration.render(records, "figure3", Approximation(), tmp_path) == []


def test_refuses_what_is_not_positive() -> None:
    with pytest.raises(ValueError, match="`steepness` must be positive and finite"):
        Approximation(steepness=0.0)
