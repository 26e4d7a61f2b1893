"""
Training without gradients
==========================

A network of sign activations, trained on its share of errors: the gradient is zero wherever it
exists. Importance sampling needs none. Beside it stand an evolution strategy, which needs none
either, and the straight-through estimator, which invents one.
"""

import os

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import lerh_tf

QUICK = "QUICK" in os.environ
UPDATES = 10 if QUICK else 300
SAMPLES = 50 if QUICK else 500
HIDDEN = 24


def rings(rows, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=rows)
    radius = np.where(label == 1, 1.0, 0.4) + 0.12 * rng.standard_normal(rows)
    angle = rng.uniform(0.0, 2.0 * np.pi, rows)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return points.astype("float32"), label.astype("float32")[:, None]


x, y = rings(400, seed=0)
x_test, y_test = rings(2000, seed=1)


def network(activation):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(
                HIDDEN, bias_initializer=keras.initializers.RandomNormal(stddev=0.5)
            ),
            keras.layers.Activation(activation),
            keras.layers.Dense(1),
        ]
    )


def share_of_errors(labels, logits):
    return (1.0 - tf.sign((2.0 * labels - 1.0) * logits)) / 2.0


def accuracy(model):
    return float(np.mean((model(x_test).numpy() > 0.0) == (y_test > 0.0)))


# %%
# Importance sampling
# -------------------
# The loss is a share in [0, 1], nearly the same at all samples: ``loss_multiplier`` says how much
# an error weighs. The effective sample size, printed below, tells whether that is too much: below
# a tenth of the samples few of them decide.

curves = {}


def record(model, update):
    """Trains by ``update()`` and notes the test accuracy every tenth time."""
    at, values = [], []
    for k in range(UPDATES + 1):
        if k % 10 == 0:
            at.append(k)
            values.append(accuracy(model))
        update()
    return at, values


model = network(tf.sign)
sampler = lerh_tf.ImportanceSampling(SAMPLES, control_variate=True, loss_multiplier=50.0)
optimizer = lerh_tf.LocalEntropy(0.02, sampler, seed=0)


def loss():
    return tf.reduce_mean(share_of_errors(y, model(x)))


curves["importance sampling"] = record(
    model, lambda: optimizer.step(loss, model.trainable_variables)
)
print("effective sample size", round(optimizer.diagnostics["effective_sample_size"]), "of", SAMPLES)

# %%
# An evolution strategy
# ---------------------
# Perturb the weights, score by standardised losses, move along the mean of the scored
# perturbations: the same number of evaluations per update.

model_es = network(tf.sign)
weights = model_es.trainable_variables
normal = np.random.default_rng(0).standard_normal


@tf.function(autograph=False)
def losses_at(stacked):
    def one(values):
        out, _ = model_es.stateless_call(values, [], x)
        return tf.reduce_mean(share_of_errors(y, out))

    return tf.vectorized_map(one, stacked)


def evolve(sigma=0.3, rate=0.15):
    half = [normal((SAMPLES // 2, *w.shape)).astype("float32") for w in weights]
    z = [np.concatenate([h, -h]) for h in half]
    losses = losses_at([w.numpy() + sigma * z_w for w, z_w in zip(weights, z, strict=True)]).numpy()
    scores = (losses.mean() - losses) / (losses.std() + 1e-6)
    for w, z_w in zip(weights, z, strict=True):
        w.assign_add(rate / sigma * np.tensordot(scores, z_w, 1) / SAMPLES)


curves["evolution strategy"] = record(model_es, evolve)

# %%
# The straight-through estimator
# ------------------------------
# Forwards a sign, backwards the gradient of a clipped line; the loss has to be a smooth one. One
# gradient per update.


@tf.custom_gradient
def straight_through(v):
    return tf.sign(v), lambda upstream: upstream * tf.cast(tf.abs(v) < 1.0, v.dtype)


model_st = network(straight_through)
model_st.compile(keras.optimizers.Adam(0.01), keras.losses.BinaryCrossentropy(from_logits=True))
curves["straight-through, Adam"] = record(model_st, lambda: model_st.train_on_batch(x, y))

# %%

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, (at, values) in curves.items():
    ax.plot(at, values, label=name)
    print(f"{name:24} test accuracy {values[-1]:.3f}")
ax.set(xlabel="weight updates", ylabel="test accuracy")
ax.legend()
plt.show()

# %%
# Settings were set by hand for each, none of them with care; one seed says little about which is
# better. Where the straight-through estimator applies, an update costs it one gradient instead of
# hundreds of losses. Where the loss cannot be differentiated at all, such as a count or a
# simulator, the first two are left.
