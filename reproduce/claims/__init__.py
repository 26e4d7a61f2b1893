"""What holds of the paper's claims, one by one, from records; trains nothing."""

from collections.abc import Mapping

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
    13: "no clear gain over SGD",
    14: "the curse of dimension",
}


def judge(stores: Mapping[str, Archive]) -> list[Finding]:
    """Returns what the records say of every claim.

    Args:
        stores: The records, by the name of where they lie; each claim is decided by one of them.
    """
    evidence = {name: Evidence.read(store) for name, store in stores.items()}
    return [decide(claim, evidence) for claim in CLAIMS]
