"""Algorithm 4's graph: no gradient in it, and its size and memory do not depend on J."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import ImportanceSampling, LocalEntropy
from lerh_tf.kernels.base import Estimate
from lerh_tf.noise import PhiloxNoise
from tests.lerh_tf._cases import dense, sequential
from tests.lerh_tf._kernels import Array, replayed, size_of_blocks

pytestmark = pytest.mark.usefixtures("plain_loops")


class Traced(NamedTuple):
    """The graph of a train step, the bodies of its loops and functions included.

    Attributes:
        operations: how often each kind of operation occurs.
        names: the nodes' names.
        largest: the largest static dimension of any tensor.
        losses: how often the loss's Python code ran.
    """

    operations: Counter[str]
    names: list[str]
    largest: int
    losses: int


def traced(optimizer: keras.optimizers.Optimizer) -> Traced:
    model = sequential((3,), dense(activation="relu"), dense(2))()
    calls = []

    def loss(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        calls.append(1)
        return tf.reduce_mean((y_true - y_pred) ** 2, axis=-1)

    optimizer.build(model.trainable_variables)
    model.compile(optimizer=optimizer, loss=loss)
    step = tf.function(lambda x, y: model.train_step((x, y)), autograph=False)
    graph = step.get_concrete_function(tf.zeros((5, 3)), tf.zeros((5, 2))).graph
    definition = graph.as_graph_def(add_shapes=True)
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    shapes = [shape for n in nodes for shape in n.attr["_output_shapes"].list.shape]
    return Traced(
        Counter(node.op for node in nodes),
        [node.name for node in nodes],
        max(dimension.size for shape in shapes for dimension in shape.dim),
        len(calls),
    )


def sampler(samples: int, **arguments: Any) -> LocalEntropy:
    kernel = ImportanceSampling(samples, **arguments)
    return LocalEntropy(tau=0.1, sampler=kernel, seed=0)


SAMPLES = (10, 1000, 100_000)


@pytest.fixture(scope="module")
def by_samples() -> dict[int, Traced]:
    return {samples: traced(sampler(samples)) for samples in SAMPLES}


@pytest.fixture(scope="module")
def by_sgd() -> Traced:
    return traced(keras.optimizers.SGD())


@pytest.mark.parametrize("samples", SAMPLES[1:])
def test_nodes_do_not_depend_on_samples(by_samples: dict[int, Traced], samples: int) -> None:
    assert by_samples[samples].operations == by_samples[SAMPLES[0]].operations


@pytest.mark.parametrize("samples", SAMPLES)
def test_loss_is_traced_as_often_as_by_sgd(
    by_samples: dict[int, Traced], by_sgd: Traced, samples: int
) -> None:
    assert by_samples[samples].losses == by_sgd.losses


def test_no_tensor_holds_all_samples(by_samples: dict[int, Traced]) -> None:
    graph = by_samples[100_000]
    assert graph.largest <= size_of_blocks([(3, 4), (4,), (4, 2), (2,)])
    assert not [op for op in graph.operations if "TensorList" in op or "TensorArray" in op]


def backward(graph: Traced) -> list[str]:
    names = [name for name in graph.names if "gradient_tape" in name or "gradients/" in name]
    return [*names, *(op for op in graph.operations if "Grad" in op and op != "StopGradient")]


def test_no_backward_operation_exists(by_samples: dict[int, Traced], by_sgd: Traced) -> None:
    assert backward(by_samples[1000]) == []
    assert "ReluGrad" in backward(by_sgd)
    assert any("gradient_tape" in name for name in backward(by_sgd))


def test_noise_is_asked_for_block_by_block() -> None:
    samples, x = 5000, tf.Variable(tf.zeros(700))
    block = size_of_blocks([(700,)])
    asked, blocks = tf.Variable(0), tf.Variable(0)

    def noise(block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        asked.assign(tf.maximum(asked, samples))
        blocks.assign_add(1)
        return PhiloxNoise(0, tf.constant(0, tf.int64), [x])(block, samples)

    @tf.function(autograph=False)
    def run() -> Estimate:
        read = tf.convert_to_tensor(x)
        objective = replayed(tf.reduce_sum(read**2), [x])
        return ImportanceSampling(samples)(objective, [read], tf.constant(0.1), noise)

    run()
    assert asked.numpy() == block < samples
    assert blocks.numpy() == -(-samples // block)


def zero_one(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """The error rate, whose gradient is zero wherever it exists."""
    wrong = tf.not_equal(tf.argmax(y_pred, -1, tf.int32), tf.cast(y_true[:, 0], tf.int32))
    return tf.cast(wrong, tf.float32)


def without_registered_gradient(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    """Cross-entropy of logits made twice as large by an operation that has no gradient."""
    doubled = tf.image.adjust_contrast(y_pred[None, :, None, :], 2.0)[0, :, 0]
    return keras.losses.sparse_categorical_crossentropy(y_true, doubled, from_logits=True)


def separable() -> tuple[Array, Array]:
    x = np.random.default_rng(4).standard_normal((60, 3)).astype("float32")
    return x, (x @ [1.0, -2.0, 0.5] > 0.3).astype("float32")[:, None]


def accuracy(model: keras.Model, x: Array, y: Array) -> float:
    return float(np.mean(np.argmax(model(x), -1) == y[:, 0]))


@pytest.mark.parametrize(
    ("loss", "jit_compile"),
    [(zero_one, False), (zero_one, True), (without_registered_gradient, False)],
)
def test_trains_where_no_gradient_exists(loss: Callable[..., tf.Tensor], jit_compile: bool) -> None:
    keras.utils.set_random_seed(3)
    model = sequential((3,), lambda: layers.Dense(2))()
    x, y = separable()
    before = accuracy(model, x, y)
    optimizer = sampler(500, loss_multiplier=60.0)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=jit_compile)
    model.fit(x, y, batch_size=60, epochs=12, shuffle=False, verbose=0)
    assert before < 0.8
    assert accuracy(model, x, y) > 0.9


@pytest.mark.parametrize(
    ("loss", "refusal"),
    [
        (zero_one, "No gradients provided"),
        (without_registered_gradient, "gradient registry has no entry"),
    ],
)
def test_plain_sgd_finds_no_gradient_there(loss: Callable[..., tf.Tensor], refusal: str) -> None:
    model = sequential((3,), lambda: layers.Dense(2))()
    model.compile(optimizer="sgd", loss=loss)
    with pytest.raises((ValueError, LookupError), match=refusal):
        model.train_on_batch(*separable())
