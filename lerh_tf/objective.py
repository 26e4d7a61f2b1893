"""f on the current minibatch as a pure function of the weights.

Keras hands an optimizer gradients; Algorithms 3-5 need the loss, and its gradient, at hundreds of
other weights. `CapturedLoss` remembers the graph of the loss that a train step has just built, and
`ReplayedLoss` replays the piece of it that lies between the weights and the loss. `LossFunction`
is for losses that are such a function already.

Whatever that piece reads from outside itself (inputs, labels, dropout seeds, moving statistics)
keeps the value it has in the train step, so all evaluations of one weight update see the same
minibatch and the same dropout masks, and no variable moves while they run.
"""

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import keras
import tensorflow as tf

Variable: TypeAlias = keras.Variable | tf.Variable
Weights: TypeAlias = Sequence[tf.Tensor]

_HANDLE_FACTS = frozenset({"VariableShape", "VarIsInitializedOp"})
# The shape of a tensor is the same at all weights, unless one of _DATA_SHAPED stands before it.
_SHAPE_FACTS = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_DATA_SHAPED = frozenset(
    {
        *("Bincount", "DynamicPartition", "Fill", "ListDiff", "NonMaxSuppressionV5", "Range"),
        *("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "Where"),
    }
)
_EXPLICIT_DOOR = (
    "Let the model subclass `lerh_tf.TrainStep` beside `keras.Model`, which evaluates the loss as "
    "a function of the weights instead of replaying its graph."
)


class ReplayError(ValueError):
    """The loss of this train step can't be evaluated at other weights by replaying its graph."""


def native(variable: Variable) -> tf.Variable:
    """Returns the `tf.Variable` inside a Keras variable, or `variable` itself."""
    return variable.value if isinstance(variable, keras.Variable) else variable


class CapturedLoss:
    """A loss tensor together with its graph as it stood when the loss was computed.

    Args:
        loss: scalar symbolic tensor, the minibatch loss; any floating dtype.

    Raises:
        ReplayError: `loss` is an eager tensor, which has no graph to replay.
        ValueError: `loss` is no scalar.
    """

    def __init__(self, loss: tf.Tensor):
        if not tf.is_symbolic_tensor(loss):
            raise ReplayError(
                "The loss was computed eagerly, so there is no graph to replay at other weights "
                f"(`run_eagerly=True`?). Compile the model without it. {_EXPLICIT_DOOR} "
                f"Received: loss={loss!r}"
            )
        if loss.shape.rank not in (0, None):
            raise ValueError(f"The loss must be a scalar. Received: loss={loss!r}")
        self.graph = loss.graph
        # A node of our own: the loss may be a bare read of a variable.
        self.name = tf.identity(loss).name
        # Taken now: a later `tape.gradient` rewrites control flow in place.
        self.graph_def = self.graph.as_graph_def()


class Objective(abc.ABC):
    """The minibatch loss f as a pure function of the weights that it depends on.

    Attributes:
        is_used: per variable, whether f depends on it. The `weights` arguments below hold one
            tensor per variable that is used, in the order of the variables.
    """

    is_used: tuple[bool, ...]

    @abc.abstractmethod
    def __call__(self, weights: Weights) -> tf.Tensor:
        """Returns f(weights).

        Args:
            weights: one tensor per used variable, with its shape and dtype.

        Returns:
            Scalar tensor, the loss, in the dtype the model computes it in.
        """

    @abc.abstractmethod
    def gradient(self, weights: Weights) -> list[tf.Tensor]:
        """Returns grad f(weights).

        Args:
            weights: one tensor per used variable, with its shape and dtype.

        Returns:
            One tensor per used variable, of its shape and dtype.
        """

    def vectorized(self, stacked: Weights) -> tf.Tensor:
        """Returns f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            Tensor of shape [samples], the losses.
        """
        return tf.reshape(vectorize(self, stacked), tf.shape(stacked[0])[:1])

    def vectorized_gradient(self, stacked: Weights) -> list[tf.Tensor]:
        """Returns grad f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            One tensor per used variable, shape [samples, *shape].
        """
        gradients = vectorize(self.gradient, stacked)
        return [tf.ensure_shape(g, s.shape) for g, s in zip(gradients, stacked, strict=True)]


class ReplayedLoss(Objective):
    """A captured loss as a pure function of the weights, by replaying its graph.

    Args:
        captured: the loss and its graph; must belong to the graph being traced.
        variables: the trainable weights.

    Raises:
        ReplayError: the loss belongs to another graph, or between a weight and the loss stands
            control flow, a nested function, or an operation that reads the weight in a way that
            can't be redirected.
    """

    def __init__(self, captured: CapturedLoss, variables: Sequence[Variable]):
        _check_same_graph(captured)
        self._graph = captured.graph
        self._loss = captured.name
        cut = _Cut(captured, variables)
        self._piece = cut.piece
        self._constants = cut.constants
        used = sorted(set(cut.reads.values()))
        self.is_used = tuple(index in used for index in range(len(variables)))
        self._reads = {read: used.index(index) for read, index in cut.reads.items()}

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        inputs = {read: tf.identity(weights[index]) for read, index in self._reads.items()}
        for name in self._constants:
            inputs[name] = tf.identity(self._graph.get_tensor_by_name(name))
        (loss,) = tf.graph_util.import_graph_def(
            self._piece, input_map=inputs, return_elements=[self._loss], name="f"
        )
        return loss

    def gradient(self, weights: Weights) -> list[tf.Tensor]:
        """See `Objective`.

        Raises:
            ReplayError: an operation between a weight and the loss has a custom gradient, whose
                backward pass would see the tensors of the original graph.
        """
        self._check_gradient()
        # `import_graph_def` bypasses gradient tapes: symbolic differentiation it is.
        local = [tf.identity(weight) for weight in weights]
        gradients = tf.gradients(self(local), local, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _check_gradient(self) -> None:
        for node in self._piece.node:
            if "_gradient_op_type" in node.attr:
                raise ReplayError(
                    f"Operation '{node.name}' has a custom gradient (`tf.custom_gradient`; "
                    "`tf.nn.silu` is one), whose backward pass would use the tensors of the "
                    "original weights and return a wrong gradient. Use a gradient-free sampler "
                    f"(`ImportanceSampling`), or: {_EXPLICIT_DOOR}"
                )


class LossFunction(Objective):
    """A loss that is a Python function of the weights.

    Args:
        function: takes one tensor per variable to the scalar loss, and moves no variable.
        size: the number of variables; f is taken to depend on all of them.
    """

    def __init__(self, function: Callable[[Weights], tf.Tensor], size: int):
        self._function = function
        self.is_used = (True,) * size

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        return self._function(weights)

    def gradient(self, weights: Weights) -> list[tf.Tensor]:
        """See `Objective`."""
        local = [tf.identity(weight) for weight in weights]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(local)
            loss = self._function(local)
        gradients = tape.gradient(loss, local, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]


def vectorize(function: Callable[[Weights], Any], stacked: Weights, fallback: bool = True) -> Any:
    """Maps `function` over the leading axis of every tensor in `stacked`."""
    # Convolutions with one kernel per sample have no vectorised form.
    return tf.vectorized_map(function, list(stacked), fallback_to_while_loop=fallback)


def _check_same_graph(captured: CapturedLoss) -> None:
    current = tf.compat.v1.get_default_graph()
    if captured.graph is not current:
        raise ReplayError(
            "The loss that `scale_loss` received belongs to another graph than the one that "
            "`apply` runs in, so it is not the loss of this weight update. Call both in the same "
            f"`tf.function`. Received: loss graph={captured.graph}, current graph={current}"
        )


def _handle_name(graph: tf.Graph, variable: Variable) -> str:
    # Not in TensorFlow's public interface: tests/lerh_tf/test_private_api.py watches it.
    return str(graph.capture(native(variable).handle).op.name)


class _Cut:
    """The nodes between the reads of the weights and the loss, as a graph of their own."""

    def __init__(self, captured: CapturedLoss, variables: Sequence[Variable]):
        self._nodes = {node.name: node for node in captured.graph_def.node}
        self._handles = {
            _handle_name(captured.graph, variable): index
            for index, variable in enumerate(variables)
        }
        self._labels = [getattr(variable, "path", variable.name) for variable in variables]
        self.reads: dict[str, int] = {}
        self.constants: list[str] = []
        self.piece = tf.compat.v1.GraphDef(versions=captured.graph_def.versions)
        # A dictionary for its order: inputs stand before their consumers.
        self._dependent = dict.fromkeys(self._find_dependent(_node_name(captured.name)))
        if not self._dependent:
            raise ReplayError(
                "The loss does not depend on any of the weights it is to be minimised over. "
                f"Received: variables={self._labels}"
            )
        for name in self._dependent:
            self._add(self._nodes[name])

    def _find_dependent(self, loss: str) -> list[str]:
        """Returns the loss's ancestors that depend on a weight, inputs before consumers."""
        dependent: dict[str, bool] = {}
        data_shaped: set[str] = set()
        for name in self._ancestors(loss):
            node = self._nodes[name]
            inputs = [source for source in _data_inputs(node) if dependent.get(source)]
            varies = any(source in data_shaped for source in inputs)
            if node.op in _SHAPE_FACTS and not varies:
                inputs = []
            dependent[name] = bool(inputs) or self._reads_weight(node)
            if inputs and (varies or node.op in _DATA_SHAPED):
                data_shaped.add(name)
        return [name for name, is_dependent in dependent.items() if is_dependent]

    def _ancestors(self, loss: str) -> Iterator[str]:
        """Yields the nodes that the loss is computed from, inputs before consumers."""
        done: set[str] = set()
        stack = [loss]
        while stack:
            name = stack[-1]
            missing = [i for i in _data_inputs(self._nodes[name]) if i not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if name not in done:
                done.add(name)
                yield name

    def _reads_weight(self, node: Any) -> bool:
        return node.op not in _HANDLE_FACTS and any(
            source in self._handles for source in _data_inputs(node)
        )

    def _add(self, node: Any) -> None:
        if node.op == "ReadVariableOp" and _node_name(node.input[0]) in self._handles:
            self.reads[f"{node.name}:0"] = self._handles[_node_name(node.input[0])]
        elif node.op == "ResourceGather" and _node_name(node.input[0]) in self._handles:
            self._add_gather(node)
        else:
            self._check_replayable(node)
            self._copy(node)

    def _copy(self, node: Any) -> None:
        copy = self.piece.node.add()
        copy.CopyFrom(node)
        copy.attr.pop("_class", None)
        del copy.input[:]
        for source in node.input:
            if not source.startswith("^"):
                copy.input.append(source)
                self._record_constant(source)

    def _add_gather(self, node: Any) -> None:
        """Rewrites a gather from a variable as a gather from a tensor."""
        handle, indices = node.input[0], node.input[1]
        weight, axis = f"{node.name}/weight", f"{node.name}/axis"
        self.reads[f"{weight}:0"] = self._handles[_node_name(handle)]
        self._record_constant(indices)
        constant = self.piece.node.add(name=axis, op="Const")
        constant.attr["dtype"].type = tf.int32.as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(0, tf.int32))
        gather = self.piece.node.add(name=node.name, op="GatherV2")
        gather.input.extend([weight, indices, axis])
        gather.attr["Tparams"].type = node.attr["dtype"].type
        gather.attr["Tindices"].type = node.attr["Tindices"].type
        gather.attr["Taxis"].type = tf.int32.as_datatype_enum
        gather.attr["batch_dims"].i = node.attr["batch_dims"].i

    def _record_constant(self, source: str) -> None:
        if _node_name(source) not in self._dependent and _tensor_name(source) not in self.constants:
            self.constants.append(_tensor_name(source))

    def _check_replayable(self, node: Any) -> None:
        if any(value.HasField("func") for value in node.attr.values()):
            raise ReplayError(
                f"Between the weights and the loss stands a nested function: operation "
                f"'{node.name}' ({node.op}), as LSTM, GRU, `tf.cond`, `tf.while_loop` and "
                f"`tf.map_fn` make. Its weights can't be redirected. {_EXPLICIT_DOOR}"
            )
        touched = [self._handles[s] for s in _data_inputs(node) if s in self._handles]
        if touched:
            raise ReplayError(
                f"Operation '{node.name}' ({node.op}) reads the weight "
                f"'{self._labels[touched[0]]}' by its handle, which can't be redirected to other "
                f"values. {_EXPLICIT_DOOR}"
            )


def _node_name(source: str) -> str:
    return source.partition(":")[0]


def _tensor_name(source: str) -> str:
    return source if ":" in source else f"{source}:0"


def _data_inputs(node: Any) -> Iterator[str]:
    return (_node_name(source) for source in node.input if not source.startswith("^"))
