"""
Local entropy inside Adam
=========================

``optimizer=`` hands :math:`g = (x - m) / \\tau`, an estimate of :math:`\\nabla F_\\tau`, to any
Keras optimizer. :math:`\\tau` then says how wide the neighbourhood is, the inner optimizer how
far to go. As :math:`\\tau` shrinks, Adam itself is left.
"""

import os

import keras
import matplotlib.pyplot as plt
import numpy as np

import lerh_tf

QUICK = "QUICK" in os.environ
EPOCHS = 2 if QUICK else 40

rng = np.random.default_rng(0)
x = rng.uniform(-1.0, 1.0, size=(512, 2)).astype("float32")
y = np.sin(6.0 * x[:, :1]) * np.cos(4.0 * x[:, 1:])


def losses(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(64, "tanh"),
            keras.layers.Dense(64, "tanh"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer, "mse")
    return model.fit(x, y, batch_size=64, epochs=EPOCHS, verbose=0).history["loss"]


curves = {"Adam": losses(keras.optimizers.Adam(0.01))}
for tau in (1e-5, 1e-3, 1e-2):
    inner = keras.optimizers.Adam(0.01)
    curves[f"tau = {tau:g}"] = losses(lerh_tf.LocalEntropy(tau, optimizer=inner, seed=0))

# %%
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, values in curves.items():
    ax.plot(values, label=name)
    print(f"{name:12} loss of the last epoch {values[-1]:.4f}")
ax.set(xlabel="epoch", ylabel="training loss", yscale="log")
ax.legend()
plt.show()

# %%
# The loss drawn is :math:`f` at the weights, not :math:`F_\tau`. With a wide neighbourhood the
# weights settle where the average over it is low, which is not where :math:`f` is lowest;
# ``lerh_tf.Scoping`` shrinks :math:`\tau` along the training:

tau = lerh_tf.Scoping(1e-2, 0.02)
scoped = losses(lerh_tf.LocalEntropy(tau, optimizer=keras.optimizers.Adam(0.01), seed=0))
print(f"scoped       loss of the last epoch {scoped[-1]:.4f}")
