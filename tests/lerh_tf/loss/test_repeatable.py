"""A loss that would be another one at each evaluation is refused, by the operation's name."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from lerh_tf import ImportanceSampling, LocalEntropy, LossFunction, ReplayError
from lerh_tf.loss import repeatable
from lerh_tf.loss.replayed import ReplayedLoss

GENERATOR = tf.random.Generator.from_seed(1)
COUNT = tf.Variable(0.0)
SEED = [1, 2]


def looped(w: tf.Tensor) -> tf.Tensor:
    def body(i: tf.Tensor, x: tf.Tensor) -> Any:
        return i + 1, tf.cond(i > 0, lambda: x, lambda: x + tf.random.normal([]))

    return tf.while_loop(lambda i, x: i < 2, body, (0, w))[1]


@tf.function
def counted(w: tf.Tensor) -> tf.Tensor:
    COUNT.assign_add(1.0)
    return w


@tf.custom_gradient
def custom(w: tf.Tensor) -> Any:
    return w * tf.random.uniform([]), lambda upstream: upstream


REFUSED: dict[str, tuple[Callable[[tf.Tensor], Any], str]] = {
    "normal": (lambda w: w * tf.random.normal([]), "RandomStandardNormal"),
    "shuffle": (lambda w: tf.random.shuffle(tf.range(3.0))[0] * w, "RandomShuffle"),
    "generator": (lambda w: w * GENERATOR.normal([]), "RngReadAndSkip"),
    "in-loop-and-branch": (looped, "RandomStandardNormal"),
    "in-custom-gradient": (custom, "RandomUniform"),
    "assignment": (lambda w: w * COUNT.assign_add(1.0), "AssignAddVariableOp"),
    "assignment-in-function": (counted, "AssignAddVariableOp"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ["evaluated", "gradient", "replayed"])
def test_refused(name: str, kind: str) -> None:
    function, operation = REFUSED[name]

    def loss(weights: Any) -> tf.Tensor:
        return function(weights[0])

    @tf.function(autograph=False)
    def run() -> Any:
        weights = [tf.constant(1.0)]
        if kind == "replayed":
            return ReplayedLoss.of_function(loss, weights)(weights)
        objective = LossFunction(loss, 1)
        return objective(weights) if kind == "evaluated" else objective.gradient(weights)

    with pytest.raises(ReplayError, match=rf"^Operation '.*' \({operation}\) (draws|would assign)"):
        run()


def test_refused_within_a_sampler_s_loop() -> None:
    w = tf.Variable([1.0, 2.0])
    optimizer = LocalEntropy(0.1, ImportanceSampling(5), seed=0)

    def noisy(weights: Any) -> tf.Tensor:
        return tf.reduce_sum(weights[0]) * tf.random.normal([])

    with pytest.raises(ReplayError, match=r"RandomStandardNormal.*`keras\.random\.SeedGenerator`"):
        optimizer.step(lambda: LossFunction(noisy, 1), [w])
    assert w.numpy().tolist() == [1.0, 2.0]


def test_fixed_seeds_and_draws_from_outside_are_one_loss() -> None:
    @tf.function(autograph=False)
    def run() -> Any:
        outside = tf.random.normal([])
        objective = LossFunction(
            lambda w: w[0] * tf.random.stateless_normal([], SEED) * outside * COUNT, 1
        )
        return tf.stack([objective([tf.constant(1.0)]) for _ in range(2)])

    first, second = run().numpy()
    assert first == second


def test_every_operation_that_draws_is_known() -> None:
    operations = (op_def_registry.get(n) for n in dir(tf.raw_ops) if not n.startswith("_"))
    stateful = [op for op in operations if op is not None and op.is_stateful]
    draws = {op.name for op in stateful if any(a.name == "seed" for a in op.attr)}
    draws |= {op.name for op in stateful if op.name.startswith(("Rng", "Stateful", "NonDet"))}
    # What loads data or calls functions, and cuDNN's layers, whose dropout Keras does not use.
    other = ("RandomShuffleQueue", "StatefulPartitionedCall", "Cudnn")
    assert {name for name in draws if not name.startswith(other)} == repeatable._DRAWS
