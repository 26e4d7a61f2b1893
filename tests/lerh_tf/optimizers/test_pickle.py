"""`pickle` and `copy.deepcopy` of an optimizer: the copy goes on as the original would."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy, RobbinsMonro
from tests.lerh_tf._keras_steps import state_of
from tests.lerh_tf._regression import assert_equal, fit, network

pytestmark = pytest.mark.usefixtures("plain_loops")

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgld": lambda: LocalEntropy(0.01, SGLD(4), seed=0, use_ema=True),
    "importance": lambda: LocalEntropy(0.01, ImportanceSampling(4), seed=0, on_failure="warn"),
    "robbins-monro": lambda: HeatRegularization(
        0.01, RobbinsMonro(2, 2), seed=0, gradient_accumulation_steps=2
    ),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda optimizer: pickle.loads(pickle.dumps(optimizer)),
    "deepcopy": copy.deepcopy,
    "twice": lambda optimizer: copy.deepcopy(pickle.loads(pickle.dumps(optimizer))),
}


LATER = {"sgld": 1, "importance": 1, "robbins-monro": 2}


def make_updates(optimizer: Any, weights: list[tf.Variable], count: int) -> list[np.ndarray]:
    """Makes updates of a small problem and returns the weights and the optimizer's variables."""

    def loss() -> tf.Tensor:
        return tf.reduce_sum((weights[0] - 1.0) ** 2) * tf.reduce_sum(tf.exp(weights[1]))

    optimizer.build(weights)
    step = tf.function(lambda: optimizer.step(loss, weights))
    for _ in range(count):
        step()
    return [v.numpy() for v in (*weights, *optimizer.variables)]


def weights_like(values: Any = ([1.0, 2.0], [[0.5]])) -> list[tf.Variable]:
    return [tf.Variable(value) for value in values]


@pytest.mark.feature(
    "saving", "`pickle`, `copy.deepcopy`", "yes, bit-identically, also before it is built"
)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("how", COPIES)
def test_copy_of_a_built_optimizer_goes_on_bit_identically(name: str, how: str) -> None:
    optimizer, weights = OPTIMIZERS[name](), weights_like()
    make_updates(optimizer, weights, 3)
    optimizer.tau = 0.02
    found = COPIES[how](optimizer)
    assert found.get_config() == optimizer.get_config()
    assert int(found.iterations.numpy()) == int(optimizer.iterations.numpy())
    assert float(found.tau.numpy()) == np.float32(0.02)
    copied = weights_like(weights)
    later = make_updates(found, copied, LATER[name])
    assert_equal(later, make_updates(optimizer, weights, LATER[name]))


@pytest.mark.feature("saving", "`pickle`, `copy.deepcopy`")
@pytest.mark.parametrize("how", COPIES)
def test_copy_of_an_optimizer_that_was_not_built_yet(how: str) -> None:
    optimizer = OPTIMIZERS["sgld"]()
    found = COPIES[how](optimizer)
    assert not found.built
    expected = make_updates(optimizer, weights_like(), 1)
    assert_equal(make_updates(found, weights_like(), 1), expected)


def test_copy_is_built_by_fit_while_it_traces() -> None:
    model, copied = network(), network()
    model.compile(OPTIMIZERS["sgld"](), "mse")
    fit(model, 2)
    copied.set_weights(model.get_weights())
    copied.compile(copy.deepcopy(model.optimizer), "mse")
    assert_equal(fit(copied, 1), fit(model, 1))
    assert_equal(state_of(copied.optimizer.variables), state_of(model.optimizer.variables))


def test_copy_of_an_optimizer_that_has_compiled_steps() -> None:
    weight, other = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    optimizer = OPTIMIZERS["sgld"]()
    optimizer.step(lambda: tf.reduce_sum(weight**2), [weight])
    other.assign(weight)
    found = copy.deepcopy(optimizer)
    optimizer.step(lambda: tf.reduce_sum(weight**2), [weight])
    found.step(lambda: tf.reduce_sum(other**2), [other])
    np.testing.assert_array_equal(other.numpy(), weight.numpy())


def test_state_of_other_weights_is_refused() -> None:
    optimizer = OPTIMIZERS["sgld"]()
    make_updates(optimizer, weights_like(), 1)
    with pytest.raises(ValueError, match="restored from one that was built for other weights"):
        copy.deepcopy(optimizer).build([tf.Variable([1.0])])


def test_keras_s_own_optimizers_lose_their_state() -> None:
    adam, weight = keras.optimizers.Adam(), tf.Variable([1.0])
    adam.apply([tf.ones(1)], [weight])
    with pytest.warns(UserWarning, match="Skipping variable loading"):
        assert int(copy.deepcopy(adam).iterations.numpy()) == 0
