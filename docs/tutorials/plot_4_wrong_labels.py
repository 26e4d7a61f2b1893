"""
Wrong labels
============

Flat minima are said to ignore what only few rows ask for. A small test of that: a third of the
training labels are replaced by random ones, and the test labels are not.
"""

import os

import keras
import matplotlib.pyplot as plt
import numpy as np

import lerh_tf

QUICK = "QUICK" in os.environ
EPOCHS = 2 if QUICK else 60
SEEDS = (0,) if QUICK else (0, 1, 2)
CLASSES = 4


def clusters(rows, seed):
    """Four classes of two clusters each, in ten dimensions; the same clusters for every seed."""
    centres = 1.6 * np.random.default_rng(7).standard_normal((2 * CLASSES, 10))
    rng = np.random.default_rng(seed)
    cluster = rng.integers(2 * CLASSES, size=rows)
    points = centres[cluster] + rng.standard_normal((rows, 10))
    return points.astype("float32"), cluster % CLASSES


x, y = clusters(500, seed=0)
x_test, y_test = clusters(2000, seed=1)
rng = np.random.default_rng(2)
y = np.where(rng.uniform(size=len(y)) < 1 / 3, rng.integers(CLASSES, size=len(y)), y)


def test_accuracies(optimizer, seed):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [keras.Input((10,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(CLASSES)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    history = model.fit(
        x, y, batch_size=50, epochs=EPOCHS, verbose=0, validation_data=(x_test, y_test)
    ).history
    return history["val_accuracy"]


def methods(seed):
    return {
        "SGD, rate 0.3": keras.optimizers.SGD(0.3),
        "SGD, rate 0.3, weight decay": keras.optimizers.SGD(0.3, weight_decay=0.01),
        "local entropy, tau 0.01, rate 0.3": lerh_tf.LocalEntropy(
            0.01, learning_rate=0.3, seed=seed
        ),
        "heat, tau 0.01, rate 0.3": lerh_tf.HeatRegularization(
            0.01,
            lerh_tf.RobbinsMonro(
                5, 10, step_sizes=lerh_tf.RobbinsMonroSteps(1.0, 1.0, largest=0.5)
            ),
            learning_rate=0.3,
            seed=seed,
        ),
    }


curves = {name: [] for name in methods(0)}
for seed in SEEDS:
    for name, optimizer in methods(seed).items():
        curves[name].append(test_accuracies(optimizer, seed))

# %%
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, runs in curves.items():
    mean = np.mean(runs, 0)
    ax.plot(np.arange(1, EPOCHS + 1), mean, label=name)
    last, best = np.array(runs)[:, -1], np.max(runs, 1)
    print(f"{name:34} last {last.mean():.3f} ± {last.std():.3f}, best epoch {best.mean():.3f}")
ax.set(xlabel="epoch", ylabel="accuracy on clean test labels")
ax.legend(fontsize=8)
plt.show()

# %%
# Compare the falls from the best epoch to the last. What the smoothing takes off is what a wider
# neighbourhood costs in speed too; stopping early, or decaying weights, is the cheaper cure to
# try first. Means over the seeds above, on one problem.
