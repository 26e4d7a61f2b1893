"""A replayed loss in stages between products that see the rows of all samples at once."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from lerh_tf.loss.graph_cut import node_name, tensor_name
from lerh_tf.loss.objective import Weights
from lerh_tf.loss.replayed import ReplayedLoss


class Product(Protocol):
    """A matrix product of the rows of all samples with weights that are not formed."""

    def forwards(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns the product, shape [samples, rows, outputs].

        Args:
            rows: shape [samples, rows, inputs].
        """

    def backwards(self, delta: tf.Tensor) -> tf.Tensor:
        """Returns the gradient at the rows; `delta` is that at the product."""


class _Stage(NamedTuple):
    """Nodes that are evaluated sample by sample, in one vectorised map.

    Attributes:
        nodes: of the loss's piece.
        inputs: names of the tensors of each sample that they take.
        outputs: names of those that are needed later.
    """

    nodes: Sequence[Any]
    inputs: Sequence[str]
    outputs: Sequence[str]


class _Step(NamedTuple):
    """One of the products, by the names of what it takes and makes."""

    product: Product
    rows: str
    output: str


class Stages:
    """f at many weights, and its gradient by a pass back through the stages.

    One map around everything has no vectorised form for what the products do, and through the maps
    of a forward pass XLA would compile a gradient anew at each weight update.

    Args:
        objective: the minibatch loss.
        products: by name of the operation that each takes the place of.
    """

    def __init__(self, objective: ReplayedLoss, products: Mapping[str, Product]):
        self._objective = objective
        self._constants = [node for node in objective.piece.node if node.op == "Const"]
        self._steps: list[_Stage | _Step] = []
        waiting: list[Any] = []
        nodes = [node for node in objective.piece.node if node.op != "Const"]
        for position, node in enumerate(nodes):
            if node.name in products:
                self._add_stage(waiting, nodes[position:])
                waiting = []
                rows, output = tensor_name(node.input[0]), f"{node.name}:0"
                self._steps.append(_Step(products[node.name], rows, output))
            else:
                waiting.append(node)
        self._add_stage(waiting, [])

    def _add_stage(self, nodes: Sequence[Any], later: Sequence[Any]) -> None:
        own = {node.name for node in nodes}
        constants = {node.name for node in self._constants}
        needed = {tensor_name(s) for node in later for s in node.input} | {self._objective.loss}
        taken = {tensor_name(s) for node in nodes for s in node.input}
        outside = {name for name in taken if node_name(name) not in own | constants}
        self._steps.append(
            _Stage(
                nodes,
                sorted(outside - self._objective.constants.keys()),
                sorted(name for name in needed if node_name(name) in own),
            )
        )

    def losses(self, stacked: Weights) -> tf.Tensor:
        """Returns f.

        Args:
            stacked: one tensor per used weight, shape [samples, *shape]; those of the products'
                weights are not looked at.
        """
        return self._loss_of(self._forwards(stacked))

    def gradients(self, stacked: Weights) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
        """Returns f and its gradient; None for the products' weights and where there is none.

        Args:
            stacked: as for `losses`.
        """
        known = self._forwards(stacked)
        losses = known[self._objective.loss]
        found = {self._objective.loss: tf.ones_like(losses)}
        for step in reversed(self._steps):
            if isinstance(step, _Stage):
                _accumulate(found, self._pulled_back(step, known, found))
            elif step.output in found:
                _accumulate(found, {step.rows: step.product.backwards(found[step.output])})
        gradients: list[tf.Tensor | None] = [None] * len(stacked)
        for read, index in self._objective.reads.items():
            if read in found:
                own = gradients[index]
                gradients[index] = found[read] if own is None else own + found[read]
        return self._loss_of(known), gradients

    def _loss_of(self, known: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return tf.reshape(known[self._objective.loss], [-1])

    def _forwards(self, stacked: Weights) -> dict[str, tf.Tensor]:
        """Returns all tensors that pass from a stage to another, by name."""
        objective = self._objective
        known = {
            read: tf.cast(stacked[index], objective.dtypes[index])
            for read, index in objective.reads.items()
        }
        for step in self._steps:
            if isinstance(step, _Step):
                known[step.output] = step.product.forwards(known[step.rows])
            elif step.outputs:
                inputs = [known[name] for name in step.inputs]
                outputs = objective.vectorize(partial(self._evaluated, step), inputs)
                known |= dict(zip(step.outputs, outputs, strict=True))
        return known

    def _evaluated(self, stage: _Stage, values: Weights) -> list[tf.Tensor]:
        """Returns a stage's outputs for one sample."""
        # Operations of the current graph: an import into a nested one captures nothing.
        constants = {name: tf.identity(t) for name, t in self._objective.constants.items()}
        there = constants | dict(zip(stage.inputs, values, strict=True))
        found = self._objective.imported([*self._constants, *stage.nodes], there)
        return [found[name] for name in stage.outputs]

    def _pulled_back(
        self, stage: _Stage, known: Mapping[str, tf.Tensor], found: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Returns the gradients at a stage's inputs, given those at its outputs."""
        outputs = [name for name in stage.outputs if name in found]
        at = [name for name in stage.inputs if known[name].dtype.is_floating]
        if not outputs or not at:
            return {}

        def pulled_back(values: Weights) -> list[tf.Tensor]:
            inputs = [tf.identity(value) for value in values[: len(stage.inputs)]]
            evaluated = dict(zip(stage.outputs, self._evaluated(stage, inputs), strict=True))
            sources = [inputs[stage.inputs.index(name)] for name in at]
            gradients = tf.gradients(
                [evaluated[name] for name in outputs], sources, list(values[len(inputs) :])
            )
            return [
                tf.zeros_like(x) if g is None else tf.convert_to_tensor(g)
                for x, g in zip(sources, gradients, strict=True)
            ]

        values = [known[name] for name in stage.inputs] + [found[name] for name in outputs]
        return dict(zip(at, self._objective.vectorize(pulled_back, values), strict=True))


def _accumulate(found: dict[str, tf.Tensor], more: Mapping[str, tf.Tensor]) -> None:
    for name, gradient in more.items():
        found[name] = found[name] + gradient if name in found else gradient
