"""
How flat is a trained model?
============================

``lerh_tf.local_entropy`` and ``lerh_tf.heat_regularization`` measure how much the loss rises
around a model's weights, for any compiled Keras model, whatever trained it. Here: one network,
trained by SGD with a small and a large learning rate, and by local entropy.
"""

import os

import keras
import matplotlib.pyplot as plt
import numpy as np

import lerh_tf

QUICK = "QUICK" in os.environ
EPOCHS = 2 if QUICK else 100
SAMPLES = 4 if QUICK else 100


def spirals(rows, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    radius = rng.uniform(0.1, 1.0, rows)
    angle = 6.0 * radius + np.pi * label + 0.15 * rng.standard_normal(rows)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return points.astype("float32"), label


x, y = spirals(400, seed=0)
x_test, y_test = spirals(1000, seed=1)


def trained(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(64, "tanh"), keras.layers.Dense(2)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(x, y, batch_size=40, epochs=EPOCHS, verbose=0)
    return model


models = {
    "SGD, rate 0.1": trained(keras.optimizers.SGD(0.1)),
    "SGD, rate 1": trained(keras.optimizers.SGD(1.0)),
    "local entropy, tau 0.01, rate 1": trained(
        lerh_tf.LocalEntropy(0.01, learning_rate=1.0, seed=0)
    ),
}

# %%
# The gap :math:`F_\tau(x) - f(x)` for several :math:`\tau`: small where the loss is flat over
# that distance. ``standard_error`` says how well 100 draws know it.

taus = [1e-4, 1e-3, 1e-2]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, model in models.items():
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    entropy = [
        lerh_tf.local_entropy(model, x, y, tau=tau, samples=SAMPLES, verbose=0) for tau in taus
    ]
    heat = [
        lerh_tf.heat_regularization(model, x, y, tau=tau, samples=SAMPLES, verbose=0)
        for tau in taus
    ]
    print(
        f"{name}: test loss {loss:.3f}, accuracy {accuracy:.3f}, training loss {heat[0].loss:.3f}"
    )
    for ax, found in zip(axes, (entropy, heat), strict=True):
        errors = [each.standard_error for each in found]
        ax.errorbar(taus, [each.gap for each in found], errors, label=name, marker="o", capsize=3)
for ax, title in zip(axes, (r"$F_\tau(x) - f(x)$", r"$F^H_\tau(x) - f(x)$"), strict=True):
    ax.set(xscale="log", yscale="symlog", xlabel=r"$\tau$", title=title)
    ax.set_yscale("symlog", linthresh=1e-3)
axes[0].legend(fontsize=8)
plt.show()

# %%
# A smaller gap is a flatter minimum at that distance. It is no promise about the test data:
# compare the lines printed above.
