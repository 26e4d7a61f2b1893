"""The experiments that train on MNIST, in the paper's order, and Figures 1 to 3."""

from collections.abc import Mapping
from typing import Any

from reproduce.experiments import exact, figure5, landscapes, readings, section61, table1
from reproduce.experiments.base import Experiment
from reproduce.experiments.gaussians import Approximation
from reproduce.experiments.illustration import Illustration
from reproduce.experiments.variations import FIGURE6, FIGURE7, FIGURE8

TRAINING: tuple[Experiment[Any], ...] = (
    section61.EXPERIMENT,
    table1.EXPERIMENT,
    figure5.FIGURE,
    FIGURE6,
    FIGURE7,
    FIGURE8,
)

FURTHER: tuple[Experiment[Any], ...] = (readings.EXPERIMENT, exact.FIGURE)
"""Those that are no part of the paper."""

NAMED: Mapping[str, Experiment[Any]] = {one.NAME: one for one in (*TRAINING, *FURTHER)}
"""All of them by name."""

ILLUSTRATIONS: Mapping[str, Illustration] = {**landscapes.FIGURES, "figure3": Approximation()}
"""Figures 1 to 3."""
