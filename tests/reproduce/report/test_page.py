"""The page from a few records: what it says, and that it needs nothing beside it."""

import re
from pathlib import Path

import pandas as pd
import pytest

from reproduce import paper, report
from reproduce.claims import CLAIMS
from reproduce.claims.parts import Fact, Part, Prediction
from reproduce.experiments import exact, table2
from reproduce.protocols import TABLE1
from reproduce.records import Record, Store
from reproduce.report.view import PENDING, part_view
from tests.reproduce._examples import ENVIRONMENT, record, stripes

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000000000500010d0a2db40000000049454e44ae426082"
)
EXECUTION = {"threads": 1, "device": "cpu", "jit_compile": False}


def _curve(row: str, shift: float) -> dict[int, float]:
    values = paper.TABLE1[row]
    return {
        update: 0.1 if not update else values.get(update, values[500]) + shift
        for update in TABLE1.training.evaluations
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of 20 fresh seeds of SGD and 2 earlier ones of IS."""
    folder = tmp_path_factory.mktemp("report")
    store = Store(folder, warn=pytest.fail)
    for seed in range(5, 25):
        evaluated = len(TABLE1.training.evaluations)
        held_out = {"held_out": {"all": [0.8] * evaluated, "per_evaluation": [0.79] * evaluated}}
        curve = _curve("sgd", (seed % 5 - 2) / 100)
        store.save(record(TABLE1, "sgd", seed, curve, timings=held_out))
    for seed in (0, 1):
        store.save(record(TABLE1, "is", seed, _curve("is", 0.2 + seed / 100)))
    for job in table2.jobs(table2.PROTOCOL, stripes, EXECUTION):
        if job.run.case == "sgd.subspace":
            timed = {"updates": 101, "first_update_seconds": 1.0, "median_update_seconds": 0.002}
            store.save(Record(job.run, ENVIRONMENT, {"status": "completed"}, timed))
    (folder / "figures").mkdir()
    (folder / "figures" / "figure4.png").write_bytes(PIXEL)
    text, used, files = report.render({"here": store}, folder, folder / "figures")
    assert used == ["here"]
    assert [path.name for path in files] == ["report.html", "report.md", "report.csv"]
    assert text.startswith(f"{len(CLAIMS)} statements were put to a test:")
    return folder


def test_html_needs_nothing_beside_it_and_all_its_links_resolve(written: Path) -> None:
    page = (written / "report.html").read_text(encoding="utf-8")
    assert "<code>make exact</code>" in page
    assert "&lt;" not in page
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    targets = set(re.findall(r'id="([^"]+)"', page))
    assert [one for one in sources if one.startswith("data:image/png;base64,")]
    links = [one for one in sources if not one.startswith("data:")]
    assert all(one.startswith("#") and one[1:] in targets for one in links)
    assert "http" not in page
    assert "<script" not in page
    assert "{{" not in page
    assert "{%" not in page


def test_every_claim_is_on_both_pages_with_its_rule(written: Path) -> None:
    html = (written / "report.html").read_text(encoding="utf-8")
    text = (written / "report.md").read_text(encoding="utf-8")
    for claim in CLAIMS:
        assert f'id="{claim.key}"' in html
        assert claim.statement in text
        assert all(word in text for word in claim.words)


def test_verdict_is_pending_until_the_fresh_seeds_are_there(written: Path) -> None:
    lines = (written / "report.md").read_text(encoding="utf-8").splitlines()
    shown = {
        line.removeprefix("### "): lines[at + 2]
        for at, line in enumerate(lines)
        if line.startswith("### ")
    }
    rows = {title: said for title, said in shown.items() if title.startswith("Table 1, row")}
    (sgd,) = [said for title, said in rows.items() if "row SGD:" in title]
    assert sgd.startswith("**not contradicted**. Table 1. 20 fresh seeds of 20 planned, from here.")
    (own,) = [said for title, said in rows.items() if "row IS:" in title]
    assert own.startswith(
        f"**{PENDING}** (so far: uninformative). Table 1. 2 seeds that were looked"
    )
    (none,) = [said for title, said in rows.items() if "row HR:" in title]
    assert none.startswith(f"**{PENDING}** (so far: not measured yet). Table 1. no records.")
    (rate,) = [said for title, said in shown.items() if "nearly constant" in title]
    assert "its own numbers break this rule" in rate


def test_markdown_embeds_the_figures_there_are_and_the_readings_not_run(written: Path) -> None:
    text = (written / "report.md").read_text(encoding="utf-8")
    assert "![figure4](figures/figure4.png)" in text
    assert "figure5.png" not in text
    screened, confirmed = text.split("### ")[-2:]
    accurate = text.split("## Beyond the paper: the algorithms")[1].split("## ")[0]
    assert accurate.endswith("From here.\n\nNot run yet.\n\n")
    assert "| Table 1's | sgd | not run |" in screened
    assert "| Table 1's | is | 2 |" in screened
    assert "| Table 1's | sgd | 20 |" in confirmed
    assert "| Table 1's | is | not run |" in confirmed
    assert "| R13 tanh" not in text
    assert re.search("^Not run yet: .*; R13 tanh; ", text, re.MULTILINE)
    assert f"| SGD | 20 | all 10,000 |{' 0.800 ± 0.000 |' * 5}" in text
    assert f"| SGD | 20 | 1,000 drawn anew |{' 0.790 ± 0.000 |' * 5}" in text
    assert f"| IS | 0 | all 10,000 |{' not run |' * 5}" in text
    assert (
        "\nOf the paper's statements hold, or are not contradicted, all on Table 1 (1 of 1), "
        "stability (1 of 1).\n"
    ) in text
    assert "| SGD, - | 0.870 | 0.0020 | 1.0 |" in text


@pytest.mark.parametrize(
    ("own_seeds", "source"), [(3, "reference"), (24, "reference"), (25, "own")]
)
def test_accurate_means_stand_beside_the_methods_that_estimate_them(
    tmp_path: Path, own_seeds: int, source: str
) -> None:
    whole = exact.FIGURE.PROTOCOL.panels[
        "Table 1's methods, and their algorithms with accurate means"
    ]
    own, other = (Store(tmp_path / name, warn=pytest.fail) for name in ("own", "reference"))
    levels = {name: 0.5 + at / 100 for at, name in enumerate(whole.methods)}
    for name, level in levels.items():
        for seed in range(25):
            curve = dict.fromkeys(whole.training.evaluations, level + seed / 1000)
            other.save(record(whole, name, seed, curve))
            if seed < own_seeds:
                own.save(record(whole, name, seed, curve))
    report.render({"own": own, "reference": other}, tmp_path, tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    section = text.split("## Beyond the paper: the algorithms")[1].split("## ")[0]
    # Only where all fresh seeds are: others would stand under "by seeds 5 to 24".
    assert f"From {source}." in section
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    shown = {cells[0]: cells[1:] for cells in rows if len(cells) == 7}
    assert shown["IS"] == ["0.524 ± 0.006"] * 5 + ["-0.040 [-0.040, -0.040]"]
    assert shown["HR"][-1] == "-0.030 [-0.030, -0.030]"
    assert shown["SGD"][-1] == shown["Algorithm 1, accurate mean"][-1] == "-"


def test_csv_has_every_number_unrounded(written: Path) -> None:
    frame = pd.read_csv(written / "report.csv").set_index("claim")
    sgd = frame.loc["table1.sgd"]
    assert sgd["value"].tolist() == pytest.approx(list(paper.TABLE1["sgd"].values()))
    assert sgd["final"].all()
    assert (sgd["low"] < sgd["value"]).all()


def test_drawing_of_a_part_by_hand() -> None:
    # Ends 0 and 1, a margin of 8 % of what is shown to either side, 220 pixels in all.
    view = part_view(Part("gap", (0.5, 0.5), 0.0, 1.0), 1)
    assert view.bar is not None
    scale = 220 / 1.16
    assert view.bar.mean == pytest.approx(110.0)
    assert view.bar.allowed == pytest.approx((0.08 * scale, scale), abs=0.1)
    one_sided = part_view(Part("gap", (0.5, 0.6), low=0.0), 1).bar
    assert one_sided is not None
    assert sum(one_sided.allowed) == pytest.approx(220.0, abs=0.1)


def test_part_in_words() -> None:
    assert part_view(Part("gap", (0.25,), low=0.0), 1).effect == "0.250 (one run)"
    assert part_view(Fact("exact", False), 1).effect == "not true"
    effect = part_view(Prediction("row", (0.4, 0.6) * 10, published=0.9, rounding=0.005), 5).effect
    assert effect == "ours 0.500 [0.194, 0.806], half-width 0.306; paper 0.9"
