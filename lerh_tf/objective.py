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
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

import keras
import tensorflow as tf

from lerh_tf._graph_cut import (
    EXPLICIT_DOOR,
    Cut,
    ReplayError,
    is_assignment,
    node_name,
    tensor_name,
)

Variable: TypeAlias = keras.Variable | tf.Variable
Weights: TypeAlias = Sequence[tf.Tensor]

# Of a loss that is a Python function, about which nothing is known: few evaluations at once.
_UNKNOWN_FOOTPRINT = 2**19


def native(variable: Variable) -> tf.Variable:
    """Returns the `tf.Variable` inside a Keras variable, or `variable` itself."""
    return variable.value if isinstance(variable, keras.Variable) else variable


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
                f"without it. {EXPLICIT_DOOR} "
                f"Received: loss={loss!r}"
            )
        if loss.shape.rank not in (0, None):
            raise ValueError(f"The loss must be a scalar. Received: loss={loss!r}")
        self.graph = loss.graph
        # A node of our own: the loss may be a bare read of a variable.
        self.name = tf.identity(loss).name
        # Taken now: a later `tape.gradient` rewrites control flow in place.
        self.graph_def = self.graph.as_graph_def()
        self.assigned = frozenset(
            node_name(node.input[0]) for node in self.graph_def.node[since:] if is_assignment(node)
        )


class Objective(abc.ABC):
    """The minibatch loss f as a pure function of the weights that it depends on.

    Attributes:
        is_used: per variable, whether f depends on it. The `weights` arguments below hold one
            tensor per variable that is used, in the order of the variables.
        footprint: about how many numbers one evaluation holds.
        is_vectorized: False once an operation had to be evaluated sample by sample, or if the loss
            has a loop.
    """

    is_used: tuple[bool, ...]
    footprint: int | tf.Tensor = _UNKNOWN_FOOTPRINT
    is_vectorized: bool = True

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

        Raises:
            ValueError: f has no gradient with respect to any of them.
        """

    def vectorized(self, stacked: Weights) -> tf.Tensor:
        """Returns f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            Tensor of shape [samples], the losses.
        """
        return tf.reshape(self._vectorize(self, stacked), tf.shape(stacked[0])[:1])

    def vectorized_gradient(self, stacked: Weights) -> list[tf.Tensor]:
        """Returns grad f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            One tensor per used variable, shape [samples, *shape].
        """
        gradients = self._vectorize(self.gradient, stacked)
        return [tf.ensure_shape(g, s.shape) for g, s in zip(gradients, stacked, strict=True)]

    def dimensions(self, weights: Weights) -> tf.Tensor:
        """Returns in how many dimensions of the weights f lives.

        Args:
            weights: one tensor per used variable.
        """
        return tf.add_n([tf.size(weight) for weight in weights])

    def _vectorize(self, function: Callable[[Weights], Any], stacked: Weights) -> Any:
        """Maps `function` over the leading axis of every tensor in `stacked`."""
        before = _loops()
        samples = tf.shape(stacked[0])[0]
        # One sample alone goes in twice: of an axis of size 1 TensorFlow makes none, and then adds
        # a convolution's bias along another.
        twice = tf.cast(tf.equal(samples, 1), tf.int32)
        at_least_two = [tf.concat([s, s[:twice]], 0) for s in stacked]
        # Convolutions with one kernel per sample, for one, have no vectorised form.
        result = tf.vectorized_map(function, at_least_two, fallback_to_while_loop=True)
        self.is_vectorized = self.is_vectorized and _loops() == before
        return tf.nest.map_structure(lambda each: each[:samples], result)


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
    ):
        self.piece = piece
        self.reads = reads
        self.constants = constants
        self.is_used = is_used
        self.footprint = footprint
        self._dtypes = dtypes
        self._padding = padding
        self._loss = loss

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
            function: takes one tensor per weight to the scalar loss, and moves no variable.
            weights: values to trace at.

        Raises:
            ReplayError: the loss can't be replayed.
        """
        local = [tf.identity(weight) for weight in weights]
        names = [tensor.op.name for tensor in local]
        dtypes = [tensor.dtype for tensor in local]
        return cls._cut(CapturedLoss(function(local)), [], names, names, dtypes)

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
        )

    @property
    def custom_gradient(self) -> str | None:
        """Name of an operation with a custom gradient, whose backward pass can't be replayed."""
        nodes = (node.name for node in self.piece.node if "_gradient_op_type" in node.attr)
        return next(nodes, None)

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        # Coordinates of a subspace come in a wider dtype than the weights have.
        values = [
            tf.identity(tf.cast(weight, dtype))
            for weight, dtype in zip(weights, self._dtypes, strict=True)
        ]
        inputs = {read: values[index] for read, index in self.reads.items()}
        inputs |= {name: tf.identity(constant) for name, constant in self.constants.items()}
        (loss,) = tf.graph_util.import_graph_def(
            self.piece, input_map=inputs, return_elements=[self._loss], name="f"
        )
        return loss

    def gradient(self, weights: Weights) -> list[tf.Tensor]:
        """See `Objective`.

        Raises:
            ReplayError: an operation between a weight and the loss has a custom gradient, whose
                backward pass would see the tensors of the original graph.
            ValueError: f has no gradient with respect to any weight.
        """
        if self.custom_gradient is not None:
            raise ReplayError(
                f"Operation '{self.custom_gradient}' has a custom gradient (`tf.custom_gradient`; "
                "`tf.nn.silu` is one), whose backward pass would use the tensors of the "
                "original weights and return a wrong gradient. Use a gradient-free sampler "
                f"(`ImportanceSampling`), or: {EXPLICIT_DOOR}"
            )
        # `import_graph_def` bypasses gradient tapes: symbolic differentiation it is.
        local = [tf.identity(weight) for weight in weights]
        return _connected(tf.gradients(self(local), local), local)

    def constant(self, source: str) -> tf.Tensor | None:
        """Returns an input of `piece` that does not depend on the weights; None for others.

        Args:
            source: the input as a node of `piece` names it.
        """
        node = next((n for n in self.piece.node if n.name == node_name(source)), None)
        if node is not None and node.op == "Const":
            return tf.constant(tf.make_ndarray(node.attr["value"].tensor))
        return self.constants.get(tensor_name(source))

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
        return ReplayedLoss(
            piece,
            self._loss,
            self.reads,
            constants,
            self._dtypes,
            self.is_used,
            self.footprint,
            padding,
        )


class LossFunction(Objective):
    """A loss that is a Python function of the weights.

    Args:
        function: takes one tensor per variable to the scalar loss, and moves no variable.
        size: the number of variables; f is taken to depend on all of them.
        vectorize: False evaluates the loss at one sample after the other, where XLA compiles the
            train step: of a loss with loops, such as an LSTM's, it compiles no vectorised form.
    """

    def __init__(self, function: Callable[[Weights], tf.Tensor], size: int, vectorize: bool = True):
        self._function = function
        self._vectorize_samples = vectorize
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
        return _connected(tape.gradient(loss, local), local)

    def vectorized(self, stacked: Weights) -> tf.Tensor:
        """See `Objective`."""
        if self._vectorize_samples:
            return super().vectorized(stacked)
        dtype = tf.float64 if tf.float64 in [s.dtype for s in stacked] else tf.float32
        return self._one_by_one(lambda w: tf.cast(tf.reshape(self(w), []), dtype), stacked, dtype)

    def vectorized_gradient(self, stacked: Weights) -> list[tf.Tensor]:
        """See `Objective`."""
        if self._vectorize_samples:
            return super().vectorized_gradient(stacked)
        return self._one_by_one(self.gradient, stacked, [s.dtype for s in stacked])

    def _one_by_one(self, function: Callable[[Weights], Any], stacked: Weights, dtypes: Any) -> Any:
        self.is_vectorized = False
        return tf.map_fn(function, list(stacked), fn_output_signature=dtypes)


def _connected(gradients: Sequence[Any], weights: Weights) -> list[tf.Tensor]:
    """Returns the gradients as tensors, zeros where some are missing; refuses if all are."""
    if all(gradient is None for gradient in gradients):
        raise ValueError(
            "The loss has no gradient with respect to any weight: an operation without one, such "
            "as `tf.argmax`, `tf.round` or `tf.numpy_function`, stands before it. Use the "
            "gradient-free `ImportanceSampling`."
        )
    return [
        tf.zeros_like(weight) if gradient is None else tf.convert_to_tensor(gradient)
        for gradient, weight in zip(gradients, weights, strict=True)
    ]


def _loops() -> int:
    """Returns the number of loops in the current graph and the functions that it calls."""
    definition = tf.compat.v1.get_default_graph().as_graph_def()
    functions = (function.node_def for function in definition.library.function)
    nodes = itertools.chain(definition.node, *functions)
    return sum(node.op in ("While", "StatelessWhile") for node in nodes)


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
                f"function of its own.) {EXPLICIT_DOOR}"
            )


def _handle_name(graph: tf.Graph, variable: Variable) -> str:
    # Not in TensorFlow's public interface: tests/lerh_tf/test_private_api.py watches it.
    return str(graph.capture(native(variable).handle).op.name)


def _index(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}
