"""The experiments that train on MNIST, in the paper's order."""

from typing import Any

from reproduce.experiments import figure5, section61, table1
from reproduce.experiments.base import Experiment
from reproduce.experiments.variations import FIGURE6, FIGURE7, FIGURE8

TRAINING: tuple[Experiment[Any], ...] = (
    section61,
    table1,
    figure5.FIGURE,
    FIGURE6,
    FIGURE7,
    FIGURE8,
)
