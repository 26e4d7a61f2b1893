"""What holds of the paper's claims, one by one, from records; trains nothing."""

from collections.abc import Mapping
from typing import NamedTuple

from reproduce.claims import panels, stability, tables, tau, theorems, training
from reproduce.claims.claim import Claim, Finding, decide
from reproduce.claims.evidence import Evidence
from reproduce.records import Archive

CLAIMS: tuple[Claim, ...] = (
    *theorems.THEOREMS,
    *tables.TABLE1,
    *stability.STABILITY,
    *training.SPEED,
    *tables.TABLE2,
    *panels.AFTER_SGD,
    *panels.SAMPLES,
    *tau.TAU,
    *tau.SCOPING,
    *tables.SECTION61,
    *stability.MONOTONICITY,
    *theorems.MINIBATCHES,
    *training.CONCLUSION,
    *training.CURSE,
)
"""In the order of their numbers."""


class Topic(NamedTuple):
    """What claims are about.

    Args:
        title: In words.
        command: What makes the records.
        figures: The stems of the files that show it.
    """

    title: str
    command: str
    figures: tuple[str, ...] = ()


TOPICS = {
    1: Topic("the theorems", "make theory", ("figure1", "figure2", "figure3")),
    2: Topic("Table 1", "make table1", ("figure4",)),
    3: Topic("stability", "make table1"),
    4: Topic("speed of training", "make table1"),
    5: Topic("Table 2", "make table2"),
    6: Topic("after SGD", "make figure5", ("figure5",)),
    7: Topic("numbers of samples", "make figure6", ("figure6",)),
    8: Topic("choice of tau", "make figure7, make readings", ("figure7",)),
    9: Topic("scoping of tau", "make figure8", ("figure8",)),
    10: Topic("Section 6.1's accuracies", "make section61"),
    11: Topic("monotone held-out error", "make table1"),
    12: Topic("minibatches and bias", "make theory"),
    13: Topic("no clear gain over SGD", "make table1"),
    14: Topic("the curse of dimension", "make table1"),
}
"""As the project counts them; each figure stands once."""


def judge(stores: Mapping[str, Archive]) -> list[Finding]:
    """Returns what the records say of every claim.

    Args:
        stores: The records, by the name of where they lie; each claim is decided by one of them.
    """
    evidence = {name: Evidence.read(store) for name, store in stores.items()}
    return [decide(claim, evidence) for claim in CLAIMS]
