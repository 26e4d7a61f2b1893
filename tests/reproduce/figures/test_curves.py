from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from reproduce import paper
from reproduce.figures import curves, style
from reproduce.protocols import QUICK_TABLE1, TABLE1
from reproduce.summary import Budget, Panel, published_rows, summarise
from tests.reproduce._examples import record


def _panel() -> Panel:
    records = [
        record(TABLE1, "sgd", 0, {0: 0.1, 100: 0.6, 200: 0.7}),
        record(TABLE1, "sgd", 1, {0: 0.1, 100: 0.8}, diverged_at=150),
    ]
    return Panel("one", summarise(records, TABLE1, (0, 1)))


def test_draw_writes_both_kinds_and_the_plotted_values(tmp_path: Path) -> None:
    written = curves.draw("Figure 4", [_panel()], Budget(), tmp_path / "figure4")
    assert [path.name for path in written] == ["figure4.png", "figure4.pdf", "figure4.csv"]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written}
    values = pd.read_csv(tmp_path / "figure4.csv").set_index(["method", "update"])
    assert values.loc[("sgd", 100), "mean"] == pytest.approx(0.7)
    assert values.loc[("sgd", 100), "standard_deviation"] == pytest.approx(0.02**0.5)
    assert values.loc[("sgd", 200), "runs"] == 1


def test_draw_same_records_same_bytes_whatever_the_users_settings(tmp_path: Path) -> None:
    budget = Budget.of(QUICK_TABLE1, TABLE1, QUICK_TABLE1)
    first = curves.draw("Figure 4", [_panel()], budget, tmp_path / "one")
    with mpl.rc_context({"font.size": 20, "lines.markersize": 2, "savefig.dpi": 10}):
        second = curves.draw("Figure 4", [_panel()], budget, tmp_path / "two")
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_run_that_diverges_at_once_is_drawn_without_a_warning(tmp_path: Path) -> None:
    runs = [record(TABLE1, "sgd", 0, {0: 0.1}, diverged_at=2)]
    panel = Panel("one", summarise(runs, TABLE1, (0,)))
    assert curves.draw("Figure 4", [panel], Budget(), tmp_path / "figure4")[0].exists()


def test_line_colours_are_the_papers() -> None:
    red, blue, green, black = (
        to_rgb(style.line(name)["color"]) for name in ("sgd", "sgld", "hr", "is")
    )
    assert [max(range(3), key=colour.__getitem__) for colour in (red, green, blue)] == [0, 1, 2]
    assert black == (0, 0, 0)
    assert style.line("sgld-linear")["color"] == style.line("sgld")["color"]


def test_each_row_has_a_marker_and_dashes_of_its_own() -> None:
    looks = [style.line(row) for row in style.ROWS]
    for part in ("marker", "linestyle"):
        assert len({str(look[part]) for look in looks}) == len(style.ROWS)


def test_values_go_from_light_to_dark_with_a_marker_each() -> None:
    looks = [style.level(which, 7) for which in range(7)]
    lightness = [sum(to_rgb(look["color"])) for look in looks]
    assert lightness == sorted(lightness, reverse=True)
    assert len({look["marker"] for look in looks}) == 7
    # Light, but not so that it could be overlooked on white.
    assert lightness[0] < 2.0
    assert all(one["linestyle"] != other["linestyle"] for one, other in pairwise(looks))


def test_papers_rows_are_runs_of_their_own_as_far_as_ours_go() -> None:
    rows = published_rows(_panel().rows, paper.TABLE1)
    assert [row.title for row in rows] == ["SGD", "IS", "SGLD (the paper's row)", "HR"]
    assert rows[0].curves == {0: {100: 0.75, 200: 0.80}}
    assert all(not row.missing and not row.diverged for row in rows)
