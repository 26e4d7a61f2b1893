"""Rows, tables and figures from made-up measurements."""

import re
from pathlib import Path

import pytest

from benchmarks.peers import figure, table
from benchmarks.peers.curves import AXES, Point, curve_systems, predicted_seconds
from benchmarks.peers.rows import curve_frame, fastest_peers, race_frame, rows
from benchmarks.peers.work import PAPER
from tests.benchmarks.peers._measured import left_out, point, raced, some_rows

CAPTION = "2 threads each; a machine; today"


def test_ratio_is_to_the_subspace_in_the_same_race() -> None:
    ratios = {row.system: row.ratio for row in some_rows()}
    assert ratios["sgld-torch"] == pytest.approx(2.5 / 0.2)
    assert ratios["sgld-subspace"] == 1.0
    assert ratios["hr-jax"] is None
    assert ratios["sgd-keras"] is None


def test_floor_is_the_median_of_noise_and_products_together() -> None:
    floors = [{"noise": 0.04, "products": 0.01}, {"noise": 0.06, "products": 0.02}]
    (row,) = rows({"is": {"is-subspace": raced(0.13) | {"floors": floors}}}, {"is": "J"}, {})
    assert row.floor == pytest.approx(0.065)
    assert race_frame([row])["floor_seconds"].item() == pytest.approx(0.065)
    text = table.race_markdown([row], CAPTION)
    assert "0.0500 s for the noise, 0.0150 s for the products" in text
    assert "lerh_tf takes 2.0 x that" in text


def test_sgd_of_all_races_is_pooled() -> None:
    (sgd,) = [row for row in some_rows() if row.algorithm == "sgd"]
    assert sorted(sgd.seconds) == [0.002, 0.004, 0.006, 0.008]


def test_fastest_peer_is_not_this_library_nor_sgd() -> None:
    assert fastest_peers(some_rows()) == {"sgld": "sgld-torch", "hr": "hr-jax"}


def test_quartiles_hold_the_median() -> None:
    for row in some_rows():
        lower, upper = row.quartiles
        assert lower <= row.median <= upper


def test_race_frame_is_unrounded() -> None:
    frame = race_frame(some_rows(sgld_torch={"agrees": True, "z": 2.5, "error": 1e-7}))
    line = frame.set_index("system").loc["sgld-torch"]
    assert line["median_seconds"] == 2.5
    assert line["agrees"]
    assert line["versions"] == "numpy=2.4.6"
    assert frame.set_index("system")["agrees"].isna()["sgld-plain"]


def test_race_table_names_the_paper_and_the_disagreement() -> None:
    found = some_rows(
        sgld_torch={"agrees": False, "z": 25.0, "error": 1e-7},
        sgld_blackjax={"agrees": True, "z": 2.0, "error": 3e-7},
    )
    text = table.race_markdown(found, CAPTION)
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if "|" in line}
    assert "**NO** (z 25.0, 1e-07)" in lines["PyTorch, hand-written"]
    assert "yes (z 2.0, 3e-07)" in lines["BlackJAX sgld"]
    assert "12.5" in lines["PyTorch, hand-written"]
    assert "not checked" in lines["lerh_tf"]
    assert re.findall(r"paper, Table 2 *\| ([\d.]+)", text) == ["7.0599", "3.3053", "0.0032"]
    assert f"- {CAPTION}." in text
    assert text.index("PyTorch") < text.index("subspace=False")  # by their medians


def test_curves_table_marks_what_is_less_or_missing() -> None:
    points = [
        point("is-subspace", "samples", 10),
        point("is-subspace", "samples", 100, counts_first=True, seconds=[45.0]),
        point("is-plain", "samples", 10),
        left_out("is-plain", "samples", 100),
    ]
    text = table.curves_markdown(points, CAPTION)
    assert "45 s*, 600" in text
    assert "0.111 s, 600" in text
    assert (
        "- Left out: IS: lerh_tf, subspace=False at samples per update 100: it would take too long"
        in text
    )
    frame = curve_frame(points)
    assert list(frame["updates"]) == [2, 1, 2, 0]


def test_figures_are_written_whole(tmp_path: Path) -> None:
    stem = tmp_path / "figures" / "peers"
    race = figure.draw_race(some_rows(), CAPTION, stem)
    points = [point(s, a, v) for s in ("is-subspace", "is-plain") for a in AXES for v in (10, 20)]
    points.append(left_out("is-plain", "hidden", 100))
    curves = figure.draw_curves(points, CAPTION, tmp_path / "figures" / "peers-curves")
    assert [path.name for path in race] == ["peers.png", "peers.pdf"]
    assert sorted(path.name for path in stem.parent.iterdir()) == sorted(
        path.name for path in [*race, *curves]
    )
    assert all(path.stat().st_size > 5000 for path in [*race, *curves])


def test_points_vary_one_thing() -> None:
    samples, batch = Point("is-plain", "samples", 100), Point("is-plain", "batch", 64)
    assert (samples.batch, samples.hidden, samples.work(PAPER["is"]).samples) == (20, 200, 100)
    assert (batch.batch, batch.hidden, batch.work(PAPER["is"])) == (64, 200, PAPER["is"])
    assert Point("is-plain", "hidden", 50).hidden == 50
    assert (samples.threads(2), Point("is-plain", "threads", 1).threads(2)) == (2, 1)
    heat = Point("hr-plain", "samples", 1000).work(PAPER["hr"])
    assert (heat.samples, heat.steps) == (31, 31)


def test_prediction_grows_in_proportion() -> None:
    assert predicted_seconds({"value": 10, "seconds": [1.0, 2.0, 3.0]}, 100) == 20.0


def test_curves_are_of_this_library_and_of_the_fastest_peers() -> None:
    systems = curve_systems({"is": "is-torch"})
    assert systems[-1] == "is-torch"
    assert len(systems) == 7
