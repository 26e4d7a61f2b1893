"""The paper's statements, where each stands, and what decides it."""

from reproduce.theory.statement import AS_PRINTED, HOLDS, ROUNDING, Statement

_IDENTITIES, _ALGORITHM_1, _ALGORITHM_2 = "identities", "algorithm1", "algorithm2"
_READINGS, _STEPS, _MINIBATCHES = "readings", "growing-steps", "minibatches"


def _equal(
    statement: str, place: str, part: str, measure: str, bound: float = ROUNDING
) -> Statement:
    return Statement(statement, place, part, measure, "largest", bound)


def _above(
    statement: str, place: str, part: str, measure: str, bound: float = 0.0, verdict: str = HOLDS
) -> Statement:
    return Statement(statement, place, part, measure, "smallest", bound, verdict)


THEOREMS: tuple[Statement, ...] = (
    _equal(
        "E_q f + KL(q ‖ φ_x) = F_τ(x) at q = q_{x,τ}",
        "Theorem 3.1",
        _IDENTITIES,
        "local_entropy_at_q",
    ),
    _above(
        "E_q f + KL(q ‖ φ_x) > F_τ(x) at five other densities",
        "Theorem 3.1",
        _IDENTITIES,
        "local_entropy_elsewhere",
        1e-6,
    ),
    _equal("that gap is KL(q ‖ q_{x,τ})", "equation (3.2)", _IDENTITIES, "local_entropy_gap"),
    _equal(
        "log E_q exp f + KL(φ_x ‖ q) = F^H_τ(x) at q = q_{x,τ}",
        "Theorem 4.1",
        _IDENTITIES,
        "heat_at_q",
    ),
    _above(
        "log E_q exp f + KL(φ_x ‖ q) > F^H_τ(x) at five other densities",
        "Theorem 4.1",
        _IDENTITIES,
        "heat_elsewhere",
        1e-6,
    ),
    _equal(
        "that gap is KL(φ_x ‖ q exp f / E_q exp f), which is the proof the paper omits",
        "Theorem 4.1",
        _IDENTITIES,
        "heat_gap",
    ),
    _equal(
        "grad F_τ(x) = (x - E_q X) / τ, the left side by finite differences",
        "Section 3.1",
        _IDENTITIES,
        "gradient",
    ),
    _equal(
        "Algorithm 1 is gradient descent on F_τ with rate τ, update by update",
        "equation (3.5)",
        _ALGORITHM_1,
        "gradient_step",
    ),
    _equal("A(x, x) = F_τ(x)", "Section 3.2", _IDENTITIES, "majorizer_touches"),
    _above("A(y, x) > F_τ(y) for y ≠ x", "Section 3.2", _IDENTITIES, "majorizer_above"),
    _equal(
        "A(y, x) = A(m, x) + ‖y - m‖² / 2τ with m Algorithm 1's update: its only minimiser",
        "Section 3.2",
        _IDENTITIES,
        "majorizer_minimiser",
    ),
    _equal(
        "the quadrature's error of a step of F_τ along exact Algorithm 1",
        "Section 3.2, theorem",
        _ALGORITHM_1,
        "quadrature_error",
    ),
    _equal(
        "F_τ never rises along exact Algorithm 1 (beyond the quadrature's error)",
        "Section 3.2, theorem",
        _ALGORITHM_1,
        "violation",
        0.0,
    ),
    _above(
        "it falls by at least ‖x_{k+1} - x_k‖² / 2τ, so that equality needs a critical point",
        "Section 3.2, theorem",
        _ALGORITHM_1,
        "surplus",
    ),
    _equal("A^H(x, x) = F^H_τ(x)", "Section 4.2", _IDENTITIES, "heat_majorizer_touches"),
    _above("A^H(y, x) > F^H_τ(y) for y ≠ x", "Section 4.2", _IDENTITIES, "heat_majorizer_above"),
    _equal(
        "the quadrature's error of a step of F^H_τ along exact Algorithm 2",
        "Section 4.2, theorem",
        _ALGORITHM_2,
        "quadrature_error",
    ),
    _equal(
        "F^H_τ never rises along exact Algorithm 2 (beyond the quadrature's error)",
        "Section 4.2, theorem",
        _ALGORITHM_2,
        "violation",
        0.0,
    ),
    _above(
        "it falls by at least ‖x_{k+1} - x_k‖² / 2τ",
        "Section 4.2, theorem",
        _ALGORITHM_2,
        "surplus",
    ),
    _equal(
        "Algorithm 2 is implicit gradient descent on F^H_τ with rate τ (a proximal point step)",
        "Section 5.2",
        _ALGORITHM_2,
        "gradient_step",
    ),
    _equal(
        "h(y) = y - x + τ E grad f is τ times the derivative of KL(φ_y ‖ q_{x,τ})",
        "Section 5.2",
        _IDENTITIES,
        "euler_lagrange",
    ),
)
"""What the theorems and the derivations state."""

READINGS: tuple[Statement, ...] = (
    Statement(
        "F_τ = -log Z with Z of equation (2.6): off by",
        "proof of Theorem 3.1",
        _READINGS,
        "constant_as_printed",
        "largest",
        verdict=HOLDS,
        otherwise=AS_PRINTED,
    ),
    _equal(
        "instead: F_τ = -log Z + (d/2) log 2πτ; equation (3.2) lacks the same constant",
        "proof of Theorem 3.1",
        _READINGS,
        "constant_restored",
    ),
    Statement(
        "F_τ ∝ -log(ρ_f * φ): spread of the ratio over x",
        "equation (2.5)",
        _READINGS,
        "ratio_spread",
        "largest",
        verdict=HOLDS,
        otherwise=AS_PRINTED,
    ),
    _equal(
        "instead: F_τ = -log(ρ_f * φ) - log ∫exp(-f), where that integral exists",
        "equation (2.5)",
        _READINGS,
        "difference_is_constant",
    ),
    Statement(
        "F_τ becomes constant as τ → ∞: slope of F_τ at τ = 1, 10, 100 for f = 1.5 x",
        "Section 2.1",
        _READINGS,
        "gradient_of_slope",
        "largest",
        0.1,
        verdict=HOLDS,
        otherwise=AS_PRINTED,
    ),
    _equal(
        "instead: grad F_τ → 0 where exp(-f) is integrable (double well, τ = 100)",
        "Section 2.1",
        _READINGS,
        "gradient_of_well",
        0.1,
    ),
    _above(
        "while the level of F_τ grows as (d/2) log τ: slope in log τ (d = 1)",
        "Section 2.1",
        _READINGS,
        "growth_per_log_tau",
        0.45,
    ),
    Statement(
        "F_τ(x) small requires f small throughout the neighbourhood: F_τ at a hole of f, where "
        "F^H_τ is 18 of 20",
        "Section 2.1",
        _READINGS,
        "hole_local_entropy",
        "smallest",
        10.0,
        verdict=HOLDS,
        otherwise=AS_PRINTED,
    ),
    _above(
        "instead: F_τ is a soft minimum of f over about sqrt(τ), F_τ < F^H_τ",
        "Section 2.1",
        _READINGS,
        "below_heat",
    ),
    _above(
        "and F_τ > min f: a minimum deepens only relative to its surroundings and to others",
        "caption of Figure 1",
        _READINGS,
        "above_lowest",
    ),
    _equal(
        "A^H's first term is F_τ(x̃), a constant in x: only the divergence is minimised",
        "Section 4.2",
        _IDENTITIES,
        "heat_majorizer_constant",
    ),
    Statement(
        "x_k = x_{k+1} if F^H_τ is critical at x_k (the proof is called identical to "
        "Section 3.2's): step of Algorithm 2 from the ridge of a double well",
        "Section 4.2, theorem",
        _READINGS,
        "step_from_ridge",
        "largest",
        verdict=HOLDS,
        otherwise=AS_PRINTED,
    ),
    _above(
        "instead: only the converse holds; F^H_τ falls on leaving the critical point by",
        "Section 4.2, theorem",
        _READINGS,
        "decrease_from_ridge",
    ),
    _above(
        "minimisers of KL(φ_y ‖ q) need not be unique: two of equal divergence, apart by",
        "Section 4.1",
        _READINGS,
        "minimisers_apart",
        0.1,
    ),
    Statement(
        "Robbins-Monro steps c l^α: what is left of the way to the fixed point after 200",
        "Section 5.2",
        _STEPS,
        "growing",
        "largest",
        1.0,
        verdict=HOLDS,
        otherwise=AS_PRINTED,
    ),
    _equal(
        "instead: c l^(-α), what is left of the way after 200",
        "Section 5.2",
        _STEPS,
        "decaying",
        1.0,
    ),
)
"""Where the text cannot hold as printed, and what does."""

MINIBATCHES: tuple[Statement, ...] = (
    _above(
        "minibatches bias importance sampling: mean of E_q X over all minibatches against the "
        "full data, relative to the step",
        "Section 5.1.2",
        _MINIBATCHES,
        "exact_mean",
        0.01,
    ),
    _above(
        "the same of Algorithm 4 itself (the kernel, J samples)",
        "Section 5.1.2",
        _MINIBATCHES,
        "importance",
        0.01,
    ),
    _above(
        "since F_τ is not linear in f: mean of F_τ over the minibatches against the full data",
        "Section 5.1.2",
        _MINIBATCHES,
        "local_entropy",
        1e-6,
    ),
    _equal(
        "gradients are linear in f, hence unbiased: grad F^H_τ",
        "Section 5.1.2",
        _MINIBATCHES,
        "heat_gradient",
    ),
    _equal("one move of Algorithm 3 (the kernel)", "Section 5.1.2", _MINIBATCHES, "langevin_move"),
    _equal(
        "one move of Algorithm 5 (the kernel)",
        "Section 5.1.2",
        _MINIBATCHES,
        "robbins_monro_move",
    ),
    _equal(
        "SGLD is asymptotically unbiased with a fresh minibatch for every move: bias of the "
        "chain's long-run mean, relative to the step, is of order ε: divided by ε",
        "Section 5.1.2",
        _MINIBATCHES,
        "chain_fresh_minibatches",
        1.0,
    ),
    _equal(
        "that order: slope of the bias in ε, as logarithms, between the two smallest ε, less 1",
        "Section 5.1.2",
        _MINIBATCHES,
        "chain_fresh_order",
        0.1,
    ),
    Statement(
        "and with one minibatch per weight update, as in the experiments: bias, not divided",
        "Section 5.1.2; Section 6",
        _MINIBATCHES,
        "chain_one_minibatch",
        "largest",
        0.02,
        verdict=HOLDS,
        otherwise="no: importance sampling's bias",
    ),
)
"""Claim 12."""
