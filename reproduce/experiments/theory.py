"""The theorems as numbers: a table with one row per statement of Sections 2-5."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reproduce import tables
from reproduce.protocols.settings import settings
from reproduce.records import Record, Run
from reproduce.runner import Job, Outcome, Report
from reproduce.theory import table
from reproduce.theory.protocol import KERNELS, QUICK_THEORY, THEORY, Theory

NAME = "theory"

_GROWING_STEPS = 200
_EXACT_SEED = 0
_SHARED = ("readings", "growing-steps")
"""Parts that all protocols measure alike."""


def jobs(theory: Theory, seeds: Sequence[int], execution: Mapping[str, Any]) -> list[Job]:
    """Returns the runs: what is exact once, what draws noise once per seed.

    Args:
        theory: Where and how everything is measured.
        seeds: Of the estimators' noise.
        execution: How this process executes: part of each run's configuration.
    """
    return [
        Job(
            run=Run(NAME, name, seed, own | {"execution": dict(execution)}),
            steps=1,
            execute=partial(run, theory, name, seed),
        )
        for name, own in cases_of(theory).items()
        for seed in (seeds if is_random(name) else (_EXACT_SEED,))
    ]


def cases_of(theory: Theory) -> dict[str, dict[str, Any]]:
    """Returns each case's configuration; a case is named `part` or `part.function[.kernel]`."""
    sites = {site.function: settings(site) for site in theory.sites}
    exact = {
        f"{name}.{function}": own
        for name in ("identities", "algorithm1", "algorithm2")
        for function, own in sites.items()
    }
    estimation = settings(theory.estimation)
    starts = estimation.pop("starts")
    estimated = {
        f"estimated.{function}.{kernel}": estimation | {"starts": starts[function]}
        for function in starts
        for kernel in KERNELS
    }
    rest = {
        "readings": {},
        "growing-steps": {"steps": _GROWING_STEPS},
        "minibatches": settings(theory.minibatches),
    }
    return exact | rest | estimated


def is_random(case: str) -> bool:
    """Whether a case's numbers depend on the seed."""
    return part(case) in ("estimated", "minibatches")


def part(case: str) -> str:
    """Returns the part that a case belongs to."""
    return case.partition(".")[0]


def run(theory: Theory, case: str, seed: int, report: Report) -> Outcome:
    """Measures one case.

    Returns:
        The record's result, with the measured numbers by name under `measures`, and no timings.
    """
    measures = _measured(theory, case, seed)
    report(1)
    return {"status": "completed", "measures": measures}, {}


def _measured(theory: Theory, case: str, seed: int) -> Mapping[str, Any]:
    # These load TensorFlow, which rendering does without.
    from reproduce.theory import descent, identities, kernels, minibatches, readings

    sites = {site.function: site for site in theory.sites}
    match case.split("."):
        case ["identities", function]:
            return identities.measure(sites[function])
        case ["algorithm1", function]:
            return descent.measure(sites[function], "local_entropy")
        case ["algorithm2", function]:
            return descent.measure(sites[function], "heat")
        case ["estimated", function, kernel]:
            return kernels.measure(theory.estimation, function, kernel, seed)
        case ["readings"]:
            return readings.measure()
        case ["growing-steps"]:
            return kernels.growing_steps(_GROWING_STEPS)
        case _:
            return minibatches.measure(theory.minibatches, seed)


def render(
    records: Sequence[Record], theory: Theory, seeds: Sequence[int] | None, output: Path
) -> tuple[str, list[Path]]:
    """Writes the table from the records.

    Args:
        records: Any records of this experiment; those of other configurations are left out.
        theory: What is shown, run or not.
        seeds: The seeds shown; `None`: all there are.
        output: Folder of the table.

    Returns:
        The table as Markdown, and the files written.
    """
    found = measured(records, theory, seeds)
    rows = table.rows(found)
    suffix = "" if theory == THEORY else "-quick" if theory == QUICK_THEORY else "-other"
    text = table.markdown(rows, theory, table.environments(records), is_full=theory == THEORY)
    return text, tables.write(text, table.frame(rows), output / f"theory{suffix}")


def has_records(records: Sequence[Record], theory: Theory) -> bool:
    """Whether any record belongs to this protocol, and not to every one."""
    return any(part(case) not in _SHARED for case in measured(records, theory, None))


def measured(
    records: Sequence[Record], theory: Theory, seeds: Sequence[int] | None
) -> dict[str, list[Mapping[str, Any]]]:
    """The measures of each case, one mapping per seed."""
    cases = cases_of(theory)
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    order = partial(_with_order, theory.minibatches.step_sizes)
    for record in records:
        case, seed = record.run.case, record.run.seed
        wanted = seeds is None or seed in seeds or not is_random(case)
        if wanted and cases.get(case) == record.run.settings:
            measures = record.result["measures"]
            own = order(measures) if part(case) == "minibatches" else measures
            found.setdefault(case, {}).setdefault(seed, own)
    return {case: [by_seed[seed] for seed in sorted(by_seed)] for case, by_seed in found.items()}


def _with_order(step_sizes: Sequence[float], measures: Mapping[str, Any]) -> dict[str, Any]:
    """Adds how far the order of the fresh minibatches' bias in the step size is from 1.

    By its slope between the two smallest step sizes, both as logarithms; recorded is the bias over
    the step size.
    """
    relative = measures["chain_fresh_minibatches"]
    pairs = sorted(zip(step_sizes, relative, strict=True))[:2]
    if len(pairs) < 2:
        return dict(measures)
    (fine, small), (coarse, large) = pairs
    slope = math.log(large / small) / math.log(coarse / fine)
    return {**measures, "chain_fresh_order": [abs(slope)]}
