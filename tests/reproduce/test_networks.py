from collections.abc import Callable

import numpy as np
import pytest

from reproduce import networks
from reproduce.protocols import INITIALIZATIONS


def _weights(network: str, initialization: str, seed: int) -> list[np.ndarray]:
    return networks.build(network, initialization, seed).get_weights()


@pytest.mark.parametrize(
    ("network", "parameters"), [("small_dense", 7850), ("hidden_dense", 159010)]
)
def test_build_parameter_count(network: str, parameters: int) -> None:
    assert networks.build(network, "glorot_uniform", 0).count_params() == parameters


def test_build_same_seed_same_weights_other_seed_others() -> None:
    first, again, other = (_weights("hidden_dense", "glorot_uniform", seed) for seed in (3, 3, 4))
    for x, y in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, y)
    assert not np.array_equal(first[0], other[0])


def test_build_initializations_have_their_spread() -> None:
    glorot, normal, uniform = (_weights("hidden_dense", name, 0) for name in INITIALIZATIONS)
    limit = np.sqrt(6 / (784 + 200))
    assert np.abs(glorot[0]).max() <= limit
    assert glorot[0].std() == pytest.approx(limit / np.sqrt(3), rel=0.02)
    assert normal[0].std() == pytest.approx(0.1, rel=0.02)
    assert np.abs(uniform[0]).max() == pytest.approx(0.05, rel=0.01)
    assert uniform[0].std() == pytest.approx(0.05 / np.sqrt(3), rel=0.02)


def test_build_layers_draw_apart() -> None:
    first, _, second, _ = _weights("hidden_dense", "normal", 0)
    assert not np.array_equal(first.ravel()[: second.size], second.ravel())


def test_build_ends_in_logits() -> None:
    logits = np.asarray(networks.build("hidden_dense", "normal", 0)(np.ones((2, 784), np.float32)))
    assert logits.shape == (2, 10)
    assert logits.min() < 0


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_build_activation_is_the_hidden_layers(
    activation: str, function: Callable[[np.ndarray], np.ndarray]
) -> None:
    model = networks.build("hidden_dense", "normal", 0, activation)
    first, _, second, _ = model.get_weights()
    images = np.linspace(-1, 1, 2 * 784, dtype=np.float32).reshape(2, 784)
    expected = function(images @ first) @ second
    np.testing.assert_allclose(np.asarray(model(images)), expected, rtol=1e-4, atol=1e-4)


def test_build_refuses_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"`network` must be one of small_dense, .*'conv'"):
        networks.build("conv", "normal", 0)
    with pytest.raises(ValueError, match=r"`initialization` must be one of .*'zeros'"):
        networks.build("small_dense", "zeros", 0)
