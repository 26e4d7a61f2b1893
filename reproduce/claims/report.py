"""The report of the claims, as Markdown and CSV."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reproduce import tables
from reproduce.claims import panels, tau, theorems, training
from reproduce.claims.claim import FAILS, HOLDS, MISSING, Claim, Finding, decide
from reproduce.claims.evidence import Evidence
from reproduce.records import Store

CLAIMS: tuple[Claim, ...] = (
    theorems.THEOREMS,
    *theorems.TABLE1,
    *training.STABILITY,
    *training.SPEED,
    *theorems.TABLE2,
    *panels.AFTER_SGD,
    *panels.SAMPLES,
    *tau.TAU,
    *tau.SCOPING,
    *panels.SECTION61,
    *training.MONOTONICITY,
    theorems.MINIBATCHES,
)
"""In the order of their numbers."""


def render(store: Store, output: Path) -> tuple[str, list[Path]]:
    """Writes what holds, claim by claim, from the records at the paper's budget.

    Args:
        store: The records.
        output: Folder of the report.

    Returns:
        The report as Markdown, and the files written.
    """
    evidence = Evidence.read(store)
    findings = [decide(claim, evidence) for claim in CLAIMS]
    text = markdown(findings)
    return text, tables.write(text, _frame(findings), output / "claims")


def markdown(findings: Sequence[Finding]) -> str:
    """Returns the report for reading."""
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (HOLDS, FAILS, MISSING))
    cells = [
        [
            str(finding.claim.number),
            finding.claim.statement,
            finding.claim.place,
            finding.measured,
            finding.verdict,
            finding.claim.rule,
            finding.claim.reading if finding.verdict == FAILS else "",
        ]
        for finding in findings
    ]
    header = ["claim", "statement", "in the paper", "measured", "verdict", "rule", "a reading"]
    table = pd.DataFrame(cells, columns=header).to_markdown(index=False, disable_numparse=True)
    notes = [
        "Measured from the records at the paper's budget alone; means over the seeds recorded, "
        "± one standard error.",
        "A difference between methods is taken seed by seed: both start from the same weights and "
        "see the same minibatches.",
        "Runs that diverged are left out.",
        "A reading: what of the text, read otherwise, could explain a disagreement.",
    ]
    listed = "\n".join(f"- {note}" for note in notes)
    return f"# What holds, claim by claim\n\n{summary}.\n\n{table}\n\n{listed}\n"


def _frame(findings: Sequence[Finding]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "claim": finding.claim.number,
            "statement": finding.claim.statement,
            "place": finding.claim.place,
            "measured": finding.measured,
            "verdict": finding.verdict,
            "rule": finding.claim.rule,
            "reading": finding.claim.reading,
        }
        for finding in findings
    )
