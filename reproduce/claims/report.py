"""The report of the claims, as Markdown and CSV."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from reproduce import tables
from reproduce.claims import panels, tau, theorems, training
from reproduce.claims.claim import FAILS, MISSING, VERDICTS, Claim, Finding, decide
from reproduce.claims.evidence import Evidence
from reproduce.records import Archive

CLAIMS: tuple[Claim, ...] = (
    *theorems.THEOREMS,
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
    *theorems.MINIBATCHES,
)
"""In the order of their numbers."""

TOPICS = {
    1: "the theorems",
    2: "Table 1",
    3: "stability",
    4: "speed of training",
    5: "Table 2",
    6: "after SGD",
    7: "numbers of samples",
    8: "choice of tau",
    9: "scoping of tau",
    10: "Section 6.1's accuracies",
    11: "monotone held-out error",
    12: "minibatches and bias",
}


def render(stores: Mapping[str, Archive], output: Path) -> tuple[str, list[str], list[Path]]:
    """Writes what holds, claim by claim, from the records at the paper's budget.

    Args:
        stores: The records, by the name of where they lie; each statement is decided by the first
            that has its records, and by that alone.
        output: Folder of the report.

    Returns:
        The report as Markdown, the names of the stores that decided, and the files written.
    """
    evidence = {name: Evidence.read(store) for name, store in stores.items()}
    findings = [_decide(claim, evidence) for claim in CLAIMS]
    text = markdown(findings)
    used = [name for name in stores if any(finding.records == name for finding in findings)]
    return text, used, tables.write(text, _frame(findings), output / "claims")


def _decide(claim: Claim, evidence: Mapping[str, Evidence]) -> Finding:
    for name, each in evidence.items():
        finding = decide(claim, each)
        if finding.verdict != MISSING:
            return finding._replace(records=name)
    return finding


def markdown(findings: Sequence[Finding]) -> str:
    """Returns the report for reading."""
    cells = [
        [
            str(finding.claim.number),
            finding.claim.statement,
            finding.claim.place,
            finding.measured,
            finding.verdict,
            finding.records,
            finding.claim.rule,
            finding.claim.reading if finding.verdict == FAILS else "",
        ]
        for finding in findings
    ]
    header = ["claim", "statement", "in the paper", "measured", "verdict", "records", "rule"]
    header += ["a reading"]
    table = pd.DataFrame(cells, columns=header).to_markdown(index=False, disable_numparse=True)
    notes = [
        "A statement holds where the 95 % interval of what was measured (Student's, over seeds) "
        "keeps its rule as a whole, and does not where it breaks it as a whole; between, it is "
        "undecided. Of one seed the value alone decides, and no ± is shown.",
        "The bounds are ours; no interval is widened for the number of statements.",
        "Measured from the records at the paper's budget alone; means over the seeds recorded, "
        "± one standard error.",
        "A difference between methods is taken seed by seed: both start from the same weights and "
        "see the same minibatches.",
        "Runs that diverged are left out.",
        "A reading: what of the text, read otherwise, could explain a disagreement.",
    ]
    listed = "\n".join(f"- {note}" for note in notes)
    return f"# What holds, claim by claim\n\n{_summary(findings)}\n\n{table}\n\n{listed}\n"


def _summary(findings: Sequence[Finding]) -> str:
    """How many statements of each claim came to which verdict."""
    counts = Counter((finding.claim.number, finding.verdict) for finding in findings)
    cells = [
        [str(number), TOPICS[number], *(str(counts[number, v] or "") for v in VERDICTS)]
        for number in sorted({number for number, _ in counts})
    ]
    header = ["claim", "about", *VERDICTS]
    return pd.DataFrame(cells, columns=header).to_markdown(index=False, disable_numparse=True)


def _frame(findings: Sequence[Finding]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "claim": finding.claim.number,
            "statement": finding.claim.statement,
            "place": finding.claim.place,
            "measured": finding.measured,
            "verdict": finding.verdict,
            "records": finding.records,
            "rule": finding.claim.rule,
            "reading": finding.claim.reading,
        }
        for finding in findings
    )
