"""docs/keras.md proves each of its rows by tests that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "keras.md").read_text(encoding="utf-8")
HEAD = "| feature | works? | proof |"


def rows() -> list[list[str]]:
    """The cells of every row but the heads of the tables."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    heads = [HEAD, "|---|---|---|"]
    return [row for line, row in zip(lines, rows, strict=True) if line not in heads]


def proofs(row: list[str]) -> list[str]:
    """The tests that a row names."""
    return re.findall(r"`([\w/]+\.py::[^`]+)`", row[-1])


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """Every test in the files that the page names, with parameters and without."""
    files = {proof.split("::")[0] for row in rows() for proof in proofs(row)}
    paths = [f"tests/lerh_tf/{name}" for name in sorted(files)]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run([*command, *paths], cwd=ROOT, check=True, capture_output=True, text=True)
    prefix = "tests/lerh_tf/"
    names = {n.removeprefix(prefix) for n in found.stdout.splitlines() if n.startswith(prefix)}
    return names | {re.sub(r"\[.*\]$", "", name) for name in names}


def test_every_row_has_three_cells_and_a_proof() -> None:
    assert len(rows()) > 60
    for row in rows():
        assert len(row) == 3, row
        assert all(row), row
        assert proofs(row), row
        # Nothing but tests stands where the proof does.
        assert re.sub(r"`[^`]+`", "", row[-1]).strip() == "", row


def test_no_feature_stands_twice() -> None:
    features = [row[0] for row in rows()]
    assert len(features) == len(set(features))


def test_every_test_named_exists(collected: set[str]) -> None:
    missing = [p for row in rows() for p in proofs(row) if p not in collected]
    assert missing == []
    assert "test_doors.py::test_of_nothing" not in collected


def test_every_message_quoted_is_one_that_a_test_or_the_library_has() -> None:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "lerh_tf").rglob("*.py"))
    # Messages are broken into lines in the source.
    source = re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))
    of_keras = {"recreate a new optimizer instance"}
    quoted = {message for row in rows() for message in re.findall(r'"([^"]+)"', row[1])}
    assert quoted
    assert [message for message in quoted - of_keras if message not in source] == []
