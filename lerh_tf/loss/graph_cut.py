"""The nodes of a graph that lie between the weights and the loss."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from lerh_tf.loss.repeatable import TRAIN_STEP_ADVICE, ReplayError, called_functions

_HANDLE_FACTS = frozenset({"VariableShape", "VarIsInitializedOp"})
_SHAPE_FACTS = frozenset({"Shape", "ShapeN", "Size", "Rank"})
# Counted as stateful since nobody knows what they do; a loss that is one may well be a function.
_PYTHON = frozenset({"PyFunc", "EagerPyFunc"})
# Small constants travel with the piece, large ones are passed to it.
_SMALL_CONSTANT_BYTES = 4096


class Cut:
    """The nodes between the weights and the loss, as a graph of their own.

    Args:
        graph: the graph that computed the loss.
        graph_def: its definition when it did.
        loss: name of the loss's node.
        handles: nodes that hold the handle of a weight, as node name to the weight's index.
        values: nodes that hold the value of a weight, likewise.
        labels: the weights' names, for messages.

    Attributes:
        piece: the nodes that depend on a weight; reads of weights are not among them.
        reads: names of the tensors that stand for a weight in `piece`, to its index.
        constants: names of the other tensors that `piece` needs from outside.
        activations: the tensors of the graph that the nodes of `piece` computed in it.
        unbatched: those of them that are as large for any minibatch: single numbers, and what is
            computed from weights alone.

    Raises:
        ReplayError: the loss depends on no weight; or between a weight and the loss stands
            control flow, a nested function, or an operation that reads the weight in a way that
            can't be redirected.
    """

    def __init__(
        self,
        graph: tf.Graph,
        graph_def: Any,
        loss: str,
        handles: Mapping[str, int],
        values: Mapping[str, int],
        labels: Sequence[str],
    ):
        self._graph = graph
        self._nodes = {node.name: node for node in graph_def.node}
        self._handles = handles
        self._values = values
        self._labels = labels
        self.reads: dict[str, int] = {}
        self.constants: list[str] = []
        self._copied: set[str] = set()
        self.piece = tf.compat.v1.GraphDef(versions=graph_def.versions)
        # A dictionary for its order: inputs stand before their consumers.
        self._dependent = dict.fromkeys(self._find_dependent(loss))
        if not self._dependent:
            raise ReplayError(
                "The loss does not depend on any of the weights it is to be minimised over. With "
                "another optimizer Keras would say: No gradients provided for any variable. "
                f"Received: weights={list(labels)}"
            )
        for name in self._dependent:
            self._add(self._nodes[name])
        self.activations: list[tf.Tensor] = [
            output
            for name in self._dependent
            for output in graph.get_operation_by_name(name).outputs
            if output.dtype.is_floating
        ]
        of_weights = self._of_weights()
        self.unbatched = [
            t for t in self.activations if t.shape.rank == 0 or t.op.name in of_weights
        ]

    def _of_weights(self) -> set[str]:
        """Returns the nodes that depend on weights and constants alone."""
        found: set[str] = set()
        for name in self._dependent:
            node = self._nodes[name]
            sources = data_inputs(node)
            if self._reads_weight(node) or all(
                source in found or self._nodes[source].op == "Const" for source in sources
            ):
                found.add(name)
        return found

    def _find_dependent(self, loss: str) -> list[str]:
        """Returns the loss's ancestors that depend on a weight, inputs before consumers."""
        dependent: dict[str, bool] = {}
        data_shaped: set[str] = set()
        for name in self._ancestors(loss):
            node = self._nodes[name]
            inputs = [source for source in data_inputs(node) if dependent.get(source)]
            varies = any(source in data_shaped for source in inputs)
            if node.op in _SHAPE_FACTS and not varies:
                # The same at all weights: what the train step computed will do.
                inputs = []
            dependent[name] = bool(inputs) or self._reads_weight(node)
            if inputs and (varies or self._may_be_size(name)):
                data_shaped.add(name)
        return [name for name, is_dependent in dependent.items() if is_dependent]

    def _may_be_size(self, name: str) -> bool:
        """Returns whether a tensor's size may come from this node: sizes are integers."""
        outputs = self._graph.get_operation_by_name(name).outputs
        return any(output.dtype.is_integer or output.dtype.is_bool for output in outputs)

    def _ancestors(self, loss: str) -> Iterator[str]:
        """Yields the nodes that the loss is computed from, inputs before consumers."""
        done: set[str] = set()
        stack = [loss]
        while stack:
            name = stack[-1]
            missing = [i for i in data_inputs(self._nodes[name]) if i not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if name not in done:
                done.add(name)
                yield name

    def _reads_weight(self, node: Any) -> bool:
        if node.name in self._values:
            return True
        return node.op not in _HANDLE_FACTS and any(
            source in self._handles for source in data_inputs(node)
        )

    def _add(self, node: Any) -> None:
        if node.name in self._values:
            self.reads[f"{node.name}:0"] = self._values[node.name]
        elif node.op == "ReadVariableOp" and node_name(node.input[0]) in self._handles:
            self.reads[f"{node.name}:0"] = self._handles[node_name(node.input[0])]
        elif node.op == "ResourceGather" and node_name(node.input[0]) in self._handles:
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
        self.reads[f"{weight}:0"] = self._handles[node_name(handle)]
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
        name = node_name(source)
        if name in self._dependent or name in self._copied:
            return
        if _is_small_constant(self._nodes[name]):
            # Static shapes, axes and slices need to see the value.
            self._copied.add(name)
            self._copy(self._nodes[name])
        elif tensor_name(source) not in self.constants:
            self.constants.append(tensor_name(source))

    def _check_replayable(self, node: Any) -> None:
        if any(called_functions(node)):
            raise ReplayError(
                f"Between the weights and the loss stands a nested function: operation "
                f"'{node.name}' ({node.op}), as LSTM, GRU, `tf.cond`, `tf.while_loop` and "
                f"`tf.map_fn` make. Its weights can't be redirected. {TRAIN_STEP_ADVICE}"
            )
        touched = [self._handles[s] for s in data_inputs(node) if s in self._handles]
        if touched:
            raise ReplayError(
                f"Operation '{node.name}' ({node.op}) reads the weight "
                f"'{self._labels[touched[0]]}' by its handle, which can't be redirected to other "
                f"values. {TRAIN_STEP_ADVICE}"
            )
        is_stateful = self._graph.get_operation_by_name(node.name).op_def.is_stateful
        if is_stateful and node.op not in _PYTHON:
            raise ReplayError(
                f"Between the weights and the loss stands operation '{node.name}' ({node.op}), "
                "which has a state or an effect of its own, so each evaluation would differ. "
                f"{TRAIN_STEP_ADVICE}"
            )


def node_name(source: str) -> str:
    """Returns the node that an input names."""
    return source.partition(":")[0]


def tensor_name(source: str) -> str:
    """Returns the tensor that an input names, a node's first output where it names a node."""
    return source if ":" in source else f"{source}:0"


def data_inputs(node: Any) -> Iterator[str]:
    """Yields the nodes that a node takes tensors from."""
    return (node_name(source) for source in node.input if not source.startswith("^"))


def _is_small_constant(node: Any) -> bool:
    return node.op == "Const" and node.attr["value"].ByteSize() <= _SMALL_CONSTANT_BYTES
