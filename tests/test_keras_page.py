"""docs/keras.md is what the tests' marks give."""

import re
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.keras_page import GROUPS, IN_SHORT, MATRIX, PAGE, ROOT, page_of, rows_of, summary_of

WRITTEN = PAGE.read_text(encoding="utf-8")


def test_page_is_what_the_marks_give() -> None:
    command = [sys.executable, "-m", "tests.keras_page"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert printed == WRITTEN
    assert sum(line.startswith("| ") for line in printed.splitlines()) > 80 + len(GROUPS)


def test_no_feature_stands_twice() -> None:
    _, matrix = WRITTEN.split(MATRIX)
    lines = [line for line in matrix.splitlines() if line.startswith("| ")]
    features = [feature for line in lines if (feature := line.split(" | ")[0]) != "| feature"]
    assert len(features) == len(set(features))
    # No cell holds the sign that ends one.
    assert all(line.count("|") == 3 for line in lines)


def test_every_message_quoted_is_one_that_the_library_has() -> None:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "lerh_tf").rglob("*.py"))
    # Messages are broken into lines in the source.
    source = re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))
    of_others = {"recreate a new optimizer instance", "has no setter"}
    quoted = set(re.findall(r'"([^"]+)"', WRITTEN))
    assert of_others < quoted
    assert [message for message in quoted - of_others if message not in source] == []


def marked(name: str, *marks: pytest.MarkDecorator) -> SimpleNamespace:
    """What the page asks of a test."""

    def iter_markers(name: str) -> Iterator[pytest.Mark]:
        return (mark.mark for mark in marks if mark.name == name)

    return SimpleNamespace(name=name, iter_markers=iter_markers)


YES = pytest.mark.feature("models", "`add_loss`", "yes")
ALSO = pytest.mark.feature("models", "`add_loss`")
CASE = pytest.mark.feature("models", "`Embedding`", "yes", cases=["embedded"])
OTHER = pytest.mark.feature("memory", "many fits", "levels off")


def test_rows_are_those_of_the_marks() -> None:
    tests = [
        marked("test_a", OTHER, YES),
        marked("test_b[embedded]", CASE, ALSO),
        marked("test_b[other]", CASE, ALSO),
        marked("test_c"),
    ]
    rows = rows_of(tests)
    assert rows == {
        ("memory", "many fits"): "levels off",
        ("models", "`add_loss`"): "yes",
        ("models", "`Embedding`"): "yes",
    }
    page = page_of(rows)
    head = "\n| feature | works? |\n|---|---|\n"
    assert f"\n## Memory\n{head}| many fits | levels off |\n\n## Keras's own tests\n{head}" in page
    assert "| `add_loss` | yes |\n| `Embedding` | yes |\n\n## Ways to train" in page
    # The order of the tests does not matter; a row that is gone or altered does.
    assert page_of(rows_of(tests[::-1])) == page
    assert page_of(rows_of([*tests[1:], marked("test_a", YES)])) != page
    altered = pytest.mark.feature("memory", "many fits", "grows")
    assert page_of(rows_of([*tests[1:], marked("test_a", altered, YES)])) != page


def test_first_screen_counts_what_the_matrix_has() -> None:
    rows = {
        ("models", "a"): "yes",
        ("models", "b"): 'refused: "do c"',
        ("memory", "d"): "levels off",
    }
    summary = summary_of(rows)
    assert f"| [Models](#models) | {IN_SHORT['models']} | 2 | 1 |\n" in summary
    assert f"| [Memory](#memory) | {IN_SHORT['memory']} | 1 |  |\n" in summary
    assert summary.count("\n") == 2 + len(GROUPS)
    assert IN_SHORT.keys() == GROUPS.keys()
    assert WRITTEN.index("| in short |") < 500


NO = pytest.mark.feature("models", "`add_loss`", "no")


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (marked("test_a", ALSO), r"`works` must be given once. Received: `add_loss`: \[\]$"),
        (marked("test_a", YES, NO), r"`works` .* Received: `add_loss`: \['no', 'yes'\]$"),
        (marked("test_a[other]", CASE), r"`cases` must be .*: cases=\['embedded'\]$"),
        (marked("test_a", pytest.mark.feature("else", "a", "yes")), r"`group` .*: group='else'$"),
    ],
)
def test_marks_are_checked(test: SimpleNamespace, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of([test])
