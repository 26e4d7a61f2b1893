"""The runs that claims are about, by what they are: method and training set-up."""

from dataclasses import replace
from typing import Any

from reproduce import paper
from reproduce.claims.evidence import Evidence
from reproduce.experiments import figure5
from reproduce.experiments.variations import ScopedMethod, heat_regularization
from reproduce.protocols import (
    TABLE1,
    VARIANTS,
    Case,
    GradientDescent,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Training,
)
from reproduce.summary import ROW_TITLES

NOISES = {"sgld": "as printed", "sgld-linear": "noise=linear"}
"""SGLD under both readings of its noise, R1."""

NAMES = {row: ROW_TITLES[row] for row in TABLE1.methods}
"""The rows of Table 1 in words."""

METHODS = tuple(name for name in NAMES if name != "sgd")

COLUMNS = (100, 200, 300, 400, 500)
"""Table 1's."""

SMALL = Training(network="small_dense")
"""The small network, as Figure 7 trains it."""

(_AFTER_SGD,) = figure5.PROTOCOL.panels.values()


def table1(row: str) -> Case:
    """Returns a row of Table 1."""
    return Case(TABLE1.training, TABLE1.methods[row])


def published(*rows: str) -> Evidence:
    """Returns the paper's rows of Table 1; both readings of SGLD have the same."""
    curves = {table1(row): paper.TABLE1[row.partition("-")[0]] for row in rows}
    return Evidence().instead({case: {0: curve} for case, curve in curves.items()})


def sgld(noise: str, **settings: Any) -> LocalEntropyBySGLD:
    """Returns SGLD under a reading of its noise, with other settings than Table 1's."""
    return replace(LocalEntropyBySGLD(**VARIANTS.get(noise, {})), **settings)


def after_sgd(row: str) -> Case:
    """Returns a method's updates after SGD's (Figure 5)."""
    return _AFTER_SGD.cases()[row]


def sampled(row: str, samples: int) -> Case:
    """Returns a method with so many samples (Figure 6)."""
    if row == "hr":
        return Case(TABLE1.training, heat_regularization(samples))
    if row == "is":
        return Case(TABLE1.training, LocalEntropyByImportanceSampling(samples=samples))
    return Case(TABLE1.training, sgld(row, samples=samples))


def small(row: str, tau: float) -> Case:
    """Returns a method on the small network (Figure 7); SGD with tau as its learning rate."""
    if row == "sgd":
        return Case(SMALL, GradientDescent(tau))
    method = LocalEntropyByImportanceSampling(tau) if row == "is" else sgld(row, tau=tau)
    return Case(SMALL, method)


def scoped(row: str, schedule: ScopedMethod) -> Case:
    """Returns SGLD with a schedule of tau (Figure 8)."""
    return Case(TABLE1.training, sgld(row, tau=schedule.tau0, tau1=schedule.tau1))
