"""Claims 1, 2, 5 and 12: theorems and tables, number by number."""

from reproduce import paper
from reproduce.claims.claim import Claim, Judgement
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import MissingError, at, each
from reproduce.experiments import table1
from reproduce.protocols import VARIANTS
from reproduce.summary import TITLES
from reproduce.theory import table
from reproduce.theory.claims import HOLDS, MISSING

ACCURACY_BOUND = 0.05
"""How far a mean accuracy may be from the paper's single run on 1000 images."""

FACTOR = 3.0
"""How many times larger or smaller a ratio of seconds may be than the paper's."""

_THOUSAND = (10**2.5, 10**3.5)


def _section(name: str) -> Claim:
    number = {table.THEOREMS_SECTION: 1, table.MINIBATCHES_SECTION: 12}[name]
    statement = {
        1: "both variational characterizations; monotone decrease along exact Algorithms 1 and 2; "
        "Algorithm 1 is gradient descent on F_τ with rate τ",
        12: "minibatches bias importance sampling, not what is linear in f",
    }[number]

    def judge(evidence: Evidence) -> Judgement:
        rows = [row for row in evidence.theory if row.section == name]
        if not rows or any(row.verdict == MISSING for row in rows):
            raise MissingError
        kept = [row for row in rows if row.verdict == HOLDS]
        lost = [row.statement for row in rows if row.verdict != HOLDS]
        return Judgement(
            f"{len(kept)} of {len(rows)} statements hold"
            + "".join(f"; not: {one}" for one in lost),
            not lost,
        )

    return Claim(
        number,
        statement,
        {1: "Sections 3 and 4", 12: "Section 5.1.2"}[number],
        "every statement of its section in theory.md holds to the bound stated there",
        judge,
        "theory.md lists apart what cannot hold as printed, and what does instead",
    )


def _row(name: str) -> Claim:
    method = name.partition("-")[0]
    own = "".join(f", {key}={value}" for key, value in VARIANTS.get(name, {}).items())
    published = paper.TABLE1[method]

    def judge(evidence: Evidence) -> Judgement:
        curves = evidence.curves(table1.PROTOCOL.training, table1.PROTOCOL.methods[name])
        ours = {update: each(at(update), curves) for update in published}
        worst = max(published, key=lambda update: abs(ours[update].value - published[update]))
        shown = ", ".join(f"{ours[update]} ({published[update]:.2f})" for update in published)
        gap = ours[worst].value - published[worst]
        return Judgement(f"{shown}; largest gap {gap:+.3f} at {worst}", abs(gap) <= ACCURACY_BOUND)

    return Claim(
        2,
        f"Table 1, row {TITLES[method]}{own}: ours (the paper's)",
        "Table 1",
        f"every mean within {ACCURACY_BOUND} of the paper's",
        judge,
        _ROW_READINGS[name],
    )


_ROW_READINGS = {
    "sgd": "initial weights are not stated (R8), and the paper's is one run",
    "is": "the mean or the sum of the minibatch's losses in the weights (R2), initial weights (R8)",
    "sgld": "noise of variance eps_j as printed; with standard deviation eps_j it is another (R1)",
    "sgld-linear": "this is the other reading of the noise (R1)",
    "hr": "decaying steps instead of growing ones (R5), initial weights (R8)",
}


def _thousand() -> Claim:
    def judge(evidence: Evidence) -> Judgement:
        ratios = {name: evidence.ratio(name, "plain") for name in ("is", "sgld", "hr")}
        shown = ", ".join(f"{TITLES[name]} {ratio:,.0f}" for name, ratio in ratios.items())
        low, high = _THOUSAND
        return Judgement(shown, all(low <= ratio <= high for ratio in ratios.values()))

    return Claim(
        5,
        "SGD is about 10^3 times faster per weight update (plain kernels)",
        "Section 6.2",
        "every ratio between 10^2.5 and 10^3.5",
        judge,
        "how the inner loops are implemented, and the unstated hardware",
    )


def _ratio(name: str, kernels: str) -> Claim:
    published = paper.TABLE2[name] / paper.TABLE2["sgd"]

    def judge(evidence: Evidence) -> Judgement:
        ratio = evidence.ratio(name, kernels)
        return Judgement(f"{ratio:,.0f}", published / FACTOR <= ratio <= published * FACTOR)

    return Claim(
        5,
        f"{TITLES[name]} takes {published:,.0f} times SGD's seconds ({kernels} kernels)",
        "Table 2",
        f"within a factor of {FACTOR:g}",
        judge,
        {
            "plain": "noise for all weights is drawn faster here than in 2019",
            "subspace": "the same distribution, sampled in the dimensions that the minibatch sees",
        }[kernels],
    )


THEOREMS = _section(table.THEOREMS_SECTION)
TABLE1 = tuple(_row(name) for name in table1.PROTOCOL.methods)
TABLE2 = (
    _thousand(),
    *(_ratio(name, kernels) for kernels in ("plain", "subspace") for name in ("is", "sgld", "hr")),
)
MINIBATCHES = _section(table.MINIBATCHES_SECTION)
