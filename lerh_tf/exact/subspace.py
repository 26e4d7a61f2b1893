"""The exact reduction of input layers to the subspace that the minibatch sees.

On one minibatch a loss sees an input kernel W (D x H) only through X W, where X (B x D) holds the
inputs. With the thin QR factorisation X^T = Q R and U = Q^T W, X W = R^T U: the loss is a function
of U, r x H with r = min(B, D). Isotropic noise on W is independent isotropic noise on U and on the
complement W - Q U, so an algorithm that adds isotropic noise and moves along gradients can run on
U, and what it would have done to the complement follows in closed form
(`lerh_tf/kernels/reduced.py`). The rows of an input embedding that no index picks are such a
complement too.

What can be reduced is read off the graph of the loss, never off types of layers.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lerh_tf.exact.reductions import Reduction, Rows, RowSpace
from lerh_tf.loss.objective import Objective
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.replicas import ALONE, Replicas

# The factorisation squares entries: this number's square and its reciprocal fit into float32.
_ORDINARY = 1e15
_MATMULS = {"MatMul": ("transpose_a", "transpose_b"), "BatchMatMulV2": ("adj_x", "adj_y")}


class Subspace(NamedTuple):
    """A loss in coordinates.

    Attributes:
        objective: the loss as a function of the coordinates, of the whole weight where there are
            none.
        reductions: per used weight, its reduction, or None where it is sampled whole.
        size: the number of coordinates, entries of weights sampled whole included.
    """

    objective: Objective
    reductions: list[Reduction | None]
    size: tf.Tensor


def find_subspace(
    objective: ReplayedLoss, shapes: Sequence[tf.TensorShape], replicas: Replicas = ALONE
) -> Subspace | None:
    """Reduces every weight whose only use is a product with, or a choice by, the inputs.

    Where each replica holds a part of the minibatch, the rows of all span the subspace.

    Args:
        objective: the minibatch loss.
        shapes: the static shapes of the used weights.
        replicas: who makes the weight update.

    Returns:
        The loss in coordinates; None where no weight can be reduced.
    """
    uses = _Uses(objective)
    rewiring = _Rewiring(objective, replicas)
    reductions = [
        rewiring.reduction(uses.only_use(weight, shape), shape)
        for weight, shape in enumerate(shapes)
    ]
    if not any(reductions):
        return None
    padding = sum(reduction.padding for reduction in reductions if reduction is not None)
    sizes = map(_coordinates, reductions, shapes)
    return Subspace(objective.rewired(rewiring.inputs, padding), reductions, sum(sizes))


def _coordinates(reduction: Reduction | None, shape: tf.TensorShape) -> int | tf.Tensor:
    if reduction is None:
        return int(shape.num_elements())
    return reduction.rank * shape[1:].num_elements()


class _Use(NamedTuple):
    """The only use of a weight.

    Attributes:
        node: the operation that uses it, `op` its type.
        inputs: the tensor that it is multiplied with, or that holds the indices.
        position: of that tensor among the operation's inputs.
        reshapes: the reshapes between the weight and the operation.
    """

    node: str
    op: str
    inputs: tf.Tensor
    position: int
    reshapes: tuple[str, ...]


class _Uses:
    """Who uses the weights of a loss."""

    def __init__(self, objective: ReplayedLoss):
        self._objective = objective
        self._reads: dict[int, list[str]] = {}
        for read, weight in objective.reads.items():
            self._reads.setdefault(weight, []).append(read)
        self._consumers = objective.consumers()

    def only_use(self, weight: int, shape: tf.TensorShape) -> _Use | None:
        """Returns the one product or choice that uses a weight; None if it is used otherwise."""
        if len(self._reads[weight]) > 1:
            return None
        (tensor,) = self._reads[weight]
        reshapes: list[str] = []
        while len(self._consumers.get(tensor, [])) == 1:
            ((node, position),) = self._consumers[tensor]
            if node.op == "Reshape" and self._keeps_rows(node, position, shape):
                reshapes.append(node.name)
            elif not _keeps_values(node):
                return self._described(node, position, tuple(reshapes), shape)
            tensor = f"{node.name}:0"
        return None

    def _described(
        self, node: Any, position: int, reshapes: tuple[str, ...], shape: tf.TensorShape
    ) -> _Use | None:
        is_matrix = bool(reshapes) or shape.rank == 2
        if is_matrix and is_product(node, position):
            other = 0
        elif not reshapes and self._is_choice(node, position):
            other = 1
        else:
            return None
        inputs = self._objective.constant(node.input[other])
        if inputs is None:
            return None
        return _Use(node.name, node.op, inputs, other, reshapes)

    def _static(self, source: str) -> Any:
        """Returns the value of a constant of the graph; None for other tensors."""
        tensor = self._objective.constant(source)
        return None if tensor is None else tf.get_static_value(tensor)

    def _keeps_rows(self, node: Any, position: int, shape: tf.TensorShape) -> bool:
        new = self._static(node.input[1])
        is_matrix = position == 0 and new is not None and len(new) == 2
        return is_matrix and shape.rank > 0 and new[0] == shape[0]

    def _is_choice(self, node: Any, position: int) -> bool:
        if node.op != "GatherV2" or position != 0 or node.attr["batch_dims"].i != 0:
            return False
        return self._static(node.input[2]) == 0


def is_product(node: Any, position: int) -> bool:
    """Returns whether an input of a node is the right matrix of a product, not transposed."""
    transposes = _MATMULS.get(node.op, ())
    return bool(transposes) and position == 1 and not any(node.attr[t].b for t in transposes)


class _Rewiring:
    """The reductions of a loss's weights and the inputs that its operations then need."""

    def __init__(self, objective: ReplayedLoss, replicas: Replicas):
        self._nodes = {node.name: node for node in objective.piece.node}
        self._replicas = replicas
        self._factors: dict[Any, tuple[tf.Tensor, tf.Tensor]] = {}
        self.inputs: dict[tuple[str, int], tf.Tensor] = {}

    def reduction(self, use: _Use | None, shape: tf.TensorShape) -> Reduction | None:
        """Returns the reduction of a weight; None where it saves nothing."""
        if use is None:
            return None
        return self._choice(use, shape) if use.op == "GatherV2" else self._product(use, shape)

    def _choice(self, use: _Use, shape: tf.TensorShape) -> Reduction | None:
        if self._spans_all(use.inputs.shape, shape[0]):
            return None
        rows = Rows(self._of_all(use.inputs, []), shape)
        slots = self._own(rows.slots, tf.shape(use.inputs))
        self.inputs[use.node, use.position] = tf.cast(slots, use.inputs.dtype)
        return rows

    def _product(self, use: _Use, shape: tf.TensorShape) -> Reduction | None:
        left = use.inputs
        # Products overflow where the rows' norms do not fit.
        if left.dtype == tf.float16 or self._spans_all(left.shape[:-1], shape[0]):
            return None
        # Layers that share their inputs, as an attention's do, share the factorisation.
        if left.ref() not in self._factors:
            basis, coordinates = _factorised(self._of_all(left, [shape[0]]), shape[0])
            self._factors[left.ref()] = basis, self._own(coordinates, tf.shape(left)[:-1])
        basis, coordinates = self._factors[left.ref()]
        reduction = RowSpace(basis, shape)
        self.inputs[use.node, use.position] = coordinates
        for name in use.reshapes:
            dtype = tf.as_dtype(self._nodes[name].attr["Tshape"].type)
            self.inputs[name, 1] = tf.cast(tf.stack([reduction.rank, -1]), dtype)
        return reduction

    def _of_all(self, inputs: tf.Tensor, width: Sequence[int]) -> tf.Tensor:
        """Returns the inputs of the whole minibatch: its rows, where replicas hold a part each."""
        if self._replicas.split != "batch":
            return inputs
        return self._replicas.gathered(tf.reshape(inputs, [-1, *width]))

    def _own(self, rows: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
        """Returns what has been made of this replica's inputs, which have the shape `shape`."""
        if self._replicas.split != "batch":
            return rows
        own = self._replicas.own(rows, tf.reduce_prod(shape))
        return tf.reshape(own, tf.concat([shape, tf.shape(rows)[1:]], 0))

    def _spans_all(self, shape: tf.TensorShape, dimension: int) -> bool:
        """Returns whether so many inputs are known to span all dimensions."""
        rows, known = shape.num_elements(), shape
        if self._replicas.split == "batch":
            # All replicas must find the same, those of unequal parts too; of another process only
            # those of equal parts do.
            rows, known = self._replicas.static_total(rows), shape[1:]
        if rows is None and shape.rank is not None:
            rows = math.prod(size for size in known if size is not None)
        return rows is not None and rows >= dimension


def _keeps_values(node: Any) -> bool:
    is_float = node.op == "Cast" and tf.as_dtype(node.attr["DstT"].type).is_floating
    return is_float or node.op == "Identity"


def _factorised(left: tf.Tensor, width: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns Q and the rows' coordinates R^T, in the shape of the rows but for the last axis.

    A row that is not finite, or whose sum is not, spans nothing, and its coordinates are NaN.
    """
    dtype = tf.float64 if left.dtype == tf.float64 else tf.float32
    rows = tf.reshape(tf.cast(left, dtype), [-1, width])
    scale = _scale(rows)
    scaled = rows / scale
    # Of more rows than inputs too, where their number is not known beforehand: to XLA a size that
    # comes out of `tf.cond` is no constant.
    basis, triangle = tf.linalg.qr(
        tf.transpose(tf.where(tf.math.is_nan(scaled), tf.zeros_like(rows), scaled))
    )
    shape = tf.concat([tf.shape(left)[:-1], [tf.shape(basis)[1]]], 0)
    return basis, tf.cast(tf.reshape(tf.transpose(triangle) * scale, shape), left.dtype)


def _scale(rows: tf.Tensor) -> tf.Tensor:
    """Returns what to divide each row by, so that its squares fit the dtype; shape [rows, 1].

    1 for ordinary rows: their factorisation stays the same bit for bit. Infinite or NaN for rows
    that are not finite, 0 for rows of zeros.
    """
    size = tf.reduce_sum(tf.abs(rows), 1, keepdims=True)
    is_ordinary = (size > 1.0 / _ORDINARY) & (size < _ORDINARY)
    return tf.where(is_ordinary, tf.ones_like(size), size)
