"""Entropy-SGD's update, against NumPy on the same noise."""

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from examples.map.entropy_sgd import EntropySGD
from lerh_tf import Estimate, LocalEntropy, LossFunction, PhiloxNoise

X = np.array([1.0, -0.5])
A = np.array([2.0, 0.5])
KERNEL = EntropySGD(gamma=0.2, step_size=0.1, momentum=0.9)


def found(update: int, kernel: EntropySGD = KERNEL) -> npt.NDArray[np.float64]:
    """Returns mu - x of a quadratic at one weight update."""
    x = [tf.constant(X)]
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), x)
    loss = LossFunction(lambda w: tf.reduce_sum(A * w[0] ** 2) / 2.0, 1)
    result: Estimate = kernel(loss, x, tf.constant(1.0, tf.float64), noise, (), update)
    assert bool(result.is_valid)
    return result.displacement[0].numpy()


def by_hand(update: int, momentum: float = 0.9, most: float = 1.0) -> npt.NDArray[np.float64]:
    """Returns mu - x as the paper's Algorithm 1 with Nesterov's momentum has it."""
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), [tf.constant(X)])
    drawn = noise(tf.constant(0, tf.int64), 20)[0].numpy()
    gamma = min(0.2 * 1.001**update, most)
    state, velocity, mean = X.copy(), np.zeros(2), X.copy()
    for z in drawn:
        gradient = A * (state + momentum * velocity) - gamma * (X - state)
        velocity = momentum * velocity - 0.1 * gradient
        state = state + velocity + np.sqrt(0.1) * 1e-4 * z
        mean = 0.25 * mean + 0.75 * state
    return mean - X


def test_the_update_is_the_papers() -> None:
    np.testing.assert_allclose(found(0), by_hand(0), rtol=1e-12)
    assert not np.allclose(found(0), by_hand(0, momentum=0.0), rtol=0.01)


def test_gamma_is_scoped() -> None:
    np.testing.assert_allclose(found(1000), by_hand(1000), rtol=1e-12)
    assert not np.allclose(found(1000), by_hand(0), rtol=0.01)


def test_gamma_stays_where_the_chain_is_stable() -> None:
    # At 20,000 updates it would be 10^8, and at 10^6 more than a number.
    np.testing.assert_allclose(found(20_000), by_hand(20_000), rtol=1e-12)
    np.testing.assert_array_equal(found(20_000), found(10**6))
    assert np.abs(found(20_000)).max() < 1.0
    assert np.abs(by_hand(20_000, most=np.inf)).max() > 1e9


def test_where_the_loss_is_flat_the_average_has_the_spread_that_is_told() -> None:
    # What a minibatch does not see, the optimizer draws at once with this deviation.
    x = [tf.zeros([20_000], tf.float64)]
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), x)
    flat = LossFunction(lambda w: 0.0 * tf.reduce_sum(w[0]), 1)
    for momentum in (0.0, 0.9):
        kernel = EntropySGD(gamma=0.2, step_size=0.1, momentum=momentum)
        result: Estimate = kernel(flat, x, tf.constant(1.0, tf.float64), noise, (), 500)
        law = result.complement
        assert law is not None
        assert (float(law.mean_start), float(law.last_start)) == (0.0, 0.0)
        spread = result.displacement[0].numpy().std()
        # The relative standard error of a deviation from 20,000 numbers is 0.005.
        np.testing.assert_allclose(spread, law.mean_noise.numpy(), rtol=0.02)


def test_a_training_samples_what_the_minibatch_sees() -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((50,)), keras.layers.Dense(3)])
    optimizer = LocalEntropy(1.0, KERNEL, optimizer=keras.optimizers.SGD(0.5), seed=0)
    model.compile(optimizer, "mse")
    rng = np.random.default_rng(0)
    model.train_on_batch(rng.normal(size=(4, 50)), rng.normal(size=(4, 3)))
    assert optimizer.diagnostics["sampled_dimensions"] == 4 * 3 + 3
