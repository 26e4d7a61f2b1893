"""Local entropy and heat regularization as Keras optimizers.

The five algorithms of Garcia Trillos, Kaplan and Sanz-Alonso, "Variational Characterizations of
Local Entropy and Heat Regularization in Deep Learning" (Entropy 21(5), 511, 2019).
"""

from lerh_tf.kernels.importance import ImportanceSampling
from lerh_tf.objective import ReplayError
from lerh_tf.optimizers.local_entropy import LocalEntropy

__all__ = ["ImportanceSampling", "LocalEntropy", "ReplayError"]
