from pathlib import Path

import pandas as pd
import pytest

from reproduce.experiments import section61
from tests.reproduce._examples import record

SMALL, HIDDEN = section61.PROTOCOL.panels
ROW = "SGD, learning rate 0.1"


def test_protocol_is_five_epochs_of_both_networks_at_every_rate() -> None:
    for title, network in ((SMALL, "small_dense"), (HIDDEN, "hidden_dense")):
        comparison = section61.PROTOCOL.panels[title]
        training = comparison.training
        assert training.network == network
        assert training.updates * training.batch_size == 5 * 60_000
        assert training.test_images == 10_000
        assert training.evaluations == (0, 3000, 6000, 9000, 12000, 15000)
        rates = [one.learning_rate for one in comparison.methods.values()]  # type: ignore[attr-defined]
        assert rates == [0.01, 0.03, 0.1, 0.3]
    assert len(section61.PROTOCOL.cases()) == 8


def test_render_puts_the_papers_numbers_beside_ours(tmp_path: Path) -> None:
    comparison = section61.PROTOCOL.panels[SMALL]
    curves = [{0: 0.1, 3000: 0.8, 15000: 0.90}, {0: 0.1, 3000: 0.9, 15000: 0.92}]
    records = [record(comparison, ROW, seed, curve) for seed, curve in enumerate(curves)]
    text, written = section61.EXPERIMENT.render(
        records, section61.PROTOCOL, (0, 1), "auto", tmp_path, tmp_path / "figures"
    )
    assert [path.name for path in written] == ["section61.md", "section61.csv"]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert [SMALL, "paper", "-", "-", "-", "-", "0.912"] in lines
    assert [HIDDEN, "paper", "-", "-", "-", "-", "0.989"] in lines
    ours = next(line for line in lines if line[1:2] == [ROW])
    assert (ours[2], ours[6]) == ("0.850 ± 0.071", "0.910 ± 0.014")
    values = pd.read_csv(written[1]).set_index(["line", "update"])
    assert values.loc[(ROW, 15000), "mean"] == pytest.approx(0.91)
    assert 0.912 not in set(values["mean"])
