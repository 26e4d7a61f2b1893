"""The paper's statements, where each stands, and what decides it."""

from functools import partial

from reproduce.theory.statement import AS_PRINTED, Statement

_identities = partial(Statement, "identities")
_algorithm1 = partial(Statement, "algorithm1")
_algorithm2 = partial(Statement, "algorithm2")
_readings = partial(Statement, "readings")
_steps = partial(Statement, "growing-steps")
_minibatches = partial(Statement, "minibatches")

THEOREMS: tuple[Statement, ...] = (
    _identities("E_q f + KL(q ‖ φ_x) = F_τ(x) at q = q_{x,τ}", "Theorem 3.1", "local_entropy_at_q"),
    _identities(
        "E_q f + KL(q ‖ φ_x) > F_τ(x) at five other densities",
        "Theorem 3.1",
        "local_entropy_elsewhere",
        above=1e-6,
    ),
    _identities("that gap is KL(q ‖ q_{x,τ})", "equation (3.2)", "local_entropy_gap"),
    _identities(
        "log E_q exp f + KL(φ_x ‖ q) = F^H_τ(x) at q = q_{x,τ}", "Theorem 4.1", "heat_at_q"
    ),
    _identities(
        "log E_q exp f + KL(φ_x ‖ q) > F^H_τ(x) at five other densities",
        "Theorem 4.1",
        "heat_elsewhere",
        above=1e-6,
    ),
    _identities(
        "that gap is KL(φ_x ‖ q exp f / E_q exp f), which is the proof the paper omits",
        "Theorem 4.1",
        "heat_gap",
    ),
    _identities(
        "grad F_τ(x) = (x - E_q X) / τ, the left side by finite differences",
        "Section 3.1",
        "gradient",
    ),
    _algorithm1(
        "Algorithm 1 is gradient descent on F_τ with rate τ, update by update",
        "equation (3.5)",
        "gradient_step",
    ),
    _identities("A(x, x) = F_τ(x)", "Section 3.2", "majorizer_touches"),
    _identities("A(y, x) > F_τ(y) for y ≠ x", "Section 3.2", "majorizer_above", above=0.0),
    _identities(
        "A(y, x) = A(m, x) + ‖y - m‖² / 2τ with m Algorithm 1's update: its only minimiser",
        "Section 3.2",
        "majorizer_minimiser",
    ),
    _algorithm1(
        "the quadrature's error of a step of F_τ along exact Algorithm 1",
        "Section 3.2, theorem",
        "quadrature_error",
    ),
    _algorithm1(
        "F_τ never rises along exact Algorithm 1 (beyond the quadrature's error)",
        "Section 3.2, theorem",
        "violation",
        at_most=0.0,
    ),
    _algorithm1(
        "it falls by at least ‖x_{k+1} - x_k‖² / 2τ, so that equality needs a critical point",
        "Section 3.2, theorem",
        "surplus",
        above=0.0,
    ),
    _identities("A^H(x, x) = F^H_τ(x)", "Section 4.2", "heat_majorizer_touches"),
    _identities("A^H(y, x) > F^H_τ(y) for y ≠ x", "Section 4.2", "heat_majorizer_above", above=0.0),
    _algorithm2(
        "the quadrature's error of a step of F^H_τ along exact Algorithm 2",
        "Section 4.2, theorem",
        "quadrature_error",
    ),
    _algorithm2(
        "F^H_τ never rises along exact Algorithm 2 (beyond the quadrature's error)",
        "Section 4.2, theorem",
        "violation",
        at_most=0.0,
    ),
    _algorithm2(
        "it falls by at least ‖x_{k+1} - x_k‖² / 2τ", "Section 4.2, theorem", "surplus", above=0.0
    ),
    _algorithm2(
        "Algorithm 2 is implicit gradient descent on F^H_τ with rate τ (a proximal point step)",
        "Section 5.2",
        "gradient_step",
    ),
    _identities(
        "h(y) = y - x + τ E grad f is τ times the derivative of KL(φ_y ‖ q_{x,τ})",
        "Section 5.2",
        "euler_lagrange",
    ),
)
"""What the theorems and the derivations state."""

READINGS: tuple[Statement, ...] = (
    _readings(
        "F_τ = -log Z with Z of equation (2.6): off by",
        "proof of Theorem 3.1",
        "constant_as_printed",
        otherwise=AS_PRINTED,
    ),
    _readings(
        "instead: F_τ = -log Z + (d/2) log 2πτ; equation (3.2) lacks the same constant",
        "proof of Theorem 3.1",
        "constant_restored",
    ),
    _readings(
        "F_τ ∝ -log(ρ_f * φ): spread of the ratio over x",
        "equation (2.5)",
        "ratio_spread",
        otherwise=AS_PRINTED,
    ),
    _readings(
        "instead: F_τ = -log(ρ_f * φ) - log ∫exp(-f), where that integral exists",
        "equation (2.5)",
        "difference_is_constant",
    ),
    _readings(
        "F_τ becomes constant as τ → ∞: slope of F_τ at τ = 1, 10, 100 for f = 1.5 x",
        "Section 2.1",
        "gradient_of_slope",
        at_most=0.1,
        otherwise=AS_PRINTED,
    ),
    _readings(
        "instead: grad F_τ → 0 where exp(-f) is integrable (double well, τ = 100)",
        "Section 2.1",
        "gradient_of_well",
        at_most=0.1,
    ),
    _readings(
        "while the level of F_τ grows as (d/2) log τ: slope in log τ (d = 1)",
        "Section 2.1",
        "growth_per_log_tau",
        above=0.45,
    ),
    _readings(
        "F_τ(x) small requires f small throughout the neighbourhood: F_τ at a hole of f, where "
        "F^H_τ is 18 of 20",
        "Section 2.1",
        "hole_local_entropy",
        above=10.0,
        otherwise=AS_PRINTED,
    ),
    _readings(
        "instead: F_τ is a soft minimum of f over about sqrt(τ), F_τ < F^H_τ",
        "Section 2.1",
        "below_heat",
        above=0.0,
    ),
    _readings(
        "and F_τ > min f: a minimum deepens only relative to its surroundings and to others",
        "caption of Figure 1",
        "above_lowest",
        above=0.0,
    ),
    _identities(
        "A^H's first term is F_τ(x̃), a constant in x: only the divergence is minimised",
        "Section 4.2",
        "heat_majorizer_constant",
    ),
    _readings(
        "x_k = x_{k+1} if F^H_τ is critical at x_k (the proof is called identical to Section "
        "3.2's): step of Algorithm 2 from the ridge of a double well",
        "Section 4.2, theorem",
        "step_from_ridge",
        otherwise=AS_PRINTED,
    ),
    _readings(
        "instead: only the converse holds; F^H_τ falls on leaving the critical point by",
        "Section 4.2, theorem",
        "decrease_from_ridge",
        above=0.0,
    ),
    _readings(
        "minimisers of KL(φ_y ‖ q) need not be unique: two of equal divergence, apart by",
        "Section 4.1",
        "minimisers_apart",
        above=0.1,
    ),
    _steps(
        "Robbins-Monro steps c l^α: what is left of the way to the fixed point after 200",
        "Section 5.2",
        "growing",
        at_most=1.0,
        otherwise=AS_PRINTED,
    ),
    _steps(
        "instead: c l^(-α), what is left of the way after 200",
        "Section 5.2",
        "decaying",
        at_most=1.0,
    ),
)
"""Where the text cannot hold as printed, and what does."""

MINIBATCHES: tuple[Statement, ...] = (
    _minibatches(
        "minibatches bias importance sampling: mean of E_q X over all minibatches against the "
        "full data, relative to the step",
        "Section 5.1.2",
        "exact_mean",
        above=0.01,
    ),
    _minibatches(
        "the same of Algorithm 4 itself (the kernel, J samples)",
        "Section 5.1.2",
        "importance",
        above=0.01,
    ),
    _minibatches(
        "since F_τ is not linear in f: mean of F_τ over the minibatches against the full data",
        "Section 5.1.2",
        "local_entropy",
        above=1e-6,
    ),
    _minibatches(
        "gradients are linear in f, hence unbiased: grad F^H_τ", "Section 5.1.2", "heat_gradient"
    ),
    _minibatches("one move of Algorithm 3 (the kernel)", "Section 5.1.2", "langevin_move"),
    _minibatches("one move of Algorithm 5 (the kernel)", "Section 5.1.2", "robbins_monro_move"),
    _minibatches(
        "SGLD is asymptotically unbiased with a fresh minibatch for every move: bias of the "
        "chain's long-run mean, relative to the step, is of order ε: divided by ε",
        "Section 5.1.2",
        "chain_fresh_minibatches",
        at_most=1.0,
    ),
    _minibatches(
        "that order: slope of the bias in ε, as logarithms, between the two smallest ε, less 1",
        "Section 5.1.2",
        "chain_fresh_order",
        at_most=0.1,
    ),
    _minibatches(
        "and with one minibatch per weight update, as in the experiments: bias, not divided",
        "Section 5.1.2; Section 6",
        "chain_one_minibatch",
        at_most=0.02,
        otherwise="no: importance sampling's bias",
    ),
)
"""Claim 12."""
