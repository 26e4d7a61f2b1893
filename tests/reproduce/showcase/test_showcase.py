"""The showcases on a few made-up images."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from reproduce.data import Mnist
from reproduce.showcase import adapt_tau, sign_network

SETTINGS = sign_network.SignNetwork(
    hidden=4, batch_size=40, updates=60, samples=200, loss_multiplier=30.0
)


@pytest.fixture(scope="module")
def data() -> Mnist:
    """Two classes that a bright half of the image tells apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=1000).astype("uint8")
    images = rng.integers(100, size=(1000, 28, 28)).astype("uint8")
    images[labels == 1, :14] += 100
    images[labels == 0, 14:] += 100
    return Mnist(images, labels, images, labels)


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


def test_reports_are_tables(data: Mnist) -> None:
    lines = adapt_tau.report(data, 0, (0.5,), 2).splitlines()
    assert lines[0] == "| tau | | 2 |"
    assert [line.split(" | ")[1] for line in lines[2:]] == ["accuracy", "tau", "ESS / J"] * 2
    assert lines[3].endswith("| 0.01 |")
