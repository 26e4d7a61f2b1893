"""The model of many replicas by hand, what replicas exchange, and the command's tables."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from benchmarks.scaling import measured, report
from benchmarks.scaling.cases import CASES, QUICK, Case, Costs
from benchmarks.scaling.measured import Measured, measure

ROOT = Path(__file__).resolve().parents[3]
COSTS = Costs(alone=10.0, shared=8.0, repeated=1.0, bytes=3_000_000, exchanges=2)


@pytest.mark.parametrize(
    ("replicas", "seconds"),
    [
        (1, 10.0),
        # 2 that nothing shares, 1 again; of 3 MB half twice at 1 MB/s; 2 exchanges of 2 steps.
        (2, 2 + 8 / 2 + 1 + 3.0 + 0.4),
        (4, 2 + 8 / 4 + 1 + 4.5 + 1.2),
    ],
)
def test_seconds_on_replicas(replicas: int, seconds: float) -> None:
    assert COSTS.seconds(replicas, 1e6, 0.1) == pytest.approx(seconds)


def test_model_tells_where_it_ends() -> None:
    found = [Measured(CASES[0], [10.0], [6.0], COSTS)]
    (row,) = report.model(found, 1e6, 0.1).to_dict("records")
    # 3.4 s of 10.4 at two replicas, 5.7 s of 10.7 at four.
    assert row["exchange is half from"] == "4"
    # 1 s of noise once more of 10.4, and of 10.7.
    assert row["repeated noise is half from"] == "-"
    (row_without_exchange,) = report.model(
        [Measured(CASES[2], [10.0], [6.0], dataclasses.replace(COSTS, repeated=5.0, alone=8.0))],
        np.inf,
        0.0,
    ).to_dict("records")
    # 5 s of 9 at two replicas.
    assert row_without_exchange["repeated noise is half from"] == "2"
    assert row["L = 2"] == f"{10 / 2 / 10.4:.2f}"
    (times,) = report.measurements(found).to_dict("records")
    assert times["efficiency"] == f"{10 / 12:.2f}"
    assert times["model's s, L = 2"] == "7.000"


def test_two_replicas_are_timed_and_what_they_send_is_counted() -> None:
    samples, batch = measure(QUICK, rounds=1, say=lambda _: None)
    for each in (samples, batch):
        assert len(each.one) == len(each.two) == 1
        assert min(*each.one, *each.two) > 0.0
        assert 0.0 <= each.costs.shared <= each.costs.alone
    assert samples.costs.repeated == 0.0 < batch.costs.repeated
    # The rows that span the subspace, the losses of 20 samples, and little else.
    rows = batch.case.rows // 2 * 784 * 4
    assert rows < batch.costs.bytes - 20 * 4 < rows + 1000


def test_part_of_one_of_two() -> None:
    assert Case("dense", "samples", 10, 4).part == Case("dense", "samples", 5, 4)
    assert Case("dense", "batch", 10, 4).part == Case("dense", "batch", 10, 2, stands_in=True)


def test_what_a_part_takes_is_what_the_model_says_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"update": 10.0, "part": 8.0, "noise": 3.0}

    class Told:
        def __init__(self, count: int):
            self._count = count

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def update(self, case: Case) -> float:
            return seconds["part" if case in (CASES[0].part, CASES[2].part) else "update"]

        def noise(self, case: Case) -> float:
            return seconds["noise"]

        def exchanged(self, case: Case) -> tuple[int, int]:
            return 0, 0

    monkeypatch.setattr(measured, "Replicas", Told)
    monkeypatch.setattr(measured, "_PAUSE", 0.0)
    samples, batch = measure((CASES[0], CASES[2]), rounds=1, say=lambda _: None)
    assert (samples.costs.shared, samples.costs.repeated) == (4.0, 0.0)
    assert (batch.costs.shared, batch.costs.repeated) == (10.0, 3.0)
    assert samples.costs.seconds(2, np.inf, 0.0) == batch.costs.seconds(2, np.inf, 0.0) == 8.0


def test_figure(tmp_path: Path) -> None:
    found = [Measured(case, [10.0], [6.0], COSTS) for case in CASES]
    error = {"importance sampling": [2.0, 1.0], "gradients": [0.2, 0.1]}
    written = report.draw(found, error, (10, 100), (np.inf, 0.0), tmp_path / "scaling")
    assert [path.name for path in written] == ["scaling.png", "scaling.pdf"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--rounds=0", "`rounds` must be a positive integer"),
        ("--bandwidth=-1", "`bandwidth` must be positive"),
        ("--latency=nan", "`latency` must be positive"),
    ],
)
def test_bad_arguments_are_refused(word: str, message: str) -> None:
    command = [sys.executable, "-m", "benchmarks.scaling", word]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr
