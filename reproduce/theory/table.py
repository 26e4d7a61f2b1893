"""The table of the theorems, from measured numbers; trains and measures nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import pandas as pd

from reproduce import tables
from reproduce.records import Record
from reproduce.summary import ROW_TITLES, counted
from reproduce.theory.claims import MINIBATCHES, READINGS, THEOREMS
from reproduce.theory.protocol import KERNELS, ROBBINS_MONRO, Theory
from reproduce.theory.statement import MISSING, Statement

Measured = Mapping[str, Sequence[Mapping[str, Any]]]
"""By case, one mapping of measures per seed."""

_SECTIONS: Mapping[str, Sequence[Statement]] = {
    "Theorems and derivations": THEOREMS,
    "Where the text cannot hold as printed, and what does": READINGS,
    "Minibatches (claim 12)": MINIBATCHES,
}
_ESTIMATED = "Monotone updates where the mean is estimated"


@dataclass(frozen=True)
class StatementRow:
    """One line.

    Args:
        section: The part of the table it stands in.
        statement: What is stated.
        place: Where in the paper.
        measured: The number that decides; `None` without a record.
        error: Its standard error where it is a statistic.
        count: How many numbers it is the worst, or the mean, of.
        bound: The rule for the number, empty where the paper states none.
        verdict: What follows.
    """

    section: str
    statement: str
    place: str
    measured: float | None
    error: float | None
    count: int
    bound: str
    verdict: str


def rows(measured: Measured) -> list[StatementRow]:
    """Returns every row, those without records marked as missing."""
    decided = [
        _decided(section, claim, measured)
        for section, claims in _SECTIONS.items()
        for claim in claims
    ]
    estimated = [
        _share(kernel, samples, falls)
        for kernel in KERNELS
        for samples, falls in _falls(measured, kernel).items()
    ]
    return decided + estimated


def frame(lines: Sequence[StatementRow]) -> pd.DataFrame:
    """Returns the table in long form, numbers unrounded."""
    return pd.DataFrame([vars(line) for line in lines])


def markdown(
    lines: Sequence[StatementRow], theory: Theory, environments: Sequence[str], *, is_full: bool
) -> str:
    """Returns the table for reading."""
    warning = "" if is_full else "NOT the full battery."
    sections = [
        f"## {section}\n\n{_grid([line for line in lines if line.section == section])}"
        for section in (*_SECTIONS, _ESTIMATED)
    ]
    notes = _notes(theory, environments)
    return tables.page("The theorems as numbers", *sections, warning=warning, notes=notes)


def environments(records: Sequence[Record]) -> list[str]:
    """Returns what the records' runs ran on, each once."""
    return sorted(
        {
            f"{counted(record.run.configuration['execution']['threads'], 'thread')} on "
            f"{record.environment['processor']}, TensorFlow {record.environment['tensorflow']}"
            for record in records
        }
    )


def _values(measured: Measured, part: str, measure: str) -> list[float]:
    return [
        value
        for case, seeds in sorted(measured.items())
        if case.partition(".")[0] == part
        for measures in seeds
        for value in measures.get(measure, ())
    ]


def _decided(section: str, claim: Statement, measured: Measured) -> StatementRow:
    values = _values(measured, claim.part, claim.measure)
    errors = _values(measured, claim.part, f"{claim.measure}_error")
    return StatementRow(
        section,
        claim.statement,
        claim.place,
        claim.number(values) if values else None,
        max(errors, default=None),
        len(values),
        claim.rule,
        claim.judge(values),
    )


def _falls(measured: Measured, kernel: str) -> dict[str, dict[str, list[list[int]]]]:
    """By number of samples and landscape: the repetitions of all seeds."""
    found: dict[str, dict[str, list[list[int]]]] = {}
    for case, seeds in measured.items():
        part, _, detail = case.partition(".")
        function, _, name = detail.partition(".")
        if part == "estimated" and name == kernel:
            for measures in seeds:
                for samples, runs in measures.items():
                    found.setdefault(samples, {}).setdefault(function, []).extend(runs)
    return {samples: found[samples] for samples in sorted(found, key=int)}


def _share(kernel: str, samples: str, falls: Mapping[str, list[list[int]]]) -> StatementRow:
    """The share of updates at which the loss fell, of a kernel at a number of samples."""
    shares = {function: mean(map(mean, runs)) for function, runs in sorted(falls.items())}
    per_run = [mean(run) for runs in falls.values() for run in runs]
    each = ", ".join(f"{function} {share:.2f}" for function, share in shares.items())
    value = "F^H_τ" if kernel == ROBBINS_MONRO else "F_τ"
    always = min(per_run) == 1
    return StatementRow(
        _ESTIMATED,
        f"{ROW_TITLES[kernel]}, {samples} samples: share of updates at which {value} did not rise "
        f"({each})",
        "Sections 3.2, 4.2, 5",
        mean(per_run),
        stdev(per_run) / len(per_run) ** 0.5 if len(per_run) > 1 else None,
        sum(len(run) for runs in falls.values() for run in runs),
        "",
        "monotone here" if always else "not monotone",
    )


def _grid(lines: Sequence[StatementRow]) -> str:
    cells = [
        [line.statement, line.place, _number(line), str(line.count), line.bound, line.verdict]
        for line in lines
    ]
    header = ["statement", "in the paper", "measured", "over", "bound", "verdict"]
    return tables.grid(header, cells)


def _number(line: StatementRow) -> str:
    if line.measured is None:
        return MISSING
    if line.error is not None:
        return f"{line.measured:.3f} (s.e. {line.error:.3f})"
    return f"{line.measured:.2g}"


def _notes(theory: Theory, ran_on: Sequence[str]) -> list[str]:
    sites = ", ".join(
        f"{site.function} (τ = {', '.join(f'{tau:g}' for tau in site.taus)})"
        for site in theory.sites
    )
    estimation = theory.estimation
    return [
        f"Battery of the exact rows: {sites}. Each number is the worst over so many places.",
        "Both sides of every equation are computed from their definitions by quadrature in "
        "float64; gradients on the left sides are finite differences of values.",
        f"Estimated means: τ = {estimation.tau:g}, {estimation.steps} updates, s.e. the standard "
        "error over repetitions; SGLD with temperatures 1 / (1000 + j) and a persistent chain, HR "
        "with M = J = floor(sqrt S). Exact means give a share of 1.",
        "A share says nothing of how far an update goes: short chains, SGLD's with noise=linear "
        "and HR's most of all, end near where they start.",
        "Landscapes here have one dimension: the noise of an estimated mean grows with the square "
        "root of the dimension.",
        *[f"Run with {text}." for text in ran_on],
    ]
