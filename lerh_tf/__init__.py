"""Local entropy and heat regularization as Keras optimizers.

The five algorithms of Garcia Trillos, Kaplan and Sanz-Alonso, "Variational Characterizations of
Local Entropy and Heat Regularization in Deep Learning" (Entropy 21(5), 511, 2019).
"""

import lerh_tf._backend  # noqa: F401  (before all that imports keras)
from lerh_tf.batches import whole_batches
from lerh_tf.callbacks import AdaptTau, Diagnostics
from lerh_tf.kernels.base import Complement, Estimate, Kernel, Samples
from lerh_tf.kernels.estimation import estimate, sample
from lerh_tf.kernels.importance import ImportanceSampling
from lerh_tf.kernels.robbins_monro import RobbinsMonro
from lerh_tf.kernels.sgld import SGLD
from lerh_tf.loss.objective import LossFunction, Objective
from lerh_tf.loss.repeatable import ReplayError
from lerh_tf.measures import heat_regularization, local_entropy
from lerh_tf.noise import Noise, PhiloxNoise
from lerh_tf.optimizers.heat import HeatRegularization
from lerh_tf.optimizers.local_entropy import LocalEntropy
from lerh_tf.optimizers.train_step import TrainStep
from lerh_tf.schedules import LangevinSteps, RobbinsMonroSteps, Scoping

__all__ = [
    "SGLD",
    "AdaptTau",
    "Complement",
    "Diagnostics",
    "Estimate",
    "HeatRegularization",
    "ImportanceSampling",
    "Kernel",
    "LangevinSteps",
    "LocalEntropy",
    "LossFunction",
    "Noise",
    "Objective",
    "PhiloxNoise",
    "ReplayError",
    "RobbinsMonro",
    "RobbinsMonroSteps",
    "Samples",
    "Scoping",
    "TrainStep",
    "estimate",
    "heat_regularization",
    "local_entropy",
    "sample",
    "whole_batches",
]
