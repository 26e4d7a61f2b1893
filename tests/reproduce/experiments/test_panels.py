from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from reproduce.experiments import base, figure5, panels
from reproduce.experiments.panels import PanelFigure
from reproduce.experiments.variations import FIGURE6, FIGURE7, FIGURE8
from reproduce.figures import style
from reproduce.protocols import (
    TABLE1,
    Case,
    Comparison,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Panels,
    Training,
)
from reproduce.records import Record
from tests.reproduce._examples import record, stripes

EXECUTION = {"threads": 1, "device": "cpu", "jit_compile": False}
FIGURES = (figure5.FIGURE, FIGURE6, FIGURE7, FIGURE8)


def _keys(protocol: Panels) -> list[str]:
    return [job.run.key for job in base.jobs(protocol, (0,), "auto", stripes, EXECUTION)]


def test_jobs_are_seed_by_seed_each_once() -> None:
    jobs = base.jobs(FIGURE8.PROTOCOL, (3, 1), "auto", stripes, EXECUTION)
    # Four panels of three rows; the four of SGD are one run.
    assert [job.run.seed for job in jobs] == [3] * 9 + [1] * 9
    assert len({job.run.key for job in jobs}) == 18
    assert {job.run.experiment for job in jobs} == {base.RECORDS}


def test_equal_runs_of_several_figures_are_one_run() -> None:
    table1 = base.jobs(TABLE1, (0,), "auto", stripes, EXECUTION)
    row = {job.run.key: job.run.case for job in table1}

    def shared(experiment: PanelFigure) -> set[str]:
        return {row[key] for key in _keys(experiment.PROTOCOL) if key in row}

    assert shared(figure5.FIGURE) == set()
    assert shared(FIGURE6) == {"is", "sgld", "sgld-linear"}
    assert shared(FIGURE7) == set()
    assert shared(FIGURE8) == {"sgd", "sgld", "sgld-linear"}


@pytest.mark.parametrize(
    ("seeds", "others", "shown"), [((0, 1, 2), (1, 2, 3), (1, 2)), ((0,), (1,), (0, 1))]
)
def test_seeds_not_named_are_those_of_all_runs_if_there_are_any(
    seeds: tuple[int, ...], others: tuple[int, ...], shown: tuple[int, ...]
) -> None:
    records = [
        record(panel, name, seed, {0: 0.1, 6: 0.2})
        for panel in FIGURE7.QUICK.panels.values()
        for place, name in enumerate(panel.methods)
        for seed in (seeds if place == 0 else others)
    ]
    # One case without a record does not count.
    found = panels.summarised(records[:-3], FIGURE7.QUICK, None, "auto")
    assert {row.seeds for panel in found for row in panel.rows} == {shown}


def test_case_names_say_what_sets_a_run_apart() -> None:
    small = Training(network="small_dense", updates=7)
    after = Training(sgd_updates=40)
    assert Case(Training(updates=9), TABLE1.methods["sgld-linear"]).name == "sgld-linear"
    assert Case(small, LocalEntropyBySGLD(tau=0.003)).name == ("sgld-tau-0.003-network-small_dense")
    assert Case(after, HeatRegularizationByRobbinsMonro(steps=31, samples=31)).name == (
        "hr-steps-31-samples-31-sgd_updates-40"
    )


def test_every_case_of_the_figures_has_a_folder_of_its_own() -> None:
    cases = {case for experiment in FIGURES for case in experiment.PROTOCOL.cases()}
    cases |= set(TABLE1.cases().values())
    assert len({case.name for case in cases}) == len(cases)


TINY = Panels(
    {
        "left": Comparison(
            Training(updates=4, evaluate_every=2, tabulated=(2, 4)),
            {
                "S = 2": LocalEntropyByImportanceSampling(samples=2),
                "S = 3": LocalEntropyByImportanceSampling(samples=3),
            },
        ),
        "right": TABLE1.with_budget(updates=4).with_methods(("sgld",)),
    }
)
ITEM = PanelFigure("figure9", "Figure 9", TINY, FIGURE6.QUICK, ("A note.",))


def _records() -> list[Record]:
    left, right = TINY.panels.values()
    return [
        record(left, "S = 2", 0, {0: 0.1, 2: 0.5, 4: 0.7}),
        record(left, "S = 2", 1, {0: 0.1, 2: 0.3}, diverged_at=3),
        record(left, "S = 3", 0, {0: 0.1, 2: 0.6, 4: 0.8}),
        record(right, "sgld", 0, {0: 0.1, 4: 0.9}),
    ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures saved, kept."""
    kept: list[Figure] = []
    save = style.save

    def keep(figure: Figure, *where: Any) -> list[Path]:
        kept.append(figure)
        return save(figure, *where)

    monkeypatch.setattr(style, "save", keep)
    return kept


def _render(folder: Path, records: Sequence[Record]) -> tuple[str, dict[str, Path]]:
    text, written = ITEM.render(records, TINY, (0, 1), "auto", folder, folder / "figures")
    return text, {path.suffix: path for path in written}


def test_render_writes_what_the_records_say(tmp_path: Path) -> None:
    text, written = _render(tmp_path, _records())
    assert written[".md"].read_text(encoding="utf-8") == text
    assert set(written) == {".md", ".png", ".pdf", ".csv"}
    assert {path.stem for path in written.values()} == {"figure9"}
    values = pd.read_csv(written[".csv"]).set_index(["panel", "line", "update"])
    assert len(values) == 3 + 3 + 2
    assert values.loc[("left", "S = 2", 2), "mean"] == pytest.approx(0.4)
    assert values.loc[("left", "S = 2", 2), "standard_deviation"] == pytest.approx(0.02**0.5)
    assert values.loc[("left", "S = 2", 4), "mean"] == 0.7
    assert [values.loc[("left", "S = 2", update), "runs"] for update in (0, 2, 4)] == [2, 2, 1]
    assert [values.loc[("left", "S = 2", update), "diverged"] for update in (2, 4)] == [0, 1]
    assert values.loc[("right", "sgld", 4), "method"] == "sgld"


def test_render_shows_what_diverged_and_what_is_missing(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    text, _ = _render(tmp_path, _records())
    assert "left, S = 2: 2 of 2 runs; diverged: seed 1 at update 3" in text
    assert "right, SGLD (as printed): 1 of 2 runs; missing: seed 1" in text
    left, right = drawn[0].axes
    crosses = [
        np.asarray(line.get_xydata()).tolist() for line in left.lines if line.get_marker() == "x"
    ]
    assert crosses == [[[2.0, 0.3]]]
    assert [axes.texts[0].get_text() for axes in (left, right)] == [
        "S = 2: 1 of 2 diverged\nS = 3: 1 of 2 missing",
        "SGLD (as printed): 1 of 2 missing",
    ]


def test_one_legend_names_what_looks_alike_in_all_panels(
    drawn: list[Figure], tmp_path: Path
) -> None:
    _render(tmp_path, _records())
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "S = 2",
        "S = 3",
        "SGLD (as printed)",
    ]
    left, right = drawn[0].axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("held-out accuracy", "")
    records = [
        record(panel, name, 0, {0: 0.1, 6: 0.2})
        for panel in FIGURE7.QUICK.panels.values()
        for name in panel.methods
    ]
    FIGURE7.render(records, FIGURE7.QUICK, None, "auto", tmp_path, tmp_path)
    looks: dict[str, set[str]] = {}
    for axes in drawn[1].axes:
        for line in axes.lines:
            look = f"{line.get_color()} {line.get_marker()} {line.get_linestyle()}"
            looks.setdefault(str(line.get_label()), set()).add(look)
    assert list(looks) == [f"τ = {tau:g}" for tau in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1)]
    assert all(len(look) == 1 for look in looks.values())


def test_render_of_another_budget_says_so(tmp_path: Path, drawn: list[Figure]) -> None:
    other = PanelFigure("figure9", "Figure 9", FIGURE6.PROTOCOL, FIGURE6.QUICK, ())
    records = [
        record(comparison, "S = 2", 0, {0: 0.1, 6: 0.2})
        for comparison in (FIGURE6.QUICK.panels["IS"],)
    ]
    text, written = other.render(records, FIGURE6.QUICK, (0,), "auto", tmp_path, tmp_path)
    assert {path.stem for path in written} == {"figure9-quick"}
    warning = "NOT the paper's budget: updates=6, test_images=100, evaluate_every=2"
    assert f"**{warning}" in text
    assert warning in str(drawn[0].get_suptitle()).replace("\n", " ")


def test_render_without_records_draws_no_figure(tmp_path: Path) -> None:
    text, written = _render(tmp_path, [])
    assert set(written) == {".md"}
    assert "missing" in text
    assert not base.recorded([], TINY)
    assert base.recorded(_records(), TINY)
    assert not base.recorded(_records(), TINY, subspace=False)


def test_panels_differ_in_each_field_once() -> None:
    assert FIGURE7.PROTOCOL.differences(FIGURE7.PROTOCOL) == []
    names = [str(one) for one in FIGURE7.QUICK.differences(FIGURE7.PROTOCOL)]
    assert names == ["updates=6", "test_images=100", "evaluate_every=2", "samples=4"]


@pytest.mark.parametrize("experiment", FIGURES, ids=lambda one: one.NAME)
def test_readings_of_every_panel_are_said(tmp_path: Path, experiment: Any) -> None:
    text, _ = experiment.render([], experiment.PROTOCOL, (0,), "auto", tmp_path, tmp_path)
    assert "NOT the paper's" not in text
    for number in ("R1", "R6", "R8", "R9", "R10"):
        assert f"Reading {number}: " in text
    assert "noise=linear; sgld-linear" in text
    assert "noise=langevin; sgld)" in text
