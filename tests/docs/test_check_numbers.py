"""The check of the numbers finds what cannot be traced, and the true pages pass it."""

from pathlib import Path

import pytest

from docs import check_numbers
from docs.check_numbers import ROOT, TABLE1, compared, faults, table1
from docs.pages import Page
from docs.records import VALUE, Record
from docs.traced import TRACED, Source

RACE = "docs/measured/race.md"
SITE = {
    "Makefile": "help:\n\nrace: venv ## Race.\n",
    "README.md": "# Title\n",
    "docs/records.md": """# Records

| record | by |
|---|---|
| [race](measured/race.md) | `make race` |
| [report](results/report.md), [Table 1](results/table1.md) | `make race` |
""",
    RACE: """# Race

| system | update | s |
|---|---|---|
| ours | first | 9.5 |
| | later | 0.123 |
| other | later | 0.456 |
| more | later | 7 |
""",
    TABLE1: "# Table 1\n",
    "docs/speed.md": """# Speed

By `make race`, [tables](measured/race.md).

## Ratio

The other takes 3.71
times as long.

| system | s |
|---|---|
| other | 0.456 |
| more | 7 |
""",
    "docs/results/report.md": "# Report\n\n## 1. speed\n\nRecords: `make race`.\n",
}


def ratio(record: Record) -> list[float]:
    other, ours = (record.number(name, "later", column="s") for name in ("other", "ours"))
    return [other / ours]


SOURCES = {"docs/speed.md": {"3.71 times": Source(RACE, ratio)}}


def found(folder: Path, name: str = "", old: str = "", new: str = "") -> list[str]:
    """The faults of the small site, one file changed."""
    for path, text in SITE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        assert path != name or old in text
        (folder / path).write_text(text.replace(old, new) if path == name else text)
    return list(faults(folder, SOURCES))


def test_true_pages_have_no_fault() -> None:
    assert list(faults(ROOT)) == []
    readme = Page("README.md", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert readme.block


def test_small_site_has_none(tmp_path: Path) -> None:
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        (RACE, "0.456", "0.5", "docs/speed.md: '3.71 times': 3.71 is 4.06504 by " + RACE),
        (RACE, "other", "others", f"docs/speed.md: '3.71 times': {RACE}: LookupError"),
        ("docs/speed.md", "3.71\n", "3.72\n", "docs/speed.md:7: 3.72 is not traced"),
        ("docs/speed.md", "3.71\n", "3.72\n", "docs/speed.md: '3.71 times': is not on the page"),
        ("docs/speed.md", "long.", "long, 5 s.", "docs/speed.md:8: 5 is not traced"),
        ("docs/speed.md", "By `make race`, ", "", "the section names no command that makes"),
        ("docs/speed.md", "`make race`", "`make rush`", "docs/speed.md: there is no command"),
        ("docs/speed.md", "`make race`", "`python -m docs.rush`", "there is no command"),
        ("docs/speed.md", "[tables](measured/race.md)", "", "the section does not name"),
        ("docs/speed.md", "race.md", "rush.md", "there is no record docs/measured/rush.md"),
        ("docs/speed.md", "| 0.456", "| 0.123", "docs/speed.md:12: no record that the section"),
        ("docs/speed.md", "The other", "Two times half, the other", "'half' hides a number"),
        ("docs/speed.md", "| 7", "| 8", "docs/speed.md:13: no record that the section"),
        ("docs/records.md", "`make race`", "", f"{RACE}: stands in no page's table"),
        ("docs/results/report.md", "Records: `make race`.", "", "report.md:3: the topic names no"),
        ("README.md", "Title", "An accuracy of 0.9", "README.md:1: 0.9 is not traced"),
    ],
)
def test_faults_are_found(tmp_path: Path, name: str, old: str, new: str, fault: str) -> None:
    assert any(fault in one for one in found(tmp_path, name, old, new)), fault


def test_missing_record_is_found(tmp_path: Path) -> None:
    found(tmp_path)
    (tmp_path / RACE).unlink()
    assert f"docs/speed.md: there is no record {RACE}" in list(faults(tmp_path, SOURCES))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.063 to 0.093 s, 3 to 5 %, 18.5, 14.4 and 11 times, 5 seeds", 8),
        ("0.855 ± 0.016", 2),
        ("1.5 x that, 4 MB, ten-fold or 10-fold", 3),
        ("Its accuracy is, at the\nend, 0.9. Here 0.8 is not.", 1),
        ("tau = 0.01, J = 1000, 784-200-10, 20 rows, 512 x 512, TensorFlow 2.21.0", 0),
        ("`0.3 s` and $0.3$ s, J + 1 times, R2, x^5 s\n\n```\n3 s\n```", 0),
        ("1. [accuracy](x-0.9.md), <!-- 5 s --> Section 6.1's accuracy", 0),
    ],
)
def test_what_is_measured(text: str, numbers: int) -> None:
    assert len(list(Page("docs/x.md", f"# X\n\n{text}\n").measured())) == numbers


@pytest.mark.parametrize("page", TRACED)
def test_each_number_is_held_to_its_last_digit(page: str) -> None:
    for piece, source in TRACED[page].items():
        assert list(compared(piece, source, ROOT)) == []
        for number in VALUE.finditer(piece):
            other = f"{int(number[0][-1]) ^ 2}"
            changed = piece[: number.end() - 1] + other + piece[number.end() :]
            assert list(compared(changed, source, ROOT)), changed


def test_table1_of_the_readme_is_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(tmp_path)
    fault = f"README.md: Table 1 is not that of {TABLE1}: --write makes it so"
    record, readme = tmp_path / TABLE1, tmp_path / "README.md"
    text = (ROOT / TABLE1).read_text(encoding="utf-8")
    record.write_text(text, encoding="utf-8")
    readme.write_text("<!-- Table 1: --write -->\n<!-- end -->\n")
    assert fault in list(faults(tmp_path, SOURCES))
    monkeypatch.setattr(check_numbers, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["check_numbers", "--write"])
    assert check_numbers.main() == 1
    assert "--write makes it so" not in capsys.readouterr().out
    written = readme.read_text(encoding="utf-8")
    accuracy = Record(ROOT / TABLE1).chosen("SGD", "ours")[0].cells["500"]
    assert written.count(accuracy) == 1
    readme.write_text(written.replace(accuracy, "0.9 ± 0.1"), encoding="utf-8")
    assert fault in list(faults(tmp_path, SOURCES))
    # Other seeds in the record.
    readme.write_text(written, encoding="utf-8")
    (seeds,) = Record(record).notes("- Ours: mean ± sample standard deviation over seeds ")
    fresh = " ".join(map(str, range(5, 25)))
    record.write_text(text.replace(seeds.partition(";")[0], fresh), encoding="utf-8")
    assert fault in list(faults(tmp_path, SOURCES))
    assert "20 seeds, by\n`make table1 SEEDS=\"$(seq -s ' ' 5 24)\"`" in table1(Record(record))
