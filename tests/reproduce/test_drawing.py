"""What is drawn from which records: one's own, or else the reference run's, never both."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from reproduce import cli, drawing, tidy, verification
from reproduce.cli import commands
from reproduce.drawing import OWN, REFERENCE, Exhibit, RecordSource
from reproduce.experiments import section61
from reproduce.protocols import QUICK_TABLE1, TABLE1
from reproduce.records import Store
from tests.reproduce._examples import record

ROOT = Path(__file__).parents[2]

# Writing pictures takes most of the time, and their bytes may change with matplotlib's version.
FRESH = """
import sys
from matplotlib.figure import Figure
from reproduce import cli
Figure.savefig = lambda figure, stream, **options: None
output, figures = f"{sys.argv[1]}/docs/results", f"{sys.argv[1]}/figures"
code = cli.main(["report", "--output", output, "--figures-dir", figures])
sys.exit("TensorFlow" if "tensorflow" in sys.modules else code)
"""


def test_without_records_all_is_drawn_as_committed_and_no_tensorflow_loaded(
    tmp_path: Path,
) -> None:
    # `make map` draws this one, which the report shows where it is.
    (tmp_path / "figures").mkdir()
    shutil.copy(ROOT / "figures" / "map.png", tmp_path / "figures")
    command = [sys.executable, "-c", FRESH, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "statements were put to a test" in done.stdout
    for folder, pattern, drawn in (
        ("docs/results", "*.md", tmp_path / "docs" / "results"),
        # Those at a small budget, left by QUICK=1, have a hyphen.
        ("figures", "figure[1-8].csv", tmp_path / "figures"),
        ("figures", "exact.csv", tmp_path / "figures"),
    ):
        committed = sorted((ROOT / folder).glob(pattern))
        assert committed
        for path in committed:
            assert (drawn / path.name).read_bytes() == path.read_bytes(), path.name
    pictures = {path.name for path in (ROOT / "figures").glob("figure[1-8].p*")}
    assert pictures <= {path.name for path in (tmp_path / "figures").iterdir()}
    assert {line.partition(" from ")[2] for line in done.stderr.splitlines()} == {REFERENCE, ""}
    listing = (tmp_path / "docs" / "results" / "figures.md").read_text()
    names = [item.name for item in drawing.ITEMS]
    assert all(f"| {name} " in listing for name in names)
    assert OWN not in listing


def _flat(accuracy: float) -> dict[int, float]:
    return dict.fromkeys(TABLE1.training.evaluations, accuracy)


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small reference run: of Table 1 two methods, of Section 6.1 one; pictures are empty."""
    monkeypatch.setattr(Figure, "savefig", lambda *arguments, **options: None)
    monkeypatch.setattr(verification, "REFERENCE", tmp_path / "reference")
    made = [record(TABLE1, method, 1, _flat(0.2)) for method in ("sgd", "is")]
    network = next(iter(section61.PROTOCOL.panels.values()))
    made.append(record(network, next(iter(network.methods)), 1, {0: 0.1, 3000: 0.3}))
    tidy.write(tmp_path / "reference", made)
    return tmp_path / "reference"


def test_own_records_go_first_and_are_mixed_with_no_others(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Store(tmp_path / "own", warn=pytest.fail)
    own.save(record(TABLE1, "sgd", 0, _flat(0.9)))
    own.save(record(QUICK_TABLE1, "sgd", 0, {0: 0.1, 100: 0.8}))
    assert cli.main(["report", "--output", str(own.folder)]) == 0
    table = (own.folder / "table1.md").read_text()
    assert "0.900" in table
    assert "0.200" not in table
    assert "over seeds 0;" in table
    assert "missing" in table
    assert "0.300" in (own.folder / "section61.md").read_text()
    said = capsys.readouterr().err
    for name, source in (
        ("table1.md", OWN),
        ("table1-quick.md", OWN),
        ("figures/figure4.png", OWN),
        ("section61.md", REFERENCE),
        ("report.md", f"{OWN} and {REFERENCE}"),
    ):
        assert f"wrote {own.folder / name} from {source}\n" in said
    listing = (own.folder / "figures.md").read_text().splitlines()
    shown = [[cell.strip() for cell in line.split("|")[1:3]] for line in listing if "`" in line][1:]
    assert ["table1", OWN] in shown
    assert ["section61", REFERENCE] in shown
    assert not (reference / "table1.md").exists()


def test_claims_are_judged_by_the_reference_where_there_are_no_records(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "--output", str(tmp_path / "own")]) == 0
    shown = capsys.readouterr()
    assert "are pending" in shown.out
    assert f"wrote {tmp_path / 'own' / 'report.html'} from {REFERENCE}\n" in shown.err
    assert f"1 seeds that were looked at before of 20 planned, from {REFERENCE}" in (
        tmp_path / "own" / "report.md"
    ).read_text(encoding="utf-8")


def test_nothing_to_draw_is_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verification, "REFERENCE", tmp_path / "not installed")
    assert cli.main(["figures", "--output", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"nothing to draw: no records in {tmp_path}; `reproduce all` makes all of them" in said


def test_what_is_made_is_shown_without_the_reference(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Store(tmp_path / "own", warn=pytest.fail)
    own.save(record(QUICK_TABLE1, "sgd", 0, {0: 0.1, 100: 0.8}))
    monkeypatch.setattr(commands, "make", lambda *arguments: 0)
    assert cli.main(["all", "--quick", "--output", str(own.folder)]) == 0
    assert (own.folder / "table1-quick.md").exists()
    assert not (own.folder / "section61.md").exists()


def _item(name: str, own: str, reference: str) -> Exhibit:
    runs = {OWN: frozenset(own), REFERENCE: frozenset(reference)}
    return Exhibit(name, lambda source: runs[source.name], lambda source, output, figures: [output])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("a", "abc"), ("", "cde"), {"first": OWN, "second": REFERENCE}),
        (("abc", "abc"), ("c", "cde"), {"first": OWN, "second": REFERENCE}),
        (("abc", "abc"), ("cd", "cde"), {"first": OWN, "second": OWN}),
        (("c", "abc"), ("cde", "cde"), {"first": REFERENCE, "second": OWN}),
        (("abc", ""), ("c", ""), {"first": OWN, "second": OWN}),
        (("c", "abc"), ("c", "cde"), {"first": OWN, "second": OWN}),
        (("", ""), ("", "c"), {"second": REFERENCE}),
    ],
)
def test_runs_that_another_item_made_are_no_reason_to_leave_the_reference(
    first: tuple[str, str], second: tuple[str, str], expected: dict[str, str], tmp_path: Path
) -> None:
    among = [RecordSource(name, Store(tmp_path, pytest.fail)) for name in (OWN, REFERENCE)]
    items = [_item("first", *first), _item("second", *second)]
    drawn = drawing.draw(items, among, tmp_path, tmp_path)
    assert {one.name: one.source for one in drawn} == expected
