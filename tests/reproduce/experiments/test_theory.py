from pathlib import Path

import pytest

from reproduce.experiments import theory
from reproduce.records import Record, Store
from reproduce.runner import Fate, run_missing
from reproduce.theory.protocol import KERNELS, THEORY, Estimation, Minibatches, Site, Theory
from tests.reproduce._invocation import Lines

TINY = Theory(
    (Site("quadratic", (0.5,), ((2.0,),), steps=2),),
    Estimation(samples=(4,), steps=2, repetitions=1, starts={"quadratic": ((2.0,),)}),
    Minibatches(samples=10, repetitions=2, step_sizes=(0.04, 0.02)),
)
EXECUTION = {"threads": 0, "device": "cpu", "jit_compile": False}
ENVIRONMENT = {"tensorflow": "2.21.0", "keras": "3.15.1", "processor": "a processor"}


def test_every_part_runs_and_renders(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    jobs = theory.jobs(TINY, (0,), EXECUTION)
    assert not run_missing(jobs, store, ENVIRONMENT, Lines())[Fate.FAILED]
    records = store.scan(theory.NAME)
    assert len(records) == len(jobs)
    text, written = theory.render(records, TINY, None, tmp_path)
    assert "missing" not in text
    assert "FAILS" not in text
    assert [path.name for path in written] == ["theory-other.md", "theory-other.csv"]
    assert theory.render(records, TINY, (0,), tmp_path)[0] == text
    # Of another protocol, or another seed, nothing is taken for this one's.
    assert not theory.has_records(records, THEORY)
    assert "share of updates" not in theory.render(records, TINY, (1,), tmp_path)[0]


def test_only_what_draws_noise_runs_per_seed() -> None:
    once, thrice = (theory.jobs(TINY, seeds, EXECUTION) for seeds in ((0,), (0, 1, 2)))
    random = len(KERNELS) + 1
    assert len(thrice) - len(once) == 2 * random
    assert len({job.run.key for job in thrice}) == len(thrice)


def test_order_of_the_bias_is_its_slope_between_the_two_smallest_step_sizes() -> None:
    # The bias over eps: constant where it is of order 1, as eps where it is of order 2.
    job = next(job for job in theory.jobs(TINY, (0,), EXECUTION) if job.run.case == "minibatches")
    for relative, off in (([0.5, 0.5], 0.0), ([0.5, 0.25], 1.0), ([0.25, 0.5], 1.0)):
        result = {"measures": {"chain_fresh_minibatches": relative}}
        found = theory.measured([Record(job.run, ENVIRONMENT, result)], TINY, None)
        assert found["minibatches"][0]["chain_fresh_order"] == pytest.approx([off])
