"""The paper's two networks (Section 6.1); both end in logits."""

import keras

from reproduce import checks
from reproduce.protocols import INITIALIZATIONS, NETWORKS
from reproduce.randomness import Stream, integer_seed

PIXELS = 28 * 28
CLASSES = 10
HIDDEN = 200


def small_dense(initialization: str, seed: int, activation: str = "relu") -> keras.Model:
    """Builds 784-10, a linear classifier with 7,850 parameters.

    Args:
        initialization: R8. `"glorot_uniform"`, `"normal"` with standard deviation 0.1, or
            `"uniform"` from -0.05 to 0.05.
        seed: Equal seeds give equal weights.
        activation: Not used: there is no hidden layer.

    Returns:
        A model from (batch, 784) float32 pixels to (batch, 10) logits.

    Raises:
        ValueError: `initialization` is unknown.

    References:
        Section 6.1, item 1.
    """
    return _dense((CLASSES,), initialization, seed, activation, "small_dense")


def hidden_dense(initialization: str, seed: int, activation: str = "relu") -> keras.Model:
    """Builds 784-200-10, 159,010 parameters.

    Args:
        initialization: R8. `"glorot_uniform"`, `"normal"` with standard deviation 0.1, or
            `"uniform"` from -0.05 to 0.05.
        seed: Equal seeds give equal weights.
        activation: R13. Of the hidden layer.

    Returns:
        A model from (batch, 784) float32 pixels to (batch, 10) logits.

    Raises:
        ValueError: `initialization` is unknown.

    References:
        Section 6.1, item 2.
    """
    return _dense((HIDDEN, CLASSES), initialization, seed, activation, "hidden_dense")


def build(network: str, initialization: str, seed: int, activation: str = "relu") -> keras.Model:
    """Builds a network by its name in a protocol.

    Raises:
        ValueError: `network` or `initialization` is unknown.
    """
    checks.one_of("network", network, NETWORKS)
    builders = {"small_dense": small_dense, "hidden_dense": hidden_dense}
    return builders[network](initialization, seed, activation)


def _dense(
    widths: tuple[int, ...], initialization: str, seed: int, activation: str, name: str
) -> keras.Model:
    layers: list[keras.Layer] = [keras.Input((PIXELS,))]
    for position, width in enumerate(widths):
        layers.append(
            keras.layers.Dense(
                width,
                activation=activation if position < len(widths) - 1 else None,
                kernel_initializer=_initializer(initialization, seed, position),
            )
        )
    return keras.Sequential(layers, name=name)


def _initializer(initialization: str, seed: int, layer: int) -> keras.initializers.Initializer:
    checks.one_of("initialization", initialization, INITIALIZATIONS)
    own_seed = integer_seed(seed, Stream.WEIGHTS, layer)
    if initialization == "normal":
        return keras.initializers.RandomNormal(stddev=0.1, seed=own_seed)
    if initialization == "uniform":
        return keras.initializers.RandomUniform(-0.05, 0.05, seed=own_seed)
    return keras.initializers.GlorotUniform(seed=own_seed)
