from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduce import paper
from reproduce.data import Mnist
from reproduce.experiments import table2
from reproduce.experiments.table2 import PROTOCOL, QUICK, Timing
from reproduce.protocols import TABLE1
from reproduce.records import Record
from tests.reproduce._examples import ENVIRONMENT, stripes

EXECUTION = {"threads": 2, "device": "cpu", "jit_compile": False}


def _timed(timing: Timing, seconds: Mapping[str, float]) -> list[Record]:
    found = []
    for job in table2.jobs(timing, stripes, EXECUTION):
        if job.run.case in seconds:
            timings = {
                "updates": job.steps,
                "first_update_seconds": 2.5,
                "median_update_seconds": seconds[job.run.case],
            }
            found.append(Record(job.run, ENVIRONMENT, {"status": "completed"}, timings))
    return found


def test_jobs_time_table1s_methods_in_both_ways_and_sgd_once() -> None:
    jobs = table2.jobs(PROTOCOL, stripes, EXECUTION)
    runs = {job.run.case: job.run.configuration for job in jobs}
    assert [job.run.seed for job in jobs if job.run.case == "is.plain"] == [0, 1, 2, 3, 4]
    assert list(runs) == [
        "sgd.subspace", "is.subspace", "sgld.subspace", "hr.subspace",
        "is.plain", "sgld.plain", "hr.plain",
    ]  # fmt: skip
    assert runs["is.plain"]["execution"]["subspace"] is False
    assert runs["is.plain"]["training"]["updates"] == 21
    assert runs["sgld.subspace"]["training"]["updates"] == 101
    named = TABLE1.cases()["sgld"].configuration()["method"]
    assert runs["sgld.plain"]["method"] == named


def test_table_shows_medians_ratios_and_the_papers(tmp_path: Path) -> None:
    timed = _timed(PROTOCOL, {"sgd.subspace": 0.002, "is.plain": 3.0, "is.subspace": 0.1})
    text, written = table2.render(timed, PROTOCOL, tmp_path)
    (plain,) = [line for line in text.splitlines() if line.startswith("| IS ") and "plain" in line]
    cells = [cell.strip() for cell in plain.strip("|").split("|")]
    assert cells == [
        "IS", "plain", "3.0000 ± 0.0000", "1,500", "2.50", "5 x 20", "6.2504", "1,953"
    ]  # fmt: skip
    assert "2 threads on a processor" in text
    assert "NOT enough" not in text
    read = pd.read_csv(written[1]).set_index(["method", "kernels"])
    assert read.loc[("is", "subspace"), "ratio_to_sgd"] == pytest.approx(50.0)
    assert read.loc[("hr", "plain"), "paper_seconds"] == paper.TABLE2["hr"]
    assert read["seconds"].isna()[("hr", "plain")]
    assert "missing" in text


def test_seconds_are_the_mean_over_the_repetitions_that_there_are(tmp_path: Path) -> None:
    timed = [
        one
        for repetition, seconds in ((0, 0.002), (3, 0.004))
        for one in _timed(PROTOCOL, {"sgd.subspace": seconds})
        if one.run.seed == repetition
    ]
    (sgd,) = [row for row in table2.rows(timed, PROTOCOL) if row.method == "sgd"]
    assert sgd.repetitions == {0: 0.002, 3: 0.004}
    assert sgd.seconds == pytest.approx(0.003)
    assert "0.0030 ± 0.0014" in table2.render(timed, PROTOCOL, tmp_path)[0]


def test_records_without_their_seconds_or_of_another_budget_are_left_out(tmp_path: Path) -> None:
    timed = _timed(QUICK, {"sgd.subspace": 0.002})
    assert table2.has_records(timed, QUICK)
    assert not table2.has_records(timed, PROTOCOL)
    assert "**NOT enough updates for a median" in table2.render(timed, QUICK, tmp_path)[0]
    assert not table2.has_records([replace(one, timings={}) for one in timed], QUICK)


def test_seconds_stand_in_the_timings_alone() -> None:
    def data() -> Mnist:
        small = stripes()
        images, labels = (
            np.concatenate([part] * 10) for part in (small.test_images, small.test_labels)
        )
        return Mnist(small.train_images, small.train_labels, images, labels)

    jobs = table2.jobs(Timing({"auto": 1, "false": 1}, 1), data, EXECUTION)
    (job,) = [job for job in jobs if job.run.case == "sgd.subspace"]
    first, second = (job.execute(lambda steps: None) for _ in range(2))
    assert first[0] == second[0]
    assert first[1]["updates"] == 2
    assert first[1]["median_update_seconds"] > 0.0
