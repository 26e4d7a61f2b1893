"""Hamiltonian Monte Carlo, a kernel from outside the library."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

import examples.hmc
from examples.hmc import HMC
from lerh_tf import Diagnostics, LocalEntropy, LossFunction, PhiloxNoise, estimate
from lerh_tf.oracles import Landscape

Array = npt.NDArray[Any]

TAU = 0.3
X = np.array([0.6, -0.4])
KERNEL = HMC(samples=400, leaps=5, step_size=0.6)
# Standard errors that the mean of all repetitions may be off.
ERRORS = 3.0


def f(v: Any) -> Any:
    """Neither even nor flat, (..., 2) to (...); for NumPy and TensorFlow alike."""
    u, w = v[..., 0], v[..., 1]
    return 2.0 * (u**2 - w) ** 2 + u + 0.5 * w * u


def repeated(
    kernel: HMC, changed: Callable[[list[tf.Tensor]], list[tf.Tensor]] = lambda z: z
) -> Array:
    """Means by 12 chains, shape (12, 2)."""

    @tf.function(autograph=False)
    def mean(repetition: tf.Tensor) -> tf.Tensor:
        seeded = PhiloxNoise(0, repetition, [tf.constant(X)])
        found = kernel(
            LossFunction(lambda w: f(w[0]), 1),
            [tf.constant(X)],
            tf.constant(TAU, tf.float64),
            lambda block, samples: changed(seeded(block, samples)),
        )
        return X + found.displacement[0]

    return np.stack([mean(tf.constant(k, tf.int64)) for k in range(12)])


def off(found: Array, m: Array) -> float:
    """How many standard errors the mean over the repetitions is off, where it is most."""
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return float(np.max(np.abs(found.mean(axis=0) - m) / error))


@pytest.fixture(scope="module")
def exact() -> Array:
    return Landscape(f, TAU).mean(X).value


def test_chains_find_the_mean(exact: Array) -> None:
    found = repeated(KERNEL)
    assert off(found, exact) < ERRORS
    for other in (X, Landscape(f, 0.5 * TAU).mean(X).value):
        assert off(found, other) > 3 * ERRORS


@pytest.mark.parametrize(
    ("kernel", "scales"),
    [(HMC(400, 3, 1.0), [1.0, 1e3, 1e3]), (KERNEL, [0.5, 1.0, 1.0])],
    ids=["all-accepted", "small-momenta"],
)
def test_wrong_chains_do_not(kernel: HMC, scales: list[float], exact: Array) -> None:
    factors = tf.constant(scales, tf.float64)[:, None]
    assert off(repeated(kernel, lambda z: [factors * z[0]]), exact) > ERRORS


def test_without_an_accepted_path_nothing_is_valid() -> None:
    found = estimate(HMC(3), lambda w: tf.reduce_sum(w[0]) * float("nan"), [X], tau=TAU)
    assert not found.is_valid
    assert found.diagnostics == {"acceptance_rate": 0.0}
    np.testing.assert_array_equal(found.mean[0], X)


def test_fit_trains_with_it_on_all_weights() -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((30,)), keras.layers.Dense(3, "tanh")])
    model.compile(LocalEntropy(0.1, HMC(20), seed=0), "mse")
    x = np.random.default_rng(0).standard_normal((8, 30)).astype("float32")
    logs = model.fit(
        x, x[:, :3], batch_size=4, epochs=3, verbose=0, callbacks=[Diagnostics()]
    ).history
    assert logs["loss"][-1] < logs["loss"][0]
    assert logs["acceptance_rate"][-1] > 0.5
    # Four rows see 4 of 30 dimensions, but the kernel does not say what happens in the others.
    assert logs["sampled_dimensions"][-1] == 93


def test_it_is_short_and_travels_with_the_optimizer() -> None:
    source = Path(examples.hmc.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60
    kernel = HMC(7, 2, 0.5)
    config = keras.saving.serialize_keras_object(kernel)
    assert keras.saving.deserialize_keras_object(config) == kernel
