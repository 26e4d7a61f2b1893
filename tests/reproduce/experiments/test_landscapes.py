import filecmp
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from reproduce.experiments import illustration
from reproduce.experiments.landscapes import FIGURES, LandscapeFigure
from reproduce.records import Store
from reproduce.runner import Fate, run_missing
from tests.reproduce._invocation import Lines

EXECUTION = {"threads": 0, "device": "cpu", "jit_compile": False}
COARSE = {name: replace(shown, points=41) for name, shown in FIGURES.items()}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("records"), warn=pytest.fail)
    assert not run_missing(illustration.jobs(COARSE, EXECUTION), store, {}, Lines())[Fate.FAILED]
    return store


def _result(store: Store, name: str) -> Mapping[str, Any]:
    return next(
        one for one in store.scan(LandscapeFigure.EXPERIMENT) if one.run.case == name
    ).result


@pytest.mark.parametrize("name", COARSE)
def test_values_are_the_oracles(store: Store, name: str) -> None:
    assert _result(store, name)["witness_error"] < 1e-11


def test_local_entropy_makes_the_wide_minimum_the_deepest(store: Store) -> None:
    result = _result(store, "figure1")
    before, after = (np.array(result["minima"][each]) for each in ("f", "local_entropy"))
    assert len(before) == len(after) == 3
    sharp, wide = before[0], after[0]
    assert np.linalg.norm(sharp[:2] - wide[:2]) > 1
    sharp_after = after[np.linalg.norm(after[:, :2] - sharp[:2], axis=1).argmin()]
    assert sharp_after[2] - sharp[2] > 1.5
    assert abs(wide[2] - before[1][2]) < 0.5


def test_heat_blurs_and_leaves_deep_minima_where_they_are(store: Store) -> None:
    result = _result(store, "figure2")
    before, after = (np.array(result["minima"][each]) for each in ("f", "heat"))
    assert len(before) > 40
    assert len(after) == 2
    for minimum in after:
        nearest = np.linalg.norm(before[:, :2] - minimum[:2], axis=1).min()
        assert nearest < 0.05
    assert np.linalg.norm(before[0, :2] - after[0, :2]) < 0.05


def test_figure_is_drawn_from_the_record_alone(store: Store, tmp_path: Path) -> None:
    name = "figure2"
    written = illustration.render(
        store.scan(LandscapeFigure.EXPERIMENT), name, COARSE[name], tmp_path
    )
    assert [path.name for path in written] == [f"{name}.{kind}" for kind in ("png", "pdf", "csv")]
    values = pd.read_csv(tmp_path / f"{name}.csv")
    assert (values.panel == "f").sum() == COARSE[name].points ** 2
    assert (values.panel == "cut of f").sum() == 4 * COARSE[name].points


def test_equal_records_are_equal_bytes(store: Store, tmp_path: Path) -> None:
    records = store.scan(LandscapeFigure.EXPERIMENT)
    first = illustration.render(records, "figure1", COARSE["figure1"], tmp_path / "one")
    with mpl.rc_context({"font.size": 20, "image.cmap": "jet", "savefig.dpi": 10}):
        second = illustration.render(records, "figure1", COARSE["figure1"], tmp_path / "two")
    assert all(filecmp.cmp(*pair, shallow=False) for pair in zip(first, second, strict=True))


def test_nothing_is_drawn_without_a_record(store: Store, tmp_path: Path) -> None:
    records = store.scan(LandscapeFigure.EXPERIMENT)
    assert illustration.recorded(records, "figure1", COARSE["figure1"])
    assert not illustration.recorded(records, "figure1", FIGURES["figure1"])
    assert illustration.render(records, "figure1", FIGURES["figure1"], tmp_path) == []


def test_refuses_an_unknown_regularization() -> None:
    with pytest.raises(ValueError, match="`regularization` must be one of local_entropy, heat"):
        LandscapeFigure("textured", "blur", 0.1, 2.0, 11, ((0.0, 0.0), (1.0, 1.0)))
