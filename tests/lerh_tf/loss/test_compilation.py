"""Which inner loops XLA compiles, that it compiles all it is given, and the size of the graphs."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    RobbinsMonro,
)
from lerh_tf.loss import compilation
from lerh_tf.loss.compilation import is_compilable
from lerh_tf.loss.objective import LossFunction
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.optimizers.base import GaussianApproximation
from tests.lerh_tf._operations import every_operation
from tests.lerh_tf._subspaces import FOUND, ROWS, Array, dense, normal

RNG = np.random.default_rng(0)
# Away from where an operation of the list has a kink.
W = (0.55 + 0.4 * RNG.random((4, 4))).astype("float32")
OTHER = (0.6 + RNG.random((4, 4))).astype("float32")
STACKED = np.stack([W, W[::-1]])


def every_objective(pads: bool = True) -> ReplayedLoss:
    other = tf.constant(OTHER)
    return ReplayedLoss.of_function(lambda w: every_operation(w[0], other, pads), [tf.constant(W)])


def test_every_operation_of_the_list_is_tried() -> None:
    with tf.Graph().as_default():
        found = {node.op for node in every_objective().piece.node}
    assert found == compilation._COMPILABLE


@pytest.mark.parametrize("method", ["__call__", "gradient", "vectorized", "vectorized_gradient"])
def test_xla_compiles_every_operation_of_the_list(method: str) -> None:
    at = [tf.constant(STACKED if "vectorized" in method else W)]

    @tf.function(autograph=False)
    def both() -> Any:
        objective = every_objective(pads="vectorized" not in method)
        assert is_compilable(objective)
        evaluate = getattr(objective, method)
        return evaluate(at), compilation.compiled(evaluate, objective)(at)

    plain, compiled = (np.ravel(value) for value in both())
    assert np.isfinite(plain).all()
    np.testing.assert_allclose(compiled, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pads", [False, True])
def test_every_operation_of_the_list_is_the_same_at_all_samples_at_once(pads: bool) -> None:
    @tf.function(autograph=False)
    def both() -> Any:
        objective = every_objective(pads)
        at_once = objective.vectorized_value_and_gradient([tf.constant(STACKED)])
        return at_once, [objective.value_and_gradient([tf.constant(w)]) for w in STACKED]

    (losses, (gradients,)), one_by_one = both()
    for i, (loss, (gradient,)) in enumerate(one_by_one):
        np.testing.assert_allclose(losses[i], loss, rtol=1e-5)
        np.testing.assert_allclose(gradients[i], gradient, rtol=1e-4, atol=1e-4)


def is_compiled(loss: Callable[[tf.Tensor], tf.Tensor]) -> bool:
    with tf.Graph().as_default():
        return is_compilable(ReplayedLoss.of_function(lambda w: loss(w[0]), [tf.constant(W)]))


def test_one_operation_off_the_list_is_enough() -> None:
    assert is_compiled(lambda w: tf.reduce_sum(w**2))
    assert not is_compiled(lambda w: tf.reduce_sum(tf.cumsum(w) ** 2))
    assert not is_compiled(lambda w: tf.strings.to_number(tf.strings.as_string(w[0, 0])))
    # Only what lies between the weights and the loss counts.
    assert is_compiled(lambda w: tf.reduce_sum(w * tf.cumsum(tf.constant(OTHER))))


def test_a_function_of_the_weights_is_not_looked_into() -> None:
    assert not is_compilable(LossFunction(lambda w: tf.reduce_sum(w[0]), 1))


OPTIMIZERS: dict[str, Callable[..., GaussianApproximation]] = {
    "sgld": lambda n=6, **a: LocalEntropy(0.1, SGLD(n, step_sizes=LangevinSteps(5.0)), seed=0, **a),
    "importance-sampling": lambda n=8, **a: LocalEntropy(0.1, ImportanceSampling(n), seed=0, **a),
    "robbins-monro": lambda n=4, **a: HeatRegularization(0.1, RobbinsMonro(3, n), seed=0, **a),
}


def running_sum(x: Any) -> Any:
    return keras.ops.cumsum(x, axis=1)


def triangular_product(x: Any) -> Any:
    """The same by an operation that is on the list."""
    return keras.ops.matmul(x, np.triu(np.ones((4, 4), "float32")))


def fit(optimizer: GaussianApproximation, summed: Callable[[Any], Any]) -> list[Array]:
    keras.utils.set_random_seed(0)
    x = keras.Input((9,))
    model = keras.Model(x, layers.Dense(2)(layers.Lambda(summed)(dense(x))))
    model.compile(optimizer, "mse")
    y = np.ones((ROWS, 2), "float32")
    model.fit(normal(9), y, batch_size=ROWS, epochs=2, verbose=0)
    return [v.numpy() for v in model.trainable_variables]


@pytest.mark.parametrize("asked", ["auto", False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_loops_train_the_same(name: str, asked: str | bool) -> None:
    compiled, plain = OPTIMIZERS[name](), OPTIMIZERS[name](inner_jit_compile=asked)
    other = running_sum if asked == "auto" else triangular_product
    trained = [fit(compiled, triangular_product), fit(plain, other)]
    assert compiled.diagnostics["compiled"] == 1.0
    assert plain.diagnostics["compiled"] == 0.0
    for a, b in zip(*trained, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert plain.diagnostics["sampled_dimensions"] == ROWS * 4 + 4 + 8 + 2


def test_compiled_where_asked() -> None:
    optimizer = OPTIMIZERS["importance-sampling"](inner_jit_compile=True)
    fit(optimizer, running_sum)
    assert optimizer.diagnostics["compiled"] == 1.0


def test_loss_with_strings_trains() -> None:
    optimizer = LocalEntropy(0.1, ImportanceSampling(4), seed=0)
    w = keras.Variable(W)

    def loss() -> tf.Tensor:
        text = tf.strings.join(["1", tf.strings.as_string(tf.reduce_sum(w.value**2))])
        return tf.strings.to_number(text)

    optimizer.step(loss, [w])
    assert optimizer.diagnostics["compiled"] == 0.0
    assert (w.numpy() != W).all()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_graph_does_not_grow_with_samples(name: str) -> None:
    sizes = {n: graph_size(OPTIMIZERS[name](n)) for n in (10, 1000, 100_000)}
    assert len(set(sizes.values())) == 1, sizes


def graph_size(optimizer: GaussianApproximation) -> int:
    """The number of nodes of one weight update, those of nested functions included."""
    model = FOUND["dense"].model()
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 9])])
    def update(x: tf.Tensor) -> None:
        optimizer.step(lambda x: tf.reduce_mean(model(x) ** 2), model.trainable_variables, x)

    graph = update.get_concrete_function().graph.as_graph_def()
    return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)


@pytest.mark.usefixtures("plain_loops")
def test_one_trace_per_batch_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    original = GaussianApproximation.apply_objective

    def counted(self: Any, *args: Any) -> None:
        traces.append(args)
        original(self, *args)

    monkeypatch.setattr(GaussianApproximation, "apply_objective", counted)
    model, optimizer = FOUND["dense"].model(), OPTIMIZERS["sgld"]()
    # A step that makes variables is traced once more, with every optimizer of Keras.
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    x, y = np.concatenate([normal(9)] * 3), np.ones((9, 2), "float32")
    model.fit(x, y, batch_size=ROWS, epochs=3, verbose=0)
    assert len(traces) == 1
    # A ragged batch is of another shape, and one trace for all sizes takes its place.
    model.fit(x[:8], y[:8], batch_size=ROWS, epochs=3, verbose=0)
    assert len(traces) == 2
    model.fit(x[:7], y[:7], batch_size=ROWS, epochs=3, verbose=0)
    model.fit(x, y, batch_size=4, epochs=2, verbose=0)
    assert len(traces) == 2


MEMORY = """
import resource
import keras
import numpy as np
from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy, RobbinsMonro

def peak(optimizer):
    model = keras.Sequential([keras.Input((100,)), keras.layers.Dense(25), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    model.fit(np.ones((20, 100)), np.ones((20, 1)), batch_size=20, verbose=0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

OPTIMIZERS = (
    lambda n: LocalEntropy(0.01, SGLD(n), seed=0),
    lambda n: LocalEntropy(0.01, ImportanceSampling(n), seed=0),
    lambda n: HeatRegularization(0.01, RobbinsMonro(1, n), seed=0),
)
for make in OPTIMIZERS:
    print("growth", -peak(make(1000)) + peak(make(40_000)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes are Linux's unit of ru_maxrss")
def test_memory_does_not_grow_with_samples() -> None:
    # Noise in one piece would be 80 MB.
    child = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    growths = [float(line.split()[1]) for line in child.stdout.splitlines() if "growth" in line]
    assert len(growths) == 3
    assert max(growths) < 40.0
