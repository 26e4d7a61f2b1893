"""The networks of the map; all take flat inputs and end in logits."""

from typing import Any

import keras
import tensorflow as tf

from examples.map.data import CLASSES
from examples.map.randomness import integer_seed

WIDTHS = {"dense": 200, "small_dense": 100, "sign": 32}
"""Hidden units of the networks with one hidden layer."""


def build(network: str, features: int, seed: int, straight_through: bool = False) -> keras.Model:
    """Builds a network with seeded initial weights.

    Args:
        network: "dense" and "small_dense" have one hidden layer of ReLUs, "sign" one of signs;
            "convolution" is Conv 8 - pool - Conv 16 - pool - Dense on 28 x 28 pixels.
        features: Of the inputs.
        seed: Equal seeds give equal weights.
        straight_through: Whether signs pass gradients on, as `straight_through_sign` does.
    """
    keras.utils.set_random_seed(integer_seed("weights", seed))
    if network == "convolution":
        return keras.Sequential([keras.Input((features,)), *_convolution()])
    activation: Any = "relu"
    if network == "sign":
        activation = straight_through_sign if straight_through else tf.sign
    return keras.Sequential(
        [
            keras.Input((features,)),
            keras.layers.Dense(WIDTHS[network]),
            keras.layers.Activation(activation),
            keras.layers.Dense(CLASSES),
        ]
    )


def _convolution() -> list[keras.Layer]:
    return [
        keras.layers.Reshape((28, 28, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(CLASSES),
    ]


def straight_through_sign(x: tf.Tensor) -> tf.Tensor:
    """Returns the sign of x with the gradient of x clipped to [-1, 1].

    References:
        Bengio, Leonard and Courville (2013), Estimating or propagating gradients through
        stochastic neurons for conditional computation; Hubara et al. (2016), Binarized neural
        networks, equation (4), for the clipping.
    """
    clipped = tf.clip_by_value(x, -1.0, 1.0)
    return clipped + tf.stop_gradient(tf.sign(x) - clipped)
