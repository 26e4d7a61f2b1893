"""What the library uses beyond TensorFlow's and Keras's documented interface, in one place.

A release that moves one of these breaks its test here by name, instead of a training run.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import lerh_tf
from tests.lerh_tf._keras_steps import state_of

# Attributes of Keras's Optimizer; each has its test below.
KERAS = {
    "_accumulated_gradients",
    "_all_reduce_sum_gradients",
    "_check_variables_are_known",
    "_get_variable_index",
    "_iterations",
    "_learning_rate",
    "_trainable_variables",
    "_variables",
}
# Methods of TensorFlow's graphs; likewise.
TENSORFLOW = {"_get_control_flow_context"}
# Methods of Python's own named tuples.
PYTHON = {"_replace"}


def trees() -> Iterator[ast.AST]:
    for path in Path(inspect.getfile(lerh_tf)).parent.rglob("*.py"):
        yield ast.parse(path.read_text(encoding="utf-8"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(node: ast.AST) -> str | None:
    """The name that a node of the library's own code defines, if any."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr if ast.unparse(node.value) == "self" else None
    return node.target.id if _is_field(node) else None  # type: ignore[attr-defined]


def _is_field(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def test_every_private_attribute_is_watched() -> None:
    nodes = [node for tree in trees() for node in ast.walk(tree)]
    own = {defined(node) for node in nodes}
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert {name for name in used if is_private(name)} - own == KERAS | TENSORFLOW | PYTHON


def test_keras_names_variables_that_an_optimizer_does_not_know() -> None:
    optimizer = keras.optimizers.SGD()
    optimizer.build([tf.Variable(1.0)])
    with pytest.raises(ValueError, match="Unknown variable"):
        optimizer._check_variables_are_known([tf.Variable(2.0)])


def test_no_private_module_is_imported() -> None:
    for tree in trees():
        for node in ast.walk(tree):
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in names:
                    assert not name.startswith(("tensorflow.python", "keras.src")), name


def test_func_graph_capture_names_the_handle_that_reads_use() -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function(autograph=False)
    def step() -> tf.Tensor:
        return a + b

    graph = step.get_concrete_function().graph
    with graph.as_default():
        handles = [graph.capture(v.handle).op.name for v in (a, b)]
    reads = [n.input[0] for n in graph.as_graph_def().node if n.op == "ReadVariableOp"]
    assert sorted(handles) == sorted(reads)
    assert len(set(handles)) == 2


def nodes_of(function: Any, *arguments: Any) -> list[Any]:
    concrete = tf.function(function, autograph=False).get_concrete_function(*arguments)
    return list(concrete.graph.as_graph_def().node)


def test_custom_gradients_are_marked_in_the_graph() -> None:
    @tf.custom_gradient
    def custom(x: tf.Tensor) -> Any:
        return tf.identity(x), lambda upstream: upstream

    for function in (custom, tf.nn.silu):
        nodes = nodes_of(function, tf.constant([1.0]))
        assert any("_gradient_op_type" in node.attr for node in nodes)
    assert not any("_gradient_op_type" in n.attr for n in nodes_of(tf.tanh, tf.constant([1.0])))


def test_control_flow_holds_functions_in_the_graph() -> None:
    def conditional(x: tf.Tensor) -> tf.Tensor:
        return tf.cond(x > 0.0, lambda: x, lambda: -x)

    nodes = nodes_of(conditional, tf.constant(1.0))
    assert any(value.HasField("func") for node in nodes for value in node.attr.values())


@pytest.mark.parametrize("jit_compile", [True, False])
def test_a_call_of_a_compiled_function_is_marked_in_the_graph_around_it(jit_compile: bool) -> None:
    found: list[bool] = []

    @tf.function(jit_compile=jit_compile, autograph=False)
    def compiled() -> tf.Tensor:
        graph = tf.compat.v1.get_default_graph()
        contexts = [g._get_control_flow_context() for g in (graph, graph.outer_graph)]
        found.append(any(c is not None and c.IsXLAContext() for c in contexts))
        return tf.constant(1.0)

    tf.function(compiled, autograph=False)()
    assert set(found) == {jit_compile}


@pytest.mark.parametrize(
    ("read", "operation"),
    [
        (lambda v: tf.convert_to_tensor(v), "ReadVariableOp"),
        (lambda v: tf.gather(v, [0]), "ResourceGather"),
        (lambda v: tf.raw_ops.VariableShape(input=v.handle), "VariableShape"),
    ],
)
def test_names_of_the_operations_that_take_a_handle(read: Any, operation: str) -> None:
    variable = tf.Variable([1.0, 2.0])
    assert operation in [node.op for node in nodes_of(lambda: read(variable))]


class Listening(keras.optimizers.SGD):
    """Notes the order in which Keras calls an optimizer, and what it hands over."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(1.0, **arguments)
        self.calls: list[str] = []
        self.seen: list[Any] = []

    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        self.calls.append("scale_loss")
        self.seen = [loss.shape.rank, loss.graph is tf.compat.v1.get_default_graph()]
        return super().scale_loss(loss)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        self.calls.append("apply")
        super().apply(grads, trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        self.calls.append(f"update_step of a {type(variable).__name__}")
        super().update_step(gradient, variable, learning_rate)


def test_keras_hands_the_symbolic_loss_over_before_it_differentiates() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    optimizer = Listening()
    model.compile(optimizer=optimizer, loss="mse")
    model.train_on_batch(np.ones((3, 2)), np.ones((3, 1)))
    once = ["scale_loss", "apply", "update_step of a ResourceVariable"]
    assert optimizer.calls[:3] == once
    assert optimizer.seen == [0, True]


def test_keras_divides_by_the_loss_scale_factor() -> None:
    variable = keras.Variable([8.0])
    Listening(loss_scale_factor=4.0).apply([tf.constant([4.0])], [variable])
    np.testing.assert_array_equal(variable.numpy(), [7.0])


def test_keras_sums_gradients_over_replicas_by_a_method_of_one_argument() -> None:
    optimizer, weight = keras.optimizers.SGD(1.0), keras.Variable([8.0])
    optimizer._all_reduce_sum_gradients = lambda pairs: [(2.0 * g, v) for g, v in pairs]
    optimizer.apply([tf.constant([1.0])], [weight])
    np.testing.assert_array_equal(weight.numpy(), [6.0])


def test_iterations_is_the_raw_counter() -> None:
    variable = keras.Variable([8.0])
    optimizer = Listening(gradient_accumulation_steps=2)
    for _ in range(3):
        optimizer.apply([tf.constant([1.0])], [variable])
    assert int(optimizer._iterations.numpy()) == 3
    assert int(optimizer.iterations) == 1


def test_trainable_variables_and_their_index() -> None:
    variables = [keras.Variable([1.0]), keras.Variable([2.0])]
    optimizer = Listening()
    optimizer.build(variables)
    assert all(a is b for a, b in zip(optimizer._trainable_variables, variables, strict=True))
    assert [optimizer._get_variable_index(v) for v in variables] == [0, 1]
    assert [optimizer._get_variable_index(v.value) for v in variables] == [0, 1]


def test_a_callable_learning_rate_is_called_at_each_use() -> None:
    rates = iter([1.0, 2.0])

    def rate() -> float:
        return next(rates)

    optimizer = keras.optimizers.SGD(rate)
    assert optimizer._learning_rate is rate
    assert [optimizer.learning_rate for _ in range(2)] == [1.0, 2.0]


def test_accumulated_gradients_are_zeros_after_the_last_part() -> None:
    variable = keras.Variable([8.0])
    optimizer = Listening(gradient_accumulation_steps=2)
    for waiting in (1.0, 0.0):
        optimizer.apply([tf.constant([1.0])], [variable])
        (kept,) = optimizer._accumulated_gradients
        assert kept.numpy().item() == waiting


def test_keras_keeps_an_optimizer_s_own_variables() -> None:
    optimizer = keras.optimizers.SGD(0.5)
    made = optimizer.add_variable((), name="mine")
    assert [id(v) for v in optimizer._variables] == [id(v) for v in optimizer.variables]
    assert optimizer._variables[-1] is made


def test_optimizer_variables_are_stored_by_position(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(optimizer=keras.optimizers.SGD(0.5, momentum=0.9), loss="mse")
    model.train_on_batch(np.ones((3, 2)), np.ones((3, 1)))
    store: dict[str, Any] = {}
    model.optimizer.save_own_variables(store)
    assert list(store) == ["0", "1", "2"]
    for kept, value in zip(store.values(), state_of(model.optimizer.variables), strict=True):
        np.testing.assert_array_equal(kept, value)
