"""Claims 1 and 12: theorems and minibatches, by the statements of `theory.md`."""

from collections.abc import Mapping, Sequence

from reproduce.claims.claim import BEYOND, Claim
from reproduce.claims.evidence import Evidence
from reproduce.claims.parts import Fact
from reproduce.theory import claims as statements
from reproduce.theory.statement import HOLDS, Statement


def _bundle(key: str, topic: int, statement: str, place: str, parts: Sequence[Statement]) -> Claim:
    def rule(evidence: Evidence) -> list[Fact]:
        rows = [evidence.statement(one) for one in parts]
        return [
            Fact(f"{one.statement} ({one.rule})", row.verdict == HOLDS, f"{row.measured:.2g}")
            for one, row in zip(parts, rows, strict=True)
        ]

    return Claim(key, topic, statement, place, rule, seeds=0)


_THEOREMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "theorem.local-entropy": (
        "the variational characterization of local entropy",
        ("Theorem 3.1", "equation (3.2)"),
    ),
    "theorem.heat": ("the variational characterization of heat regularization", ("Theorem 4.1",)),
    "theorem.gradient-descent": (
        "Algorithm 1 is gradient descent on F_τ with rate τ",
        ("Section 3.1", "equation (3.5)"),
    ),
    "theorem.monotone-1": (
        "F_τ decreases monotonically along exact Algorithm 1",
        ("Section 3.2", "Section 3.2, theorem"),
    ),
    "theorem.monotone-2": (
        "F^H_τ decreases monotonically along exact Algorithm 2",
        ("Section 4.2", "Section 4.2, theorem"),
    ),
    "theorem.implicit": (
        "Algorithm 2 is implicit gradient descent on F^H_τ with rate τ",
        ("Section 5.2",),
    ),
}
"""Claim 1, part by part: where the statements of `theory.md` stand."""

_BIASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "minibatches.importance": (
        "minibatches bias importance sampling",
        ("exact_mean", "importance", "local_entropy"),
    ),
    "minibatches.linear": (
        "they do not bias what is linear in f: gradients, a move of SGLD, a move of Robbins-Monro",
        ("heat_gradient", "langevin_move", "robbins_monro_move"),
    ),
    "minibatches.fresh": (
        "so SGLD is asymptotically unbiased (a fresh minibatch for every move)",
        ("chain_fresh_minibatches", "chain_fresh_order"),
    ),
    "minibatches.one": (
        f"{BEYOND}SGLD is unbiased with one minibatch per weight update too",
        ("chain_one_minibatch",),
    ),
}
"""Claim 12, part by part: what the statements of `theory.md` measure."""

THEOREMS = tuple(
    _bundle(
        key,
        1,
        statement,
        "Sections 3 to 5",
        [one for one in statements.THEOREMS if one.place in places],
    )
    for key, (statement, places) in _THEOREMS.items()
)
MINIBATCHES = tuple(
    _bundle(
        key,
        12,
        statement,
        "Section 5.1.2",
        [one for one in statements.MINIBATCHES if one.measure in measures],
    )
    for key, (statement, measures) in _BIASES.items()
)
