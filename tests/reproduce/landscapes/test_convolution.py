import numpy as np
import pytest

from lerh_tf.oracles import Landscape
from reproduce.landscapes.convolution import Convolution
from reproduce.landscapes.functions import FUNCTIONS


@pytest.mark.parametrize("tau", [0.01, 0.2])
@pytest.mark.parametrize("name", ["double_well", "plateau", "sharp_and_wide", "textured"])
def test_is_the_oracles(name: str, tau: float) -> None:
    function = FUNCTIONS[name]
    points = np.random.default_rng(1).uniform(-2, 2, (3, function.dimension))
    convolution = Convolution(function, tau, points.min(axis=0), points.max(axis=0))
    oracle = Landscape(function, tau)
    for found, exact in (
        (convolution.local_entropy(points), [oracle.local_entropy(x).value for x in points]),
        (convolution.heat(points), [oracle.heat(x).value for x in points]),
    ):
        np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-11)
    assert np.abs(convolution.heat(points) - convolution.local_entropy(points)).min() > 1e-6


def test_keeps_the_points_shape_in_blocks() -> None:
    function = FUNCTIONS["double_well"]
    points = np.linspace(-1, 1, 5000).reshape(50, 100, 1)
    convolution = Convolution(function, 0.1, np.array([-1.0]), np.array([1.0]))
    values = convolution.local_entropy(points)
    assert values.shape == (50, 100)
    alone = convolution.local_entropy(points[-1, -1:])[0]
    np.testing.assert_allclose(values[-1, -1], alone, rtol=1e-13)
