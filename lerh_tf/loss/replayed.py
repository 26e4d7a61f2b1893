"""The loss of a train step as a function of the weights, by replaying its graph.

`CapturedLoss` remembers the graph of the loss that a train step has just built, and `ReplayedLoss`
replays the piece of it that lies between the weights and the loss. Whatever that piece reads from
outside itself (inputs, labels, dropout seeds, moving statistics) keeps the value it has in the
train step, so all evaluations of one weight update see the same minibatch and the same dropout
masks, and no variable moves while they run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

import tensorflow as tf

from lerh_tf.loss.gradients import check_gradient, custom_gradient
from lerh_tf.loss.graph_cut import Cut, node_name, tensor_name
from lerh_tf.loss.objective import Objective, Variable, Weights, connected, native
from lerh_tf.loss.repeatable import TRAIN_STEP_ADVICE, ReplayError, is_assignment, repeatable

Rule: TypeAlias = Callable[..., tf.Tensor | None]


class CapturedLoss:
    """A loss tensor together with its graph as it stood when the loss was computed.

    Args:
        loss: scalar symbolic tensor, the minibatch loss; any floating dtype.
        since: number of the graph's operations that belong to earlier weight updates.

    Attributes:
        assigned: names of the nodes whose resource this weight update has assigned to so far.

    Raises:
        ReplayError: `loss` is an eager tensor, which has no graph to replay.
        ValueError: `loss` is no scalar.
    """

    def __init__(self, loss: tf.Tensor, since: int = 0):
        if not tf.is_symbolic_tensor(loss):
            raise ReplayError(
                "The loss was computed eagerly, so there is no graph to replay at other weights "
                "(`compile(run_eagerly=True)` or `tf.config.run_functions_eagerly(True)`?). Do "
                f"without it. {TRAIN_STEP_ADVICE} "
                f"Received: loss={loss!r}"
            )
        if loss.shape.rank not in (0, None):
            raise ValueError(
                "The loss must be a scalar: take the mean over the rows, `tf.reduce_mean(loss)`. "
                f"Received: loss={loss!r}"
            )
        self.graph = loss.graph
        # A node of our own: the loss may be a bare read of a variable.
        self.name = tf.identity(loss).name
        # Taken now: a later `tape.gradient` rewrites control flow in place.
        self.graph_def = self.graph.as_graph_def()
        self.assigned = frozenset(
            node_name(node.input[0]) for node in self.graph_def.node[since:] if is_assignment(node)
        )


class ReplayedLoss(Objective):
    """A captured loss as a pure function of the weights, by replaying its graph.

    Args:
        piece: the nodes between the weights and the loss.
        loss: name of the loss tensor.
        reads: names of the tensors that stand for a weight in `piece`, to its position among the
            used ones.
        constants: the other tensors that `piece` needs from outside, by the names it has for them.
        dtypes: of the used weights.
        is_used: per variable, whether the loss depends on it.
        footprint: about how many numbers one evaluation holds.
        padding: how many entries of the weights stand for no dimension.
        unbatched: how many of those numbers are there once, whatever the minibatch.
    """

    def __init__(
        self,
        piece: Any,
        loss: str,
        reads: Mapping[str, int],
        constants: Mapping[str, tf.Tensor],
        dtypes: Sequence[tf.DType],
        is_used: tuple[bool, ...],
        footprint: int | tf.Tensor,
        padding: int | tf.Tensor = 0,
        unbatched: int | tf.Tensor = 0,
    ):
        self.piece = piece
        self.operations = piece.node
        self.reads = reads
        self.constants = constants
        self.is_used = is_used
        self.footprint = footprint
        self.unbatched = unbatched
        self.dtypes = dtypes
        self._padding = padding
        self.loss = loss

    @classmethod
    def of_variables(cls, captured: CapturedLoss, variables: Sequence[Variable]) -> Self:
        """Returns a captured loss as a function of the variables that it was computed from.

        Args:
            captured: the loss and its graph; must belong to the graph being traced.
            variables: the trainable weights.

        Raises:
            ReplayError: the loss belongs to another graph or can't be replayed.
        """
        handles = [_handle_name(captured.graph, variable) for variable in variables]
        labels = [getattr(variable, "path", variable.name) for variable in variables]
        _check_unassigned(captured, handles, labels)
        dtypes = [native(variable).dtype for variable in variables]
        return cls._cut(captured, handles, [], labels, dtypes)

    @classmethod
    def of_function(cls, function: Callable[[Weights], tf.Tensor], weights: Weights) -> Self:
        """Returns a function of the weights, traced once in the current graph.

        Args:
            function: takes one tensor per weight to the scalar loss.
            weights: values to trace at.

        Raises:
            ReplayError: the loss can't be replayed, draws random numbers that another trace of
                it would not draw, or assigns to a variable.
        """
        local = [tf.identity(weight) for weight in weights]
        names = [tensor.op.name for tensor in local]
        dtypes = [tensor.dtype for tensor in local]
        return cls._cut(CapturedLoss(repeatable(function)(local)), [], names, names, dtypes)

    @classmethod
    def _cut(
        cls,
        captured: CapturedLoss,
        handles: Sequence[str],
        values: Sequence[str],
        labels: Sequence[str],
        dtypes: Sequence[tf.DType],
    ) -> Self:
        _check_same_graph(captured)
        cut = Cut(
            captured.graph,
            captured.graph_def,
            node_name(captured.name),
            _index(handles),
            _index(values),
            labels,
        )
        used = sorted(set(cut.reads.values()))
        constants = {name: captured.graph.get_tensor_by_name(name) for name in cut.constants}
        return cls(
            cut.piece,
            captured.name,
            {read: used.index(index) for read, index in cut.reads.items()},
            constants,
            [dtypes[index] for index in used],
            tuple(index in used for index in range(len(labels))),
            _total_size(cut.activations),
            unbatched=_total_size(cut.unbatched),
        )

    @property
    def custom_gradient(self) -> str | None:
        """Name of an operation with a custom gradient, whose backward pass can't be replayed."""
        return custom_gradient(self.piece.node)

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        # Coordinates of a subspace come in a wider dtype than the weights have.
        values = [
            tf.identity(tf.cast(weight, dtype))
            for weight, dtype in zip(weights, self.dtypes, strict=True)
        ]
        return self._evaluated(values, {})

    def replacing(self, rules: Mapping[str, Rule], weights: Weights) -> "ReplayedLoss":
        """Returns the same loss by other operations.

        What then no longer depends on the weights is computed once, not at each evaluation.

        Args:
            rules: by type of operation, what takes a node and its inputs to its output, or to
                None where the operation is to stay.
            weights: values to trace at.
        """
        replaced = self.of_function(lambda w: self._evaluated(w, rules), weights)
        replaced.is_used, replaced.jit_compile = self.is_used, self.jit_compile
        return replaced

    def _evaluated(self, weights: Weights, rules: Mapping[str, Rule]) -> tf.Tensor:
        known = {read: weights[index] for read, index in self.reads.items()}
        # Operations of the current graph: an import into a nested one captures nothing.
        known |= {name: tf.identity(constant) for name, constant in self.constants.items()}
        waiting: list[Any] = []
        # Constants first: the cut has them behind their consumers.
        for node in sorted(self.piece.node, key=lambda node: node.op != "Const"):
            if node.op in rules:
                known |= self.imported(waiting, known)
                waiting = []
                inputs = [known[tensor_name(source)] for source in node.input]
                output = rules[node.op](node, *inputs)
                if output is not None:
                    known[f"{node.name}:0"] = output
                    continue
            waiting.append(node)
        return (known | self.imported(waiting, known))[self.loss]

    def imported(
        self, nodes: Sequence[Any], known: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Returns the outputs of some nodes by name, as operations of the current graph.

        Args:
            nodes: of `piece`.
            known: by name, all their inputs from outside, constants too.
        """
        names = {node.name for node in nodes}
        needed = {tensor_name(source) for node in nodes for source in node.input}
        operations = tf.graph_util.import_graph_def(
            tf.compat.v1.GraphDef(node=nodes, versions=self.piece.versions),
            input_map={name: known[name] for name in needed if node_name(name) not in names},
            return_elements=[node.name for node in nodes],
            name="f",
        )
        return {
            f"{node.name}:{index}": output
            for node, operation in zip(nodes, operations, strict=True)
            for index, output in enumerate(operation.outputs)
        }

    def value_and_gradient(self, weights: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """See `Objective`.

        Raises:
            ReplayError: an operation between a weight and the loss has a custom gradient, whose
                backward pass would see the tensors of the original graph, or is a
                `tf.py_function`.
            ValueError: f has no gradient with respect to any weight.
        """
        self.check_gradient()
        # `import_graph_def` bypasses gradient tapes: symbolic differentiation it is.
        local = [tf.identity(weight) for weight in weights]
        loss = self(local)
        return loss, connected(tf.gradients(loss, local), local)

    def check_gradient(self) -> None:
        """Raises a `ReplayError` where an operation's gradient can't be replayed."""
        check_gradient(self.piece.node)

    def constant(self, source: str) -> tf.Tensor | None:
        """Returns an input of `piece` that does not depend on the weights; None for others.

        Args:
            source: the input as a node of `piece` names it.
        """
        node = next((n for n in self.piece.node if n.name == node_name(source)), None)
        if node is not None and node.op == "Const":
            return tf.constant(tf.make_ndarray(node.attr["value"].tensor))
        return self.constants.get(tensor_name(source))

    def consumers(self) -> dict[str, list[tuple[Any, int]]]:
        """Returns who takes each tensor, by its name: nodes, and as which of their inputs."""
        found: dict[str, list[tuple[Any, int]]] = {}
        for node in self.piece.node:
            for position, source in enumerate(node.input):
                found.setdefault(tensor_name(source), []).append((node, position))
        return found

    def dimensions(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        return super().dimensions(weights) - self._padding

    def rewired(
        self, inputs: Mapping[tuple[str, int], tf.Tensor], padding: int | tf.Tensor
    ) -> "ReplayedLoss":
        """Returns the same loss with some constant inputs of its operations exchanged.

        Args:
            inputs: by (operation's name, position of the input), the tensor to use instead.
            padding: how many entries of the weights then stand for no dimension.
        """
        piece = tf.compat.v1.GraphDef()
        piece.CopyFrom(self.piece)
        nodes = {node.name: node for node in piece.node}
        constants = dict(self.constants)
        for (name, position), tensor in inputs.items():
            source = f"rewired/{name}/{position}:0"
            nodes[name].input[position] = source
            constants[source] = tensor
        needed = {tensor_name(source) for node in piece.node for source in node.input}
        constants = {name: tensor for name, tensor in constants.items() if name in needed}
        rewired = ReplayedLoss(
            piece,
            self.loss,
            self.reads,
            constants,
            self.dtypes,
            self.is_used,
            self.footprint,
            padding,
            self.unbatched,
        )
        rewired.jit_compile = self.jit_compile
        return rewired


def _total_size(tensors: Sequence[tf.Tensor]) -> int | tf.Tensor:
    """Returns the number of entries of all tensors, a tensor where shapes are not static."""
    static = [t.shape.num_elements() for t in tensors if t.shape.is_fully_defined()]
    dynamic = [tf.size(t, tf.int64) for t in tensors if not t.shape.is_fully_defined()]
    return tf.add_n([tf.constant(sum(static), tf.int64), *dynamic]) if dynamic else sum(static)


def _check_same_graph(captured: CapturedLoss) -> None:
    current = tf.compat.v1.get_default_graph()
    if captured.graph is not current:
        raise ReplayError(
            "The loss that `scale_loss` received belongs to another graph than the one that "
            "`apply` runs in, so it is not the loss of this weight update. Call both in the same "
            f"`tf.function`. Received: loss graph={captured.graph}, current graph={current}"
        )


def _check_unassigned(
    captured: CapturedLoss, handles: Sequence[str], labels: Sequence[str]
) -> None:
    for handle, label in zip(handles, labels, strict=True):
        if handle in captured.assigned:
            raise ReplayError(
                f"The weight '{label}' is assigned to before the loss is computed, as "
                "`keras.layers.SpectralNormalization` does, so the loss at other weights is not "
                "the one that its graph would give. (Another optimizer's step belongs into a "
                f"function of its own.) {TRAIN_STEP_ADVICE}"
            )


def _handle_name(graph: tf.Graph, variable: Variable) -> str:
    # Not in TensorFlow's public interface: tests/lerh_tf/test_private_api.py watches it.
    return str(graph.capture(native(variable).handle).op.name)


def _index(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}
