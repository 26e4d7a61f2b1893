"""Every hyper-parameter of the paper's experiments, with its place in the paper beside it.

Where the text is silent or ambiguous the choice is a field here, never a silent one; the readings
carry the numbers R1, R2, ... under which the project lists them, and `readings.py` says them in
words. These have one reading each and no field: the first state of Algorithms 3 and 5, called x^0
there, is their x^1, so Algorithm 3 averages J states after J - 1 moves (R3) and Algorithm 5 returns
the last after J moves (R4); a weight update sees one minibatch (R7).
"""

from reproduce.protocols.comparison import (
    QUICK_TABLE1,
    SUBSPACES,
    TABLE1,
    Case,
    Comparison,
    Difference,
    Panels,
    spelled,
)
from reproduce.protocols.methods import (
    VARIANTS,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    HeatRegularizationSolved,
    LocalEntropyByControlledSGLD,
    LocalEntropyByGradients,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)
from reproduce.protocols.training import INITIALIZATIONS, NETWORKS, Training

__all__ = [
    "INITIALIZATIONS",
    "NETWORKS",
    "QUICK_TABLE1",
    "SUBSPACES",
    "TABLE1",
    "VARIANTS",
    "Case",
    "Comparison",
    "Difference",
    "GradientDescent",
    "HeatRegularizationByRobbinsMonro",
    "HeatRegularizationSolved",
    "LocalEntropyByControlledSGLD",
    "LocalEntropyByGradients",
    "LocalEntropyByImportanceSampling",
    "LocalEntropyBySGLD",
    "Method",
    "Panels",
    "Training",
    "spelled",
]
