"""Table 2: seconds per weight update of the methods, as ratios to SGD (Section 6.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd

from reproduce import checks, paper, tables
from reproduce.data import Mnist
from reproduce.protocols import SUBSPACES, TABLE1, VARIANTS, Case, spelled
from reproduce.records import Record, Run
from reproduce.runner import Job, Outcome, Report
from reproduce.summary import ROW_TITLES, TITLES, environment, spread

NAME = "table2"

_KERNELS = {False: "plain", "auto": "subspace"}
_MISSING = "missing"


@dataclass(frozen=True)
class Timing:
    """Which weight updates are timed: Table 1's, from the first on.

    Args:
        updates: Weight updates that count, by the optimizers' argument `subspace`, spelled; one
            more, the first, compiles and stands apart.
        repetitions: How often everything is timed, each time in turn and with another seed.
    """

    updates: Mapping[str, int] = field(default_factory=lambda: {"auto": 100, "false": 20})
    repetitions: int = 5

    def __post_init__(self) -> None:
        checks.positive_integer("repetitions", self.repetitions)
        for value in self.updates.values():
            checks.positive_integer("updates", value)

    def cases(self) -> dict[str, tuple[Case, str | bool]]:
        """Returns what is timed, and the argument `subspace`; SGD has no kernel: it comes once.

        The readings of SGLD's noise differ by a square root per step; the printed one is timed.
        """
        return {
            f"{name}.{_KERNELS[subspace]}": (self._case(name, subspace), subspace)
            for subspace in SUBSPACES
            for name in TABLE1.methods
            if name not in VARIANTS and (name != "sgd" or subspace == "auto")
        }

    def _case(self, name: str, subspace: str | bool) -> Case:
        updates = 1 + self.updates[spelled(subspace)]
        training = replace(
            TABLE1.training, updates=updates, evaluate_every=updates, tabulated=(updates,)
        )
        return Case(training, TABLE1.methods[name])


PROTOCOL = Timing()
"""Enough updates for a median."""

QUICK = Timing({"auto": 5, "false": 2}, repetitions=1)
"""The same at a budget for a first look."""


@dataclass(frozen=True)
class TimedRow:
    """A method, with one way of sampling.

    Args:
        method: Table 1's name.
        kernels: "plain", as printed, or "subspace", equal in law.
        repetitions: Seconds of a weight update by repetition, each the median of many updates.
        first: Of the first update, which compiles, in the first repetition there is.
        updates: How many each median is of.
    """

    method: str
    kernels: str
    repetitions: Mapping[int, float]
    first: float | None
    updates: int

    @property
    def seconds(self) -> float | None:
        """Of a weight update, the mean over the repetitions; None without a record."""
        return mean(self.repetitions.values()) if self.repetitions else None


def jobs(timing: Timing, data: Callable[[], Mnist], execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs; to be made one at a time, with nothing else running.

    Args:
        timing: What is timed.
        data: Loads MNIST; called only if a run is made.
        execution: How this process executes: part of each run's configuration.
    """
    return [
        Job(
            run=_run(name, case, repetition, dict(execution) | {"subspace": subspace}),
            steps=case.training.updates,
            execute=partial(run, case, subspace, repetition, data),
        )
        for repetition in range(timing.repetitions)
        for name, (case, subspace) in timing.cases().items()
    ]


def run(
    case: Case, subspace: str | bool, seed: int, data: Callable[[], Mnist], report: Report
) -> Outcome:
    """Trains for as many updates as are timed.

    Returns:
        The record's result, which holds no seconds, and its timings, which do.
    """
    from reproduce.training import train

    return train(case, seed, data(), report, subspace)


def render(records: Sequence[Record], timing: Timing, output: Path) -> tuple[str, list[Path]]:
    """Writes Table 2 from records.

    Args:
        records: Any of `NAME`; those of other runs are left out.
        timing: What is shown, timed or not.
        output: Folder of the table.

    Returns:
        The table as Markdown, and the files written.
    """
    lines = rows(records, timing)
    timed = [one for found in _timed(records, timing).values() for one in found.values()]
    ran_on = sorted({environment(one, is_sampling_told=False) for one in timed})
    suffix = "" if timing == PROTOCOL else "-quick" if timing == QUICK else "-other"
    text = _markdown(lines, ran_on, is_full=timing == PROTOCOL)
    return text, tables.write(text, _frame(lines, ran_on), output / f"table2{suffix}")


def has_records(records: Sequence[Record], timing: Timing) -> bool:
    """Whether anything of it was timed."""
    return bool(_timed(records, timing))


def rows(records: Sequence[Record], timing: Timing) -> list[TimedRow]:
    """Returns every row, those without a record marked as missing."""
    found = _timed(records, timing)
    return [_row(name, found.get(name, {})) for name in timing.cases()]


def ratio(row: TimedRow, lines: Sequence[TimedRow]) -> float | None:
    """Returns how many times SGD's seconds a row takes."""
    sgd = next(line.seconds for line in lines if line.method == "sgd")
    return row.seconds / sgd if row.seconds and sgd else None


def _run(name: str, case: Case, repetition: int, execution: Mapping[str, Any]) -> Run:
    return Run(NAME, name, repetition, case.configuration() | {"execution": dict(execution)})


def _timed(records: Sequence[Record], timing: Timing) -> dict[str, dict[int, Record]]:
    """The timed runs by case and repetition; of several numbers of threads, the first."""
    wanted = {name: case.configuration() for name, (case, _) in timing.cases().items()}
    found: dict[str, dict[int, Record]] = {}
    for record in records:
        run = record.run
        if wanted.get(run.case) == run.settings and record.timings:
            found.setdefault(run.case, {}).setdefault(run.seed, record)
    return found


def _row(name: str, records: Mapping[int, Record]) -> TimedRow:
    method, _, kernels = name.partition(".")
    measured = {one: record.timings for one, record in sorted(records.items())}
    first = next(iter(measured.values()), {})
    return TimedRow(
        method,
        kernels,
        {one: timed["median_update_seconds"] for one, timed in measured.items()},
        first.get("first_update_seconds"),
        max(first.get("updates", 0) - 1, 0),
    )


def _frame(lines: Sequence[TimedRow], ran_on: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": line.method,
            "kernels": line.kernels,
            "seconds": line.seconds,
            "deviation": spread(list(line.repetitions.values())),
            "repetitions": len(line.repetitions),
            "first": line.first,
            "updates": line.updates,
            "ratio_to_sgd": ratio(line, lines),
            "paper_seconds": paper.TABLE2[line.method],
            "paper_ratio_to_sgd": paper.TABLE2[line.method] / paper.TABLE2["sgd"],
            "run_with": "; ".join(ran_on),
        }
        for line in lines
    )


def _markdown(lines: Sequence[TimedRow], ran_on: Sequence[str], *, is_full: bool) -> str:
    header = ["method", "kernels", "seconds", "ratio to SGD", "first update", "updates"]
    header += ["paper's seconds", "paper's ratio"]
    cells = [
        [
            ROW_TITLES[line.method],
            "-" if line.method == "sgd" else line.kernels,
            _seconds(line),
            _number(ratio(line, lines), ",.0f"),
            _number(line.first, ".2f"),
            f"{len(line.repetitions)} x {line.updates}",
            f"{paper.TABLE2[line.method]:.4f}",
            f"{paper.TABLE2[line.method] / paper.TABLE2['sgd']:,.0f}",
        ]
        for line in sorted(lines, key=lambda line: list(TITLES).index(line.method))
    ]
    table = tables.grid(header, cells)
    warning = "" if is_full else "NOT enough updates for a median: a first look."
    notes = [
        "Seconds per weight update at Table 1's protocol, this machine's: mean ± sample standard "
        "deviation over so many repetitions of the median over so many updates after the first, "
        "which compiles and stands apart.",
        "The paper's seconds are of unstated hardware (Table 2 of arXiv 1901.10082); only the "
        "ratios can be compared.",
        "plain: noise in all 159,010 weights at every inner step, as printed (subspace=False); "
        "subspace: the same distribution from those dimensions that the minibatch sees.",
        "SGLD is timed with its noise as printed; the other reading differs by a square root per "
        "step.",
        *[f"Run with {text}." for text in ran_on],
    ]
    return tables.page("Table 2: seconds per weight update", table, warning=warning, notes=notes)


def _seconds(line: TimedRow) -> str:
    deviation = spread(list(line.repetitions.values()))
    return _number(line.seconds, ".4f") + ("" if deviation is None else f" ± {deviation:.4f}")


def _number(value: float | None, form: str) -> str:
    return _MISSING if value is None else format(value, form)
