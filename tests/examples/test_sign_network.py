import keras
import numpy as np
import pytest
import tensorflow as tf

from examples import sign_network
from reproduce.data import Mnist

SETTINGS = sign_network.SignNetwork(
    hidden=4, batch_size=40, updates=60, samples=200, loss_multiplier=30.0
)


def test_zero_one_loss_counts_errors_and_halves_of_ties() -> None:
    logits = tf.constant([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    padded = tf.pad(logits, [[0, 0], [0, 8]], constant_values=-9.0)
    loss = sign_network.zero_one(tf.constant([[0], [0], [0]]), padded)
    np.testing.assert_array_equal(loss.numpy(), [0.0, 1.0, 0.5])


def test_importance_sampling_trains_what_sgd_leaves_as_it_is(data: Mnist) -> None:
    ours = sign_network.run(SETTINGS, data, 0, sign_network.gradient_free(SETTINGS, 0))
    sgd = sign_network.run(SETTINGS, data, 0, keras.optimizers.SGD(0.1))
    network = sign_network.network(SETTINGS.hidden, 0)
    images = data.train_images.reshape(-1, 784).astype("float32") / 255.0
    initial = float((np.asarray(network(images)).argmax(1) == data.train_labels).mean())
    assert sgd.accuracy == pytest.approx([initial] * len(sgd.accuracy))
    assert ours.accuracy[-1] > 0.9 > initial + 0.2
