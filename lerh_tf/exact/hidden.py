"""The exact local reparameterisation of hidden dense layers.

Rows H (B x D) enter a hidden layer W (D x E) at one sample of the weights W + sqrt(tau) Z. Z is
independent of H, so with the symmetric root R of H H^T

H (W + sqrt(tau) Z) = H W + sqrt(tau) R A, A (B x E) standard normal:

B numbers a column in the place of D, one product of the rows of all samples with the shared W, and
no perturbed weight is ever formed. With Q = H^T R^+, R^+ the pseudo-inverse,

Z = Q A + (I - Q Q^T) N, N standard normal and independent of all that the loss has seen.

So a weighted mean of Z is that of Q A where that of N may keep its expectation, 0. On the way
back, with delta the gradient at the product,

delta Z^T = delta A^T Q^T + R' V (I - Q Q^T), R' the root of delta delta^T, V (B x D) normal,

as N meets delta, which does not depend on it, nowhere else; and the gradient at W is H^T delta.
Rows that repeat and units that are dead make R singular, which the symmetric root allows.
The number of rows must be known as the step is traced, and small against the inputs.

Kernels that draw anew around one centre for each evaluation can do so; a chain keeps its weights.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lerh_tf.exact.stages import Stages
from lerh_tf.exact.subspace import is_product
from lerh_tf.loss.graph_cut import tensor_name
from lerh_tf.loss.objective import Objective, Weights, connected, displaced, moves
from lerh_tf.loss.parts import OuterProducts, Part, are_finite, where
from lerh_tf.loss.replayed import ReplayedLoss

# Numbers of noise per sample that a layer must save, after what the roots cost: 8 B^3 numbers each
# on CPUs, measured.
_PAYS = 2**16
_ROOT = 8
# Eigenvalues of the root need not be exact below this share of what bounds the largest.
_SMALLEST = 1e-7
# How near to 1 they must come at most: the last step squares it.
_ROUNDING = 1e-9


def with_hidden_layers(
    objective: ReplayedLoss, shapes: Sequence[tf.TensorShape], differentiates: bool
) -> Objective:
    """Returns the loss around a centre with its large hidden layers reparameterised.

    Args:
        objective: the minibatch loss.
        shapes: of the used weights.
        differentiates: whether gradients are taken.

    Returns:
        The same loss; itself where no layer is large.
    """
    layers = _layers(objective, shapes, differentiates)
    return HiddenLayers(objective, layers, differentiates) if layers else objective


class _Layer(NamedTuple):
    """A weight that meets nothing but rows which depend on other weights.

    Attributes:
        node: name of the product.
        rows: how many, B.
        inputs: D.
        outputs: E.
    """

    node: str
    rows: int
    inputs: int
    outputs: int

    def columns(self, differentiates: bool) -> int:
        """Returns how many normal numbers a row takes."""
        return self.outputs + (self.inputs if differentiates else 0)

    def saving(self, differentiates: bool) -> int:
        """Returns how many numbers a sample saves, less what it costs."""
        roots = (2 if differentiates else 1) * _ROOT * self.rows**3
        return self.inputs * self.outputs - self.rows * self.columns(differentiates) - roots


def _layers(
    objective: ReplayedLoss, shapes: Sequence[tf.TensorShape], differentiates: bool
) -> dict[int, _Layer]:
    """Returns the layers worth it, by the position of their weight."""
    graph = tf.compat.v1.get_default_graph()
    reads, consumers = list(objective.reads.values()), objective.consumers()
    found = {}
    for read, weight in objective.reads.items():
        uses = consumers.get(read, [])
        if reads.count(weight) > 1 or len(uses) != 1 or shapes[weight].rank != 2:
            continue
        ((node, position),) = uses
        if not is_product(node, position) or objective.constant(node.input[0]) is not None:
            continue
        rows = graph.get_tensor_by_name(tensor_name(node.input[0]))
        if rows.shape.rank == 2 and rows.shape[0] and rows.dtype in (tf.float32, tf.float64):
            layer = _Layer(node.name, rows.shape[0], *shapes[weight])
            if layer.saving(differentiates) >= _PAYS:
                found[weight] = layer
    return found


class HiddenLayers(Objective):
    """A replayed loss whose samples around a centre form no weight of some hidden layers.

    Args:
        objective: the minibatch loss.
        layers: those layers, by the position of their weight among the used ones.
        differentiates: whether gradients are taken.
    """

    def __init__(self, objective: ReplayedLoss, layers: Mapping[int, _Layer], differentiates: bool):
        self._objective = objective
        self._layers = layers
        self._differentiates = differentiates
        self.is_used = objective.is_used
        self.footprint = objective.footprint
        self.operations = objective.operations
        self.jit_compile = objective.jit_compile

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        return self._objective(weights)

    def value_and_gradient(self, weights: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """See `Objective`."""
        return self._objective.value_and_gradient(weights)

    def dimensions(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        unseen = [(each.inputs - each.rows) * each.outputs for each in self._layers.values()]
        return self._objective.dimensions(weights) - tf.add_n(unseen)

    def noise_like(self, weights: Weights) -> list[tf.Tensor]:
        """See `Objective`."""

        def like(position: int, weight: tf.Tensor) -> tf.Tensor:
            layer = self._layers.get(position)
            if layer is None:
                return weight
            return tf.zeros([layer.rows, layer.columns(self._differentiates)], weight.dtype)

        return [like(*each) for each in enumerate(weights)]

    def losses_around(
        self, anchor: Weights, tau: tf.Tensor, z: Weights
    ) -> tuple[tf.Tensor, list[Part]]:
        """See `Objective`."""
        products = self._products(anchor, tau, z)
        losses = self._stages(products).losses(self._stacked(anchor, tau, z))
        self.is_vectorized = self._objective.is_vectorized
        return losses, [products[v].seen() if v in products else z_v for v, z_v in enumerate(z)]

    def gradients_around(
        self, anchor: Weights, tau: tf.Tensor, z: Weights, offset: Weights | None = None
    ) -> tuple[tf.Tensor, list[Part]]:
        """See `Objective`."""
        self._objective.check_gradient()
        products = self._products(anchor if offset is None else displaced(anchor, offset), tau, z)
        stacked = self._stacked(anchor, tau, z, offset)
        losses, found = self._stages(products).gradients(stacked)
        self.is_vectorized = self._objective.is_vectorized
        at = [products[v].probe if v in products else w for v, w in enumerate(stacked)]
        found = [products[v].delta if v in products else g for v, g in enumerate(found)]
        return losses, [
            OuterProducts(products[v].rows, g) if v in products else g
            for v, g in enumerate(connected(found, at))
        ]

    def _stages(self, products: "Mapping[int, _PerturbedProduct]") -> Stages:
        return Stages(self._objective, {each.node: each for each in products.values()})

    def _stacked(
        self, anchor: Weights, tau: tf.Tensor, z: Weights, offset: Weights | None = None
    ) -> list[tf.Tensor]:
        """Returns the samples of the weights that are formed; the others as they are."""
        formed = [v for v in range(len(anchor)) if v not in self._layers]
        y = None if offset is None else [offset[v] for v in formed]
        moved = displaced([anchor[v] for v in formed], moves(tau, [z[v] for v in formed], y))
        stacked = dict(zip(formed, moved, strict=True))
        return [tf.identity(stacked.get(v, w)) for v, w in enumerate(anchor)]

    def _products(
        self, centre: Weights, tau: tf.Tensor, z: Weights
    ) -> "dict[int, _PerturbedProduct]":
        deviation = tf.sqrt(tau)
        return {
            v: _PerturbedProduct(layer, centre[v], tf.cast(deviation, centre[v].dtype), z[v])
            for v, layer in self._layers.items()
        }


class _PerturbedProduct:
    """H (W + deviation Z) for the rows of all samples at once.

    Args:
        layer: whose product it is.
        centre: W, shape [D, E].
        deviation: scalar tensor.
        z: A, and beside it V where gradients are taken, shape [samples, B, E or E + D].

    Attributes:
        rows: H, shape [samples, B, D], once the product was made.
        delta: the gradient at the product, once there is one.
        probe: zeros of its shape.
    """

    rows: tf.Tensor
    delta: tf.Tensor | None = None

    def __init__(self, layer: _Layer, centre: tf.Tensor, deviation: tf.Tensor, z: tf.Tensor):
        self.node = layer.node
        self._centre = centre
        self._deviation = deviation
        self._a, self._v = z[..., : layer.outputs], z[..., layer.outputs :]
        self.probe = tf.zeros_like(self._a)

    def forwards(self, rows: tf.Tensor) -> tf.Tensor:
        """See `Product`."""
        root, inverse = _roots(rows)
        self.rows = rows
        # Q^T, in float64: in directions that no row has the inverse is large.
        self._basis = tf.cast(inverse @ tf.cast(rows, inverse.dtype), rows.dtype)
        noise = tf.cast(root, rows.dtype) @ self._a
        return _shared_product(rows, self._centre) + self._deviation * noise

    def seen(self) -> Part:
        """Returns Q A, zeros for samples whose rows are not finite."""
        return where(are_finite(self._basis), OuterProducts(self._basis, self._a), self._a.dtype)

    def backwards(self, delta: tf.Tensor) -> tf.Tensor:
        """See `Product`."""
        self.delta = delta
        own = tf.cast(_roots(delta)[0], delta.dtype) @ self._v
        unseen = own - tf.matmul(own, self._basis, transpose_b=True) @ self._basis
        z = tf.matmul(delta, self._a, transpose_b=True) @ self._basis + unseen
        return _shared_product(delta, tf.transpose(self._centre)) + self._deviation * z


def _shared_product(rows: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Returns the product of the rows of all samples with one matrix."""
    flat = tf.reshape(rows, [-1, matrix.shape[0]]) @ matrix
    return tf.reshape(flat, tf.concat([tf.shape(rows)[:-1], [matrix.shape[1]]], 0))


def _roots(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the symmetric root of H H^T per sample and its pseudo-inverse, float64.

    By a coupled Newton-Schulz iteration, since XLA takes seconds to compile eigenvalues. Each step
    multiplies the root by a polynomial in the matrix that brings its eigenvalues as near to 1 as
    a cubic can. Where one is 0 the root stays 0, and its inverse large: it meets H alone, which
    has nothing there. NaN where a row is not finite.
    """
    wide = tf.cast(rows, tf.float64)
    gram = tf.matmul(wide, wide, transpose_b=True)
    # At least the largest eigenvalue.
    size = tf.reduce_max(tf.reduce_sum(tf.abs(gram), -1, keepdims=True), -2, keepdims=True)
    identity = tf.eye(rows.shape[-2], dtype=tf.float64)

    def iteration(i: tf.Tensor, root: tf.Tensor, inverse: tf.Tensor) -> Any:
        linear, cubic = tf.unstack(coefficients[i])
        step = linear * identity - cubic * (inverse @ root)
        return i + 1, root @ step, step @ inverse

    coefficients = tf.constant(_CUBICS, tf.float64)
    start = tf.math.divide_no_nan(gram, size)
    _, root, inverse = tf.while_loop(
        lambda i, *_: i < len(_CUBICS),
        iteration,
        (tf.constant(0), start, identity + tf.zeros_like(start)),
        parallel_iterations=1,
    )
    scale = tf.sqrt(size)
    return scale * root, tf.math.divide_no_nan(inverse, scale)


def _best_cubics(low: float) -> list[tuple[float, float]]:
    """Returns (a, b) of cubics a x - b x^3 that one after the other take [low, 1] to 1.

    On [l, u] the cubic c (s x - x^3 / 3) with s = (l^2 + l u + u^2) / 3 has its largest value at
    the root of s, and as small a one at both ends: with c so that they are as far from 1 it is
    the nearest to 1 of all odd cubics, by Chebyshev's alternation.
    """
    high, error, found = 1.0, 1.0, []
    while error > _ROUNDING:
        s = (low**2 + low * high + high**2) / 3
        ends, middle = low * high * (low + high), 2 * s**1.5
        c, error = 6 / (ends + middle), (middle - ends) / (middle + ends)
        found.append((c * s, c / 3))
        low, high = 1 - error, 1 + error
    return found


_CUBICS = _best_cubics(_SMALLEST)
