"""A small regression by `model.fit`, and Algorithm 1 with importance sampling on it in NumPy."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from scipy.special import softmax

from lerh_tf import ImportanceSampling, LocalEntropy
from lerh_tf.noise import PhiloxNoise
from tests.lerh_tf._keras_steps import state_of

Array = npt.NDArray[Any]

TAU = 0.125
SAMPLES = 40
SEED = 3


def sampler(tau: Any = TAU, samples: int = SAMPLES, **arguments: Any) -> LocalEntropy:
    """Algorithm 1 on all weights, with few samples."""
    arguments = {"seed": SEED, "subspace": False, **arguments}
    return LocalEntropy(tau, ImportanceSampling(samples), **arguments)


def data() -> tuple[Array, Array]:
    """One minibatch."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((8, 3)), rng.standard_normal((8, 1))
    return x.astype("float32"), y.astype("float32")


def network(dtype: str = "float32") -> keras.Model:
    """3 inputs, 2 tanh units, 1 output; the same initial weights always."""
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input((3,), dtype=dtype),
            keras.layers.Dense(2, activation="tanh", dtype=dtype),
            keras.layers.Dense(1, dtype=dtype),
        ]
    )


def fit(model: keras.Model, updates: int) -> list[Array]:
    """Trains on the one minibatch and returns the weights."""
    x, y = data()
    model.fit(x, y, batch_size=len(x), epochs=updates, shuffle=False, verbose=0)
    return state_of(model.trainable_variables)


def compiled(optimizer: keras.optimizers.Optimizer, **arguments: Any) -> keras.Model:
    """The network, ready to train; with a built optimizer Keras traces its step once, not twice."""
    model = network(arguments.pop("dtype", "float32"))
    optimizer.build(model.trainable_variables)
    model.compile(optimizer=optimizer, **{"loss": "mse", **arguments})
    return model


def trained(optimizer: keras.optimizers.Optimizer, updates: int, **arguments: Any) -> list[Array]:
    """The weights after so many updates."""
    return fit(compiled(optimizer, **arguments), updates)


def np_losses(k0: Array, b0: Array, k1: Array, b1: Array) -> Array:
    """The loss at many weights at once, (samples, *shape) to (samples)."""
    x, y = data()
    hidden = np.tanh(np.einsum("ni,jih->jnh", x, k0) + b0[:, None])
    output = np.einsum("jnh,jho->jno", hidden, k1) + b1[:, None]
    return np.mean((output - y) ** 2, axis=(1, 2))


def np_samples(weights: list[Array], tau: float, update: int) -> list[Array]:
    """The positions that the optimizer samples, (samples, *shape) per weight, in float64."""
    noise = PhiloxNoise(SEED, tf.constant(update, tf.int64), [tf.constant(w) for w in weights])
    z = noise(tf.constant(0, tf.int64), SAMPLES)
    return [w + np.sqrt(tau) * n.numpy().astype("float64") for w, n in zip(weights, z, strict=True)]


def np_sampled_losses(weights: list[Array], tau: float, update: int) -> Array:
    """The losses there."""
    return np_losses(*np_samples(weights, tau, update))


def np_mean(weights: list[Array], tau: float, update: int) -> list[Array]:
    """The mean m that Algorithm 4 estimates, on the optimizer's own noise."""
    positions = np_samples(weights, tau, update)
    normalised = softmax(-np_losses(*positions))
    return [np.tensordot(normalised, p, 1) for p in positions]


def np_trained(
    updates: int,
    tau: Callable[[int], float] = lambda update: TAU,
    step: Callable[[list[Array], list[Array], int], list[Array]] = lambda x, m, update: m,
    dtype: str = "float32",
) -> list[Array]:
    """Algorithm 1 from the network's initial weights; `step` takes x and m to the next x."""
    x = state_of(network(dtype).trainable_variables)
    for update in range(updates):
        m = np_mean([w.astype(dtype) for w in x], tau(update), update)
        x = step(x, m, update)
    return x


def assert_close(actual: list[Array], expected: list[Array], tolerance: float = 3e-6) -> None:
    """Compares weights that are of order one."""
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def assert_equal(actual: list[Array], expected: list[Array]) -> None:
    """Compares weights bit by bit."""
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


def differ(actual: list[Array], expected: list[Array], by: float = 1e-3) -> bool:
    """Whether every weight array differs somewhere by more than rounding."""
    return all(np.abs(a - e).max() > by for a, e in zip(actual, expected, strict=True))
