from typing import Any

import pandas as pd

from reproduce.theory import table
from reproduce.theory.claims import MINIBATCHES, READINGS, THEOREMS
from reproduce.theory.protocol import THEORY

ONCE: dict[str, list[dict[str, Any]]] = {
    "identities.quadratic": [{"gradient": [1e-13, 3e-13]}],
    "identities.double_well": [{"gradient": [2e-13]}],
    "minibatches": [{"importance": [0.9], "importance_error": [0.1]}],
    "estimated.quadratic.is": [{"10": [[1, 1], [1, 0]], "100": [[1, 1], [1, 1]]}],
    "estimated.double_well.is": [{"10": [[0, 0], [0, 0]], "100": [[1, 1], [1, 1]]}],
}


def _row(statement: str, measured: Any = None) -> table.StatementRow:
    rows = table.rows(ONCE if measured is None else measured)
    return next(row for row in rows if row.statement.startswith(statement))


def test_worst_number_of_all_landscapes_decides() -> None:
    row = _row("grad F_τ(x) = ")
    assert (row.measured, row.count, row.verdict) == (3e-13, 3, "holds")
    spoiled = ONCE | {"identities.plateau": [{"gradient": [1e-9]}]}
    assert _row("grad F_τ(x) = ", spoiled).verdict == "FAILS"


def test_missing_records_are_missing() -> None:
    rows = table.rows({})
    assert len(rows) == len([*THEOREMS, *READINGS, *MINIBATCHES])
    assert {row.verdict for row in rows} == {"missing"}
    assert table.markdown(rows, THEORY, [], is_full=False).count("| missing") == 2 * len(rows)


def test_shares_and_their_standard_errors() -> None:
    row = _row("IS, 10 samples")
    assert row.measured == (1 + 0.5 + 0 + 0) / 4
    assert row.verdict == "not monotone"
    assert "double_well 0.00, quadratic 0.75" in row.statement
    assert _row("IS, 100 samples").verdict == "monotone here"
    assert _row("the same of Algorithm 4").error == 0.1


def test_every_cell_of_the_markdown_is_one_cell() -> None:
    text = table.markdown(table.rows(ONCE), THEORY, ["a machine"], is_full=True)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {7}
    assert "NOT the full battery" not in text
    assert "Run with a machine." in text


def test_frame_keeps_every_digit() -> None:
    frame = table.frame(table.rows(ONCE))
    assert isinstance(frame, pd.DataFrame)
    assert 3e-13 in set(frame["measured"])
