"""
A sampler of your own
=====================

A kernel is a frozen dataclass with ``__call__``: it takes the loss as a function of the weights
and returns an estimate of the mean. Here: gradients at antithetic pairs, :math:`x \\pm
\\sqrt\\tau z`, checked against quadrature and then put to work.
"""

import os
from dataclasses import dataclass
from typing import ClassVar

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import lerh_tf
from lerh_tf.oracles import Landscape

QUICK = "QUICK" in os.environ
REPETITIONS = 5 if QUICK else 400

# %%
# The kernel
# ----------
# By Stein's identity :math:`m = x - \tau \operatorname{E}_q \nabla f`. ``noise`` gives
# standard normal numbers in blocks; ``objective`` gives losses and gradients at many weights at
# once, stacked along a first axis.


@keras.saving.register_keras_serializable("tutorials")
@dataclass(frozen=True)
class AntitheticGradients(lerh_tf.Kernel):
    pairs: int = 15
    diagnostic_names: ClassVar[tuple[str, ...]] = ("effective_sample_size",)

    def __call__(self, objective, anchor, tau, noise, chain=(), update=0):
        z = noise(tf.constant(0, tf.int64), self.pairs)
        both = [tf.concat([z_v, -z_v], 0) for z_v in z]
        stacked = [
            a + tf.cast(tf.sqrt(tau), a.dtype) * z_v for a, z_v in zip(anchor, both, strict=True)
        ]
        losses, gradients = objective.vectorized_value_and_gradient(stacked)
        weights = tf.nn.softmax(-losses)
        displacement = [-tau * tf.tensordot(weights, g, 1) for g in gradients]
        return lerh_tf.Estimate(
            displacement=displacement,
            chain=[],
            diagnostics={"effective_sample_size": 1.0 / tf.reduce_sum(weights**2)},
            is_valid=tf.reduce_all([tf.reduce_all(tf.math.is_finite(d)) for d in displacement]),
        )


# %%
# Is it right?
# ------------
# In one dimension quadrature knows the mean.


def double_well(v):
    return (v**2 - 1.0) ** 2 + v / 2.0


x, tau = 0.3, 0.1
exact, error = Landscape(lambda v: double_well(v[..., 0]), tau).mean(x)
print(f"exact mean {exact.item():.6f}, quadrature's error below {error:.0e}")

kernels = {
    "pairs of gradients": AntitheticGradients(15),
    "gradients": lerh_tf.ImportanceSampling(30, estimator="gradients"),
    "importance sampling": lerh_tf.ImportanceSampling(30),
}


def displacements(kernel):
    """Many estimates of m - x, by one trace: noise is a function of the seed and a count."""
    objective = lerh_tf.LossFunction(lambda w: double_well(w[0]), 1)
    anchor = [tf.constant(x)]

    @tf.function(autograph=False)
    def once(count):
        noise = lerh_tf.PhiloxNoise(0, count, anchor)
        return kernel(objective, anchor, tf.constant(tau), noise).displacement[0]

    return np.array([once(tf.constant(k, tf.int64)) for k in range(REPETITIONS)])


for name, kernel in kernels.items():
    error = x + displacements(kernel) - exact
    print(f"{name:20} off by {error.mean():+.4f} on average, {error.std():.4f} apart")

# %%
# In training
# -----------
# Any kernel is a sampler; what it declares as diagnostics comes by Keras's logs.

rng = np.random.default_rng(0)
features = rng.standard_normal((256, 8)).astype("float32")
targets = np.sin(features[:, :1]) + 0.1 * rng.standard_normal((256, 1)).astype("float32")
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, kernel in kernels.items():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(32, "tanh"), keras.layers.Dense(1)]
    )
    optimizer = lerh_tf.LocalEntropy(0.01, kernel, learning_rate=0.1, seed=0)
    model.compile(optimizer, "mse")
    history = model.fit(
        features, targets, epochs=2 if QUICK else 30, verbose=0, callbacks=[lerh_tf.Diagnostics()]
    ).history
    ax.plot(history["loss"], label=name)
    print(f"{name:20} effective sample size {history['effective_sample_size'][-1]:.1f}")
ax.set(xlabel="epoch", ylabel="training loss", yscale="log")
ax.legend()
plt.show()

# %%
# What is left out here: all samples at once need memory for as many models, so the library's
# kernels go block by block (``noise(block, samples)``); and a kernel that declares ``reducible``
# and returns a ``complement`` is run in the subspace that the minibatch sees.
