"""The experiments that train on MNIST, in the paper's order."""

from typing import Any

from reproduce.experiments import table1
from reproduce.experiments.base import Experiment

TRAINING: tuple[Experiment[Any], ...] = (table1,)
