from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from reproduce import paper
from reproduce.figures import curves, style
from reproduce.protocols import QUICK_TABLE1, TABLE1
from reproduce.summary import Budget, Panel, summarise
from tests.reproduce._examples import record


def _panel() -> Panel:
    records = [
        record(TABLE1, "sgd", 0, {0: 0.1, 100: 0.6, 200: 0.7}),
        record(TABLE1, "sgd", 1, {0: 0.1, 100: 0.8}, diverged_at=150),
    ]
    return Panel("one", summarise(records, TABLE1, (0, 1)), published=paper.TABLE1)


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


def test_line_colours_are_the_papers() -> None:
    red, blue, green, black = (
        to_rgb(style.line(name)["color"]) for name in ("sgd", "sgld", "hr", "is")
    )
    assert [max(range(3), key=colour.__getitem__) for colour in (red, green, blue)] == [0, 1, 2]
    assert black == (0, 0, 0)
    assert style.line("sgld-linear") == style.line("sgld") | {"linestyle": "--"}


def test_lines_of_one_row_differ_in_grey_and_dashes() -> None:
    for row in ("is", "sgld", "sgld-linear", "hr"):
        lines = [style.line(row, level, 3) for level in range(3)]
        lightness = [sum(to_rgb(line["color"])) for line in lines]
        assert lightness == sorted(lightness, reverse=True)
        assert len({str(line["linestyle"]) for line in lines}) == len(set(lightness)) == 3
        assert to_rgb(lines[-1]["color"]) == to_rgb(style.line(row)["color"])
