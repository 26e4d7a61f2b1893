"""Where an update can't be made: nothing moves, and the error says why."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy, RobbinsMonro

pytestmark = pytest.mark.usefixtures("plain_loops")


def square(variable: tf.Variable) -> Callable[[], tf.Tensor]:
    return lambda: tf.reduce_sum(variable**2)


def infinite(variable: tf.Variable) -> Callable[[], tf.Tensor]:
    return lambda: tf.reduce_sum(variable**2) + float("inf")


def state(optimizer: Any) -> list[np.ndarray]:
    return [v.numpy() for v in optimizer.variables if v.name != "iteration"]


@pytest.mark.parametrize("sampler", [SGLD(5), ImportanceSampling(5)])
def test_chain_of_a_weight_first_used_later_starts_at_the_weight(sampler: Any) -> None:
    first, second = tf.Variable([5.0, 5.0]), tf.Variable([5.0, 5.0])
    optimizer = LocalEntropy(0.01, sampler, seed=0)
    optimizer.build([first, second])
    optimizer.step(square(first), [first])
    optimizer.step(square(second), [second])
    np.testing.assert_allclose(second.numpy(), 5.0, atol=0.5)


@pytest.mark.parametrize("sampler", [SGLD(5), ImportanceSampling(5)])
def test_schedule_that_reaches_zero_is_refused_and_moves_nothing(sampler: Any) -> None:
    weight = tf.Variable([1.0, 2.0])
    schedule = keras.optimizers.schedules.PolynomialDecay(0.01, 2, 0.0)
    optimizer = LocalEntropy(schedule, sampler, seed=0)
    loss = square(weight)
    for _ in range(2):
        optimizer.step(loss, [weight])
    before = weight.numpy(), state(optimizer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`tau` must be positive and finite"):
        optimizer.step(loss, [weight])
    np.testing.assert_array_equal(weight.numpy(), before[0])
    for now, then in zip(state(optimizer), before[1], strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    "optimizer",
    [
        LocalEntropy(0.01, ImportanceSampling(5), weight_decay=0.5, use_ema=True),
        LocalEntropy(0.01, SGLD(5), weight_decay=0.5, use_ema=True),
        HeatRegularization(0.01, RobbinsMonro(2, 2), weight_decay=0.5, use_ema=True),
    ],
    ids=["importance", "sgld", "robbins-monro"],
)
def test_failed_update_moves_neither_weights_nor_optimizer(optimizer: Any) -> None:
    weight = tf.Variable([1.0, 2.0])

    def loss() -> tf.Tensor:
        return tf.reduce_sum(weight / 0.0)

    optimizer.build([weight])
    before = state(optimizer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="The weights"):
        optimizer.step(loss, [weight])
    np.testing.assert_array_equal(weight.numpy(), [1.0, 2.0])
    for now, then in zip(state(optimizer), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("kernel", ["sgld", "robbins_monro"])
def test_loss_without_a_gradient_needs_the_gradient_free_sampler(kernel: str) -> None:
    weight = tf.Variable([1.0, 2.0])

    def wrong() -> tf.Tensor:
        return tf.cast(tf.argmax(weight) != 0, tf.float32)

    optimizer = (
        LocalEntropy(sampler=kernel) if kernel == "sgld" else HeatRegularization(solver=kernel)
    )
    with pytest.raises(ValueError, match="has no gradient with respect to any weight") as refusal:
        optimizer.step(wrong, [weight])
    advice = r"ImportanceSampling\(1000, control_variate=True, loss_multiplier=50\.0\)"
    assert refusal.match(f".*{advice}")
    sampler = ImportanceSampling(4, control_variate=True, loss_multiplier=50.0)
    LocalEntropy(sampler=sampler).step(wrong, [weight])


def test_two_optimizers_may_move_the_same_weights_in_one_function() -> None:
    weight = tf.Variable([1.0, 2.0])
    sgd = keras.optimizers.SGD(0.1)
    sgd.build([weight])
    ours = LocalEntropy(0.01, ImportanceSampling(4), seed=0)
    heat = HeatRegularization(0.01, RobbinsMonro(1, 1), seed=0)
    for optimizer in (ours, heat):
        optimizer.build([weight])

    @tf.function
    def steps() -> None:
        sgd.apply([tf.ones(2)], [weight])
        ours.step(square(weight), [weight])
        heat.step(square(weight), [weight])

    steps()
    assert np.isfinite(weight.numpy()).all()
    assert (weight.numpy() != [1.0, 2.0]).all()


def test_weight_that_the_optimizer_does_not_know_is_named() -> None:
    known, unknown = tf.Variable([1.0]), tf.Variable([1.0], name="stranger")
    optimizer = LocalEntropy(0.01, ImportanceSampling(2))
    optimizer.build([known])
    with pytest.raises(ValueError, match=r"Unknown variable.*stranger"):
        optimizer.step(square(unknown), [unknown])


def test_apply_needs_the_weights_the_first_time() -> None:
    weight = tf.Variable([1.0])
    optimizer = LocalEntropy(0.01, ImportanceSampling(2))

    @tf.function
    def step() -> None:
        optimizer.scale_loss(tf.reduce_sum(weight**2))
        optimizer.apply([None])

    with pytest.raises(ValueError, match="`apply` needs `trainable_variables` the first time"):
        step()
