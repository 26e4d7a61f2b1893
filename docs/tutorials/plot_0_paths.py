"""
The five algorithms on one landscape
====================================

The loss has a wide minimum and a sharp one that is deeper, and the start lies in the sharp one.
Gradient descent knows the slope under its feet and ends there; local entropy and heat
regularization know a neighbourhood of radius :math:`\\sqrt{\\tau}` per dimension, and leave.
"""

import os

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import lerh_tf
from lerh_tf.oracles import Landscape, heat_step, iterate, local_entropy_step

QUICK = "QUICK" in os.environ
UPDATES = 5 if QUICK else 60
START = (0.4, 0.62)
TAU = 0.1

# %%
# One formula, for NumPy's exact answers and for TensorFlow's gradients.


def f(v, xp):
    def well(centre, depth, width):
        square = (v[..., 0] - centre[0]) ** 2 + (v[..., 1] - centre[1]) ** 2
        return depth * xp.exp(-square / (2.0 * width**2))

    bowl = 0.15 * (v[..., 0] ** 2 + v[..., 1] ** 2)
    return bowl - well((-0.9, -0.2), 3.0, 0.8) - well((0.3, 0.5), 2.4, 0.1)


landscape = Landscape(lambda v: f(v, np), TAU, tolerance=1e-8)

# %%
# A path is a variable that an optimizer moves. ``step`` takes a function that computes the loss.


def path(optimizer):
    w = tf.Variable(START, dtype=tf.float32)

    def loss():
        return f(w, tf)

    points = [w.numpy()]
    for _ in range(UPDATES):
        optimizer.step(loss, [w])
        points.append(w.numpy())
    return np.stack(points)


def gradient_descent(rate):
    w = tf.Variable(START, dtype=tf.float32)
    points = [w.numpy()]
    for _ in range(UPDATES):
        with tf.GradientTape() as tape:
            value = f(w, tf)
        w.assign_sub(rate * tape.gradient(value, w))
        points.append(w.numpy())
    return np.stack(points)


averaging = lerh_tf.RobbinsMonroSteps(1.0, 1.0, largest=0.5)
sgld = lerh_tf.SGLD(100, step_sizes=lerh_tf.LangevinSteps(10.0), relative_to_tau=True)
paths = {
    "gradient descent, rate 0.003": gradient_descent(0.003),
    "Algorithm 1, exact": iterate(local_entropy_step, landscape, START, UPDATES),
    "Algorithm 2, exact": iterate(heat_step, landscape, START, min(UPDATES, 25)),
    "Algorithm 3: SGLD(100)": path(lerh_tf.LocalEntropy(TAU, sgld, seed=0)),
    "Algorithm 4: ImportanceSampling(100)": path(
        lerh_tf.LocalEntropy(TAU, lerh_tf.ImportanceSampling(100), seed=0)
    ),
    "Algorithm 4 by gradients: the default": path(lerh_tf.LocalEntropy(TAU, seed=0)),
    "Algorithm 5: RobbinsMonro(30, 30)": path(
        lerh_tf.HeatRegularization(TAU, lerh_tf.RobbinsMonro(30, 30, step_sizes=averaging), seed=0)
    ),
    "the default inside Adam": path(
        lerh_tf.LocalEntropy(TAU, optimizer=keras.optimizers.Adam(0.1), seed=0)
    ),
}

# %%
# The exact paths have their means by quadrature: what the others would do with means free of
# error. Algorithms 3 to 5 are noisy, and the noise does not shrink as the slope does.

axis = np.linspace(-2.0, 2.0, 161)
grid = np.stack(np.meshgrid(axis, axis), -1)
levels = f(grid, np)

figure, axes = plt.subplots(2, 4, figsize=(13, 6.6), sharex=True, sharey=True, layout="constrained")
for ax, (name, points) in zip(axes.flat, paths.items(), strict=True):
    ax.contourf(axis, axis, levels, 25, cmap="Greys_r")
    ax.plot(*points.T, color="tab:orange", linewidth=1)
    ax.scatter(*points.T, c=np.arange(len(points)), cmap="autumn", s=12, zorder=3)
    ax.plot(*points[0], "s", color="white", markersize=5)
    ax.set_title(name, fontsize=9)
    ax.set_aspect("equal")
plt.show()

# %%
# What the two objectives make of the minima: the sharp one is the deeper in :math:`f`, and far the
# higher in both :math:`F_\tau` and :math:`F^H_\tau`.

minima = [(-0.9, -0.2), (0.3, 0.5)]
for point, name in zip(minima, ("wide", "sharp"), strict=True):
    values = f(np.array(point), np), landscape.local_entropy(point)[0], landscape.heat(point)[0]
    print(f"{name:5} minimum: f {values[0]:6.2f}, F_tau {values[1]:6.2f}, F^H_tau {values[2]:6.2f}")
