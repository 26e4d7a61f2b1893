from pathlib import Path

import pandas as pd
import pytest

from reproduce import paper, tables
from reproduce.protocols import QUICK_TABLE1, TABLE1, Comparison
from reproduce.records import Record
from reproduce.summary import Budget, summarise
from tests.reproduce._examples import record


def _markdown(comparison: Comparison, records: list[Record], seeds: tuple[int, ...]) -> str:
    rows = summarise(records, comparison, seeds)
    budget = Budget.of(comparison, TABLE1, QUICK_TABLE1)
    return tables.accuracy_markdown("Table 1", rows, paper.TABLE1, comparison, budget)


def _cells(markdown: str, line: int) -> list[str]:
    rows = [row for row in markdown.splitlines() if row.startswith("|")]
    return [cell.strip() for cell in rows[line].strip("|").split("|")]


def test_markdown_shows_paper_mean_deviation_and_difference() -> None:
    records = [
        record(TABLE1, "sgd", seed, {100: accuracy, 500: 0.9})
        for seed, accuracy in enumerate((0.6, 0.7))
    ]
    text = _markdown(TABLE1, records, (0, 1))
    assert _cells(text, 2) == ["SGD", "paper", "0.75", "0.80", "0.85", "0.87", "0.87"]
    assert _cells(text, 3)[1:3] == ["ours", "0.650 ± 0.071"]
    assert _cells(text, 4)[1:3] == ["difference", "-0.100"]
    assert _cells(text, 4)[-1] == "+0.030"
    assert "NOT the paper's" not in text
    assert "R8: initial weights: Glorot uniform" in text
    assert "2 threads on a processor" in text


def test_markdown_shows_missing_and_diverged() -> None:
    records = [
        record(TABLE1, "sgd", 0, {100: 0.6, 200: 0.7}, diverged_at=250),
        record(TABLE1, "sgd", 1, {100: 0.7, 200: 0.8, 300: 0.8}),
    ]
    text = _markdown(TABLE1, records, (0, 1, 2))
    assert _cells(text, 3)[2] == "0.650 ± 0.071 (1 missing)"
    assert _cells(text, 3)[4] == "0.800 (1 diverged, 1 missing)"
    assert _cells(text, 6)[2:] == ["(3 missing)"] * 5
    assert "SGD: 2 of 3 runs; missing: seed 2; diverged: seed 0 at update 250" in text
    assert "IS: 0 of 3 runs; missing: seed 0; missing: seed 1; missing: seed 2" in text


def test_markdown_of_another_budget_says_so() -> None:
    text = _markdown(QUICK_TABLE1, [], (0,))
    assert "**NOT the paper's budget: updates=100, samples=50 (is sgld sgld-linear)," in text


def test_markdown_names_the_reading_of_each_row() -> None:
    text = _markdown(TABLE1, [record(TABLE1, "sgld", 0, {100: 0.6})], (0,))
    assert (
        "R1: standard deviation of Algorithm 3's noise: eps_j (noise=linear; sgld-linear)" in text
    )
    assert "(persistent=true; sgld sgld-linear)" in text
    assert (
        "SGLD (as printed): noise in 6,010-6,210 of 159,010 dimensions, loop compiled by XLA"
        in text
    )


def test_frame_is_written_beside_the_markdown(tmp_path: Path) -> None:
    rows = summarise([record(TABLE1, "is", 0, {100: 0.3})], TABLE1, (0, 1))
    frame = tables.accuracy_frame(rows, paper.TABLE1, TABLE1, Budget())
    written = tables.write("text\n", frame, tmp_path / "new" / "table1")
    assert [path.name for path in written] == ["table1.md", "table1.csv"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["table1.csv", "table1.md"]
    read = pd.read_csv(written[1]).set_index(["method", "update"])
    assert read.loc[("is", 100), "difference"] == pytest.approx(0.03)
    assert read.loc[("is", 100), "missing_seeds"] == "1"
    assert read.loc[("sgd", 500), "paper"] == 0.87
    assert read["mean"].isna()["sgd", 500]
    assert read.loc[("sgld-linear", 100), "readings"] == (
        "noise=linear persistent=true initialization=glorot_uniform restart=true test_draw=per_seed"
        " activation=relu sampling=epochs pixels=unit"
    )


def test_published_row_of_a_variant_is_its_methods() -> None:
    assert tables.published_row("sgld-linear", paper.TABLE1)[500] == 0.88
    assert tables.published_row("unheard-of", paper.TABLE1) == {}
