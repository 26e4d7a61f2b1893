"""The settings of the readings: one otherwise at a time, and combinations named beforehand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reproduce import readings
from reproduce.experiments import figure5
from reproduce.experiments.variations import SGLD, heat_regularization
from reproduce.protocols import (
    TABLE1,
    Comparison,
    GradientDescent,
    LocalEntropyByImportanceSampling,
    Panels,
    Training,
)

_SUM = {"loss_multiplier": 20.0}
_GROWING = {"growing": True}
_OWN = _SUM | _GROWING
_NORMAL = {"initialization": "normal"}
_UNIFORM = {"initialization": "uniform"}
_TANH = {"activation": "tanh"}
_SIGMOID = {"activation": "sigmoid"}
_REPLACED = {"sampling": "replacement"}
_STANDARD = {"pixels": "standardised"}

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "Table 1's": {},
    "R2 sum": _SUM,
    "R5 growing": _GROWING,
    "R6 chain from the weights": {"persistent": False},
    "R8 normal": _NORMAL,
    "R8 uniform": _UNIFORM,
    "R9 j runs on": {"restart": False},
    "R13 tanh": _TANH,
    "R13 sigmoid": _SIGMOID,
    "R14 replacement": _REPLACED,
    "R15 standardised": _STANDARD,
    "R2 + R5": _OWN,
    "R2 + R5 + normal": _OWN | _NORMAL,
    "R2 + R5 + uniform": _OWN | _UNIFORM,
    "R2 + R5 + standardised": _OWN | _STANDARD,
    "R2 + R5 + tanh": _OWN | _TANH,
    "normal + standardised": _NORMAL | _STANDARD,
    "uniform + standardised": _UNIFORM | _STANDARD,
    "normal + tanh": _NORMAL | _TANH,
    "uniform + tanh": _UNIFORM | _TANH,
    "tanh + standardised": _TANH | _STANDARD,
    "normal + replacement": _NORMAL | _REPLACED,
    "R2 + R5 + normal + standardised": _OWN | _NORMAL | _STANDARD,
}
"""What is chosen otherwise than by default, on Table 1."""

_TAUS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_CAPTION = 1500 ** (1 / 500) - 1
"""R11: tau1 such that tau falls from 1.5 to 0.001 in 500 updates, as Figure 8's caption has it."""


def protocol(table1: Comparison, after: Training, small: Training, samples: int) -> Panels:
    """Returns a panel per setting of Table 1, and five for Figures 5 to 8.

    Args:
        table1: Table 1.
        after: Figure 5's training set-up.
        small: Figure 7's.
        samples: Of the methods in those figures.
    """
    settings = {name: readings.choose(table1, chosen) for name, chosen in SETTINGS.items()}
    summed = {
        f"IS, tau = {tau:g}": LocalEntropyByImportanceSampling(tau, samples, **_SUM)
        for tau in _TAUS
    }
    scoped = {row: sgld(tau=1.5, samples=samples, tau1=_CAPTION) for row, sgld in SGLD.items()}
    both = {
        "IS, sum": LocalEntropyByImportanceSampling(samples=samples, **_SUM),
        "HR, growing": replace(table1.methods["hr"], **_GROWING),
    }
    growing = {
        f"HR, S = {count}": replace(heat_regularization(count * samples // 1000), **_GROWING)
        for count in (10, 100, 1000)
    }
    slow = {f"SGD, learning rate {tau:g}": GradientDescent(tau) for tau in _TAUS[:3]}
    return Panels(
        settings
        | {
            "R2 sum and R5 growing, Figure 5": Comparison(after, both),
            "R5 growing, Figure 6": Comparison(table1.training, growing),
            "R2 sum, Figure 7": Comparison(small, summed),
            "R11 from 1.5 to 0.001, Figure 8": Comparison(table1.training, scoped),
            "SGD with a small learning rate, Figure 7": Comparison(small, slow),
        }
    )


PROTOCOL = protocol(TABLE1, figure5.TRAINING, Training(network="small_dense"), 1000)
"""The screen, at the paper's budget."""

_SHORT = Training(updates=6, test_images=100, evaluate_every=3, tabulated=(6,))
QUICK = protocol(
    replace(TABLE1.with_budget(samples=4), training=_SHORT),
    replace(_SHORT, sgd_updates=6, tabulated=(12,)),
    replace(_SHORT, network="small_dense"),
    samples=100,
)
"""The same at a budget for a first look; not the paper's."""
