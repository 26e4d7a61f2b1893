"""The experiments that train on MNIST, in the paper's order."""

from typing import Any

from reproduce.experiments import figure5, figure6, figure7, figure8, section61, table1
from reproduce.experiments.base import Experiment

TRAINING: tuple[Experiment[Any], ...] = (section61, table1, figure5, figure6, figure7, figure8)
