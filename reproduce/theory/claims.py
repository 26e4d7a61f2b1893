"""The paper's statements, where each stands, and what decides it."""

from dataclasses import dataclass

from reproduce.theory.statement import AS_PRINTED, FAILS, ROUNDING, Statement


@dataclass(frozen=True)
class _Part:
    """The runs that measure statements."""

    name: str

    def equal(
        self,
        statement: str,
        place: str,
        measure: str,
        bound: float = ROUNDING,
        otherwise: str = FAILS,
    ) -> Statement:
        """Returns what holds where no measured number is above the bound."""
        return Statement(statement, place, self.name, measure, "largest", bound, otherwise)

    def above(
        self,
        statement: str,
        place: str,
        measure: str,
        bound: float = 0.0,
        otherwise: str = FAILS,
    ) -> Statement:
        """Returns what holds where every measured number is above the bound."""
        return Statement(statement, place, self.name, measure, "smallest", bound, otherwise)


_IDENTITIES = _Part("identities")
_ALGORITHM_1 = _Part("algorithm1")
_ALGORITHM_2 = _Part("algorithm2")
_READINGS = _Part("readings")
_STEPS = _Part("growing-steps")
_MINIBATCHES = _Part("minibatches")

THEOREMS: tuple[Statement, ...] = (
    _IDENTITIES.equal(
        "E_q f + KL(q ‖ φ_x) = F_τ(x) at q = q_{x,τ}", "Theorem 3.1", "local_entropy_at_q"
    ),
    _IDENTITIES.above(
        "E_q f + KL(q ‖ φ_x) > F_τ(x) at five other densities",
        "Theorem 3.1",
        "local_entropy_elsewhere",
        1e-6,
    ),
    _IDENTITIES.equal("that gap is KL(q ‖ q_{x,τ})", "equation (3.2)", "local_entropy_gap"),
    _IDENTITIES.equal(
        "log E_q exp f + KL(φ_x ‖ q) = F^H_τ(x) at q = q_{x,τ}", "Theorem 4.1", "heat_at_q"
    ),
    _IDENTITIES.above(
        "log E_q exp f + KL(φ_x ‖ q) > F^H_τ(x) at five other densities",
        "Theorem 4.1",
        "heat_elsewhere",
        1e-6,
    ),
    _IDENTITIES.equal(
        "that gap is KL(φ_x ‖ q exp f / E_q exp f), which is the proof the paper omits",
        "Theorem 4.1",
        "heat_gap",
    ),
    _IDENTITIES.equal(
        "grad F_τ(x) = (x - E_q X) / τ, the left side by finite differences",
        "Section 3.1",
        "gradient",
    ),
    _ALGORITHM_1.equal(
        "Algorithm 1 is gradient descent on F_τ with rate τ, update by update",
        "equation (3.5)",
        "gradient_step",
    ),
    _IDENTITIES.equal("A(x, x) = F_τ(x)", "Section 3.2", "majorizer_touches"),
    _IDENTITIES.above("A(y, x) > F_τ(y) for y ≠ x", "Section 3.2", "majorizer_above"),
    _IDENTITIES.equal(
        "A(y, x) = A(m, x) + ‖y - m‖² / 2τ with m Algorithm 1's update: its only minimiser",
        "Section 3.2",
        "majorizer_minimiser",
    ),
    _ALGORITHM_1.equal(
        "the quadrature's error of a step of F_τ along exact Algorithm 1",
        "Section 3.2, theorem",
        "quadrature_error",
    ),
    _ALGORITHM_1.equal(
        "F_τ never rises along exact Algorithm 1 (beyond the quadrature's error)",
        "Section 3.2, theorem",
        "violation",
        0.0,
    ),
    _ALGORITHM_1.above(
        "it falls by at least ‖x_{k+1} - x_k‖² / 2τ, so that equality needs a critical point",
        "Section 3.2, theorem",
        "surplus",
    ),
    _IDENTITIES.equal("A^H(x, x) = F^H_τ(x)", "Section 4.2", "heat_majorizer_touches"),
    _IDENTITIES.above("A^H(y, x) > F^H_τ(y) for y ≠ x", "Section 4.2", "heat_majorizer_above"),
    _ALGORITHM_2.equal(
        "the quadrature's error of a step of F^H_τ along exact Algorithm 2",
        "Section 4.2, theorem",
        "quadrature_error",
    ),
    _ALGORITHM_2.equal(
        "F^H_τ never rises along exact Algorithm 2 (beyond the quadrature's error)",
        "Section 4.2, theorem",
        "violation",
        0.0,
    ),
    _ALGORITHM_2.above(
        "it falls by at least ‖x_{k+1} - x_k‖² / 2τ", "Section 4.2, theorem", "surplus"
    ),
    _ALGORITHM_2.equal(
        "Algorithm 2 is implicit gradient descent on F^H_τ with rate τ (a proximal point step)",
        "Section 5.2",
        "gradient_step",
    ),
    _IDENTITIES.equal(
        "h(y) = y - x + τ E grad f is τ times the derivative of KL(φ_y ‖ q_{x,τ})",
        "Section 5.2",
        "euler_lagrange",
    ),
)
"""What the theorems and the derivations state."""

READINGS: tuple[Statement, ...] = (
    _READINGS.equal(
        "F_τ = -log Z with Z of equation (2.6): off by",
        "proof of Theorem 3.1",
        "constant_as_printed",
        otherwise=AS_PRINTED,
    ),
    _READINGS.equal(
        "instead: F_τ = -log Z + (d/2) log 2πτ; equation (3.2) lacks the same constant",
        "proof of Theorem 3.1",
        "constant_restored",
    ),
    _READINGS.equal(
        "F_τ ∝ -log(ρ_f * φ): spread of the ratio over x",
        "equation (2.5)",
        "ratio_spread",
        otherwise=AS_PRINTED,
    ),
    _READINGS.equal(
        "instead: F_τ = -log(ρ_f * φ) - log ∫exp(-f), where that integral exists",
        "equation (2.5)",
        "difference_is_constant",
    ),
    _READINGS.equal(
        "F_τ becomes constant as τ → ∞: slope of F_τ at τ = 1, 10, 100 for f = 1.5 x",
        "Section 2.1",
        "gradient_of_slope",
        0.1,
        otherwise=AS_PRINTED,
    ),
    _READINGS.equal(
        "instead: grad F_τ → 0 where exp(-f) is integrable (double well, τ = 100)",
        "Section 2.1",
        "gradient_of_well",
        0.1,
    ),
    _READINGS.above(
        "while the level of F_τ grows as (d/2) log τ: slope in log τ (d = 1)",
        "Section 2.1",
        "growth_per_log_tau",
        0.45,
    ),
    _READINGS.above(
        "F_τ(x) small requires f small throughout the neighbourhood: F_τ at a hole of f, where "
        "F^H_τ is 18 of 20",
        "Section 2.1",
        "hole_local_entropy",
        10.0,
        otherwise=AS_PRINTED,
    ),
    _READINGS.above(
        "instead: F_τ is a soft minimum of f over about sqrt(τ), F_τ < F^H_τ",
        "Section 2.1",
        "below_heat",
    ),
    _READINGS.above(
        "and F_τ > min f: a minimum deepens only relative to its surroundings and to others",
        "caption of Figure 1",
        "above_lowest",
    ),
    _IDENTITIES.equal(
        "A^H's first term is F_τ(x̃), a constant in x: only the divergence is minimised",
        "Section 4.2",
        "heat_majorizer_constant",
    ),
    _READINGS.equal(
        "x_k = x_{k+1} if F^H_τ is critical at x_k (the proof is called identical to Section "
        "3.2's): step of Algorithm 2 from the ridge of a double well",
        "Section 4.2, theorem",
        "step_from_ridge",
        otherwise=AS_PRINTED,
    ),
    _READINGS.above(
        "instead: only the converse holds; F^H_τ falls on leaving the critical point by",
        "Section 4.2, theorem",
        "decrease_from_ridge",
    ),
    _READINGS.above(
        "minimisers of KL(φ_y ‖ q) need not be unique: two of equal divergence, apart by",
        "Section 4.1",
        "minimisers_apart",
        0.1,
    ),
    _STEPS.equal(
        "Robbins-Monro steps c l^α: what is left of the way to the fixed point after 200",
        "Section 5.2",
        "growing",
        1.0,
        otherwise=AS_PRINTED,
    ),
    _STEPS.equal(
        "instead: c l^(-α), what is left of the way after 200", "Section 5.2", "decaying", 1.0
    ),
)
"""Where the text cannot hold as printed, and what does."""

MINIBATCHES: tuple[Statement, ...] = (
    _MINIBATCHES.above(
        "minibatches bias importance sampling: mean of E_q X over all minibatches against the "
        "full data, relative to the step",
        "Section 5.1.2",
        "exact_mean",
        0.01,
    ),
    _MINIBATCHES.above(
        "the same of Algorithm 4 itself (the kernel, J samples)",
        "Section 5.1.2",
        "importance",
        0.01,
    ),
    _MINIBATCHES.above(
        "since F_τ is not linear in f: mean of F_τ over the minibatches against the full data",
        "Section 5.1.2",
        "local_entropy",
        1e-6,
    ),
    _MINIBATCHES.equal(
        "gradients are linear in f, hence unbiased: grad F^H_τ", "Section 5.1.2", "heat_gradient"
    ),
    _MINIBATCHES.equal("one move of Algorithm 3 (the kernel)", "Section 5.1.2", "langevin_move"),
    _MINIBATCHES.equal(
        "one move of Algorithm 5 (the kernel)", "Section 5.1.2", "robbins_monro_move"
    ),
    _MINIBATCHES.equal(
        "SGLD is asymptotically unbiased with a fresh minibatch for every move: bias of the "
        "chain's long-run mean, relative to the step, is of order ε: divided by ε",
        "Section 5.1.2",
        "chain_fresh_minibatches",
        1.0,
    ),
    _MINIBATCHES.equal(
        "that order: slope of the bias in ε, as logarithms, between the two smallest ε, less 1",
        "Section 5.1.2",
        "chain_fresh_order",
        0.1,
    ),
    _MINIBATCHES.equal(
        "and with one minibatch per weight update, as in the experiments: bias, not divided",
        "Section 5.1.2; Section 6",
        "chain_one_minibatch",
        0.02,
        otherwise="no: importance sampling's bias",
    ),
)
"""Claim 12."""
