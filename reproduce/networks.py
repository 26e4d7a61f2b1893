"""The paper's two networks (Section 6.1); both end in logits."""

import keras

from reproduce import checks
from reproduce.protocols import INITIALIZATIONS, NETWORKS
from reproduce.randomness import Stream, integer_seed

PIXELS = 28 * 28
CLASSES = 10
HIDDEN = 200


_WIDTHS = {"small_dense": (CLASSES,), "hidden_dense": (HIDDEN, CLASSES)}


def build(network: str, initialization: str, seed: int, activation: str = "relu") -> keras.Model:
    """Builds a network by its name in a protocol.

    Args:
        network: `"small_dense"`, 784-10, a linear classifier with 7,850 parameters, or
            `"hidden_dense"`, 784-200-10, with 159,010.
        initialization: R8. `"glorot_uniform"`, `"normal"` with standard deviation 0.1, or
            `"uniform"` from -0.05 to 0.05.
        seed: Equal seeds give equal weights.
        activation: R13. Of the hidden layer, if there is one.

    Returns:
        A model from (batch, 784) float32 pixels to (batch, 10) logits.

    Raises:
        ValueError: `network` or `initialization` is unknown.

    References:
        Section 6.1, items 1 and 2.
    """
    checks.one_of("network", network, NETWORKS)
    *hidden, last = (
        (width, _initializer(initialization, seed, layer))
        for layer, width in enumerate(_WIDTHS[network])
    )
    layers = [
        keras.layers.Dense(width, activation=activation, kernel_initializer=initial)
        for width, initial in hidden
    ]
    logits = keras.layers.Dense(last[0], kernel_initializer=last[1])
    return keras.Sequential([keras.Input((PIXELS,)), *layers, logits], name=network)


def _initializer(initialization: str, seed: int, layer: int) -> keras.initializers.Initializer:
    checks.one_of("initialization", initialization, INITIALIZATIONS)
    own_seed = integer_seed(seed, Stream.WEIGHTS, layer)
    if initialization == "normal":
        return keras.initializers.RandomNormal(stddev=0.1, seed=own_seed)
    if initialization == "uniform":
        return keras.initializers.RandomUniform(-0.05, 0.05, seed=own_seed)
    return keras.initializers.GlorotUniform(seed=own_seed)
