"""Claims 1, 2, 5 and 12: theorems and tables, number by number."""

from collections.abc import Callable, Mapping, Sequence

from reproduce import paper
from reproduce.claims.claim import Claim, Judgement
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import MissingError, at, each, every, over_seeds
from reproduce.experiments import table1
from reproduce.protocols import VARIANTS
from reproduce.summary import TITLES
from reproduce.theory import claims as statements
from reproduce.theory.statement import HOLDS, MISSING, Statement

ACCURACY_BOUND = 0.05
"""How far a mean accuracy may be from the paper's single run on 1000 images."""

FACTOR = 3.0
"""How many times larger or smaller a ratio of seconds may be than the paper's."""

_THOUSAND = (10**2.5, 10**3.5)


def _statements(
    number: int,
    statement: str,
    place: str,
    among: Sequence[Statement],
    key: Callable[[Statement], str],
    keys: tuple[str, ...],
) -> Claim:
    """Bundles statements of the theorems' table.

    Args:
        number: As the project counts the claims.
        statement: What they say together.
        place: Where in the paper.
        among: All statements of the part of the table.
        key: What tells which belong here.
        keys: Its values.
    """
    wanted = {(one.statement, one.place) for one in among if key(one) in keys}

    def judge(evidence: Evidence) -> Judgement:
        rows = [row for row in evidence.theory if (row.statement, row.place) in wanted]
        if not rows or any(row.verdict == MISSING for row in rows):
            raise MissingError
        kept = [row.verdict == HOLDS for row in rows]
        return Judgement(f"{sum(kept)} of {len(rows)} statements hold", all(kept))

    return Claim(
        number,
        statement,
        place,
        "every statement about it in theory.md holds to the bound stated there",
        judge,
        "theory.md lists what does not hold, and what cannot hold as printed",
    )


def _row(name: str) -> Claim:
    method = name.partition("-")[0]
    own = "".join(f", {key}={value}" for key, value in VARIANTS.get(name, {}).items())
    published = paper.TABLE1[method]

    def judge(evidence: Evidence) -> Judgement:
        curves = evidence.curves(table1.PROTOCOL.training, table1.PROTOCOL.methods[name])
        ours = {update: each(at(update), curves) for update in published}
        gaps = {
            update: over_seeds([curve[update] - accuracy for curve in curves.values()])
            for update, accuracy in published.items()
        }
        worst = max(gaps, key=lambda update: abs(gaps[update].value))
        shown = ", ".join(f"{ours[update]} ({published[update]:.2f})" for update in published)
        return Judgement(
            f"{shown}; largest gap {gaps[worst].value:+.3f} at {worst}",
            every(*(gap.within(ACCURACY_BOUND) for gap in gaps.values())),
        )

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


def _ratio(name: str) -> Claim:
    published = paper.TABLE2[name] / paper.TABLE2["sgd"]

    def judge(evidence: Evidence) -> Judgement:
        ratio = evidence.ratio(name, "plain")
        return Judgement(f"{ratio:,.0f}", published / FACTOR <= ratio <= published * FACTOR)

    return Claim(
        5,
        f"{TITLES[name]} takes {published:,.0f} times SGD's seconds (plain kernels)",
        "Table 2",
        f"within a factor of {FACTOR:g}",
        judge,
        "noise for all weights is drawn faster here than in 2019",
    )


_PARTS: Mapping[str, tuple[str, ...]] = {
    "the variational characterization of local entropy": ("Theorem 3.1", "equation (3.2)"),
    "the variational characterization of heat regularization": ("Theorem 4.1",),
    "Algorithm 1 is gradient descent on F_τ with rate τ": ("Section 3.1", "equation (3.5)"),
    "F_τ decreases monotonically along exact Algorithm 1": (
        "Section 3.2",
        "Section 3.2, theorem",
    ),
    "F^H_τ decreases monotonically along exact Algorithm 2": (
        "Section 4.2",
        "Section 4.2, theorem",
    ),
    "Algorithm 2 is implicit gradient descent on F^H_τ with rate τ": ("Section 5.2",),
}
"""Claim 1, part by part: where the statements of `theory.md` stand."""

_BIASES: Mapping[str, tuple[str, ...]] = {
    "minibatches bias importance sampling": ("exact_mean", "importance", "local_entropy"),
    "they do not bias what is linear in f: gradients, a move of SGLD, a move of Robbins-Monro": (
        "heat_gradient",
        "langevin_move",
        "robbins_monro_move",
    ),
    "so SGLD is asymptotically unbiased (a fresh minibatch for every move)": (
        "chain_fresh_minibatches",
    ),
    "so SGLD is unbiased in the experiments (one minibatch per weight update)": (
        "chain_one_minibatch",
    ),
}
"""Claim 12, part by part: what the statements of `theory.md` measure."""

THEOREMS = tuple(
    _statements(1, statement, "Sections 3 to 5", statements.THEOREMS, lambda one: one.place, places)
    for statement, places in _PARTS.items()
)
TABLE1 = tuple(_row(name) for name in table1.PROTOCOL.methods)
TABLE2 = (
    _thousand(),
    *map(_ratio, ("is", "sgld", "hr")),
)
MINIBATCHES = tuple(
    _statements(
        12, statement, "Section 5.1.2", statements.MINIBATCHES, lambda one: one.measure, measures
    )
    for statement, measures in _BIASES.items()
)
