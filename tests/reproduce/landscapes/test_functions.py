import numpy as np
import pytest
import tensorflow as tf

from reproduce.landscapes.functions import FUNCTIONS, Function


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_one_formula_for_numpy_and_tensorflow(function: Function) -> None:
    v = np.random.default_rng(0).uniform(-2, 2, (5, 4, function.dimension))
    values = function(v)
    assert values.shape == (5, 4)
    np.testing.assert_allclose(function.loss(tf.constant(v), tf), values, rtol=1e-12, atol=1e-12)


def test_names_are_the_keys() -> None:
    assert all(function.name == name for name, function in FUNCTIONS.items())
