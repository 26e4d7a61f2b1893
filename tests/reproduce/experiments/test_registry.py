"""Every training experiment from runs to figure, at the budget for a first look.

Each network is trained once, and a method of each kind, with a constant and with a scoped tau; what
the other runs come to is made up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from reproduce import training
from reproduce.experiments import exact
from reproduce.experiments.base import RECORDS, Experiment, cases_of
from reproduce.experiments.registry import TRAINING
from reproduce.protocols import Case, Comparison, Panels
from reproduce.records import Store
from reproduce.runner import Fate, Outcome, run_missing
from tests.reproduce._examples import ENVIRONMENT, stripes
from tests.reproduce._invocation import Lines

EXECUTION = {"threads": 0, "device": "cpu", "jit_compile": False}
DATA = stripes()
SEEDS = (0,)
ONE_LINE = {"figure6", "figure7", "figure8"}
"""Figures whose panels differ in a number only: one line of each will do."""


def _protocol(experiment: Experiment[Any]) -> Any:
    if experiment.NAME == "table1":
        methods = experiment.QUICK.with_methods(("sgd", "is"))
        training = replace(methods.training, updates=4, test_images=50, evaluate_every=2)
        return replace(methods.with_budget(samples=4), training=training)
    if experiment.NAME in ONE_LINE:
        return Panels({title: _first(panel) for title, panel in experiment.QUICK.panels.items()})
    return experiment.QUICK


def _first(comparison: Comparison) -> Comparison:
    return comparison.with_methods(tuple(comparison.methods)[-1:])


@pytest.fixture(scope="module", autouse=True)
def _trained_once() -> Iterator[None]:
    trained: set[Any] = set()
    train = training.train

    def once(case: Case, seed: int, *how: Any) -> Outcome:
        method = case.method
        kinds = {case.training.network, (type(method), getattr(method, "tau1", 0.0) != 0.0)}
        if not kinds <= trained:
            trained.update(kinds)
            return train(case, seed, *how)
        updates = list(case.training.evaluations)
        accuracies = [(len(case.name) + update) / 1e5 for update in updates]
        curve = {"update": updates, "accuracy": accuracies, "loss": accuracies}
        return {"status": "completed", "diverged_at": None, "curve": curve, "diagnostics": {}}, {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "train", once)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One folder for all, so that what they share is made once."""
    return Store(tmp_path_factory.mktemp("results"), warn=pytest.fail)


@pytest.mark.parametrize("experiment", [*TRAINING, exact.FIGURE], ids=lambda one: one.NAME)
def test_experiment_runs_and_renders(
    experiment: Experiment[Any], store: Store, tmp_path: Path
) -> None:
    protocol = _protocol(experiment)
    jobs = experiment.jobs(protocol, SEEDS, "auto", lambda: DATA, EXECUTION)
    assert not run_missing(jobs, store, ENVIRONMENT, Lines())[Fate.FAILED]
    assert all(store.path(job.run).exists() for job in jobs)
    records = store.scan(RECORDS)
    found = experiment.recorded(records, protocol)
    assert found == {case: {*SEEDS} for case in cases_of(protocol)}
    assert not experiment.recorded(records, experiment.PROTOCOL)
    text, written = experiment.render(
        records, protocol, SEEDS, "auto", tmp_path, tmp_path / "figures"
    )
    assert text.startswith(f"# {experiment.TITLE}: ")
    assert "NOT the paper's budget" in text
    assert "missing" not in text
    assert all(path.stat().st_size for path in written)
    if experiment.NAME.startswith(("figure", "exact")):
        assert sorted(path.suffix for path in written) == [".csv", ".md", ".pdf", ".png"]
        csv = next(path for path in written if path.suffix == ".csv")
        _check_plotted(pd.read_csv(csv), protocol, store, jobs)


def _check_plotted(plotted: pd.DataFrame, protocol: Panels, store: Store, jobs: Any) -> None:
    """The last value of every line is that of its record."""
    results: Mapping[str, Any] = {
        job.run.case: record.result for job in jobs if (record := store.load(job.run))
    }
    for title, comparison in protocol.panels.items():
        for name, case in comparison.cases().items():
            line = plotted[(plotted["panel"] == title) & (plotted["line"] == name)]
            curve = results[case.name]["curve"]
            assert line["mean"].iloc[-1] == curve["accuracy"][-1]
            assert line["update"].iloc[-1] == curve["update"][-1]
