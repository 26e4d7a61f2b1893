"""A train step for models whose loss can't be replayed from its graph."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf.loss.objective import LossFunction, Objective, Variable, Weights
from lerh_tf.loss.repeatable import SEED_ADVICE, ReplayError
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.loss.stateless import loss_of_model, rows_of
from lerh_tf.optimizers._capture import captured_loss
from lerh_tf.optimizers._replicas import whole
from lerh_tf.optimizers.base import GaussianApproximation


class TrainStep:
    """Mixin that trains a model whose loss can't be replayed from its graph.

    `LocalEntropy` and `HeatRegularization` train untouched models by replaying the graph of the
    minibatch loss. Where that can't be done (LSTM, GRU and other control flow between the weights
    and the loss, custom gradients, `run_eagerly=True`), mix this class in:

        class Model(lerh_tf.TrainStep, keras.Model):
            ...

    Where the loss can be replayed, its weight updates are those of an untouched model. Where not,
    each runs the model anew at other weights, statelessly: dropout masks are the ones of the train
    step, and moving statistics and seeds move once per batch. With `run_eagerly=True` the train
    step's own pass runs eagerly and the others are compiled.

    A model that is run anew must draw from its own `keras.random.SeedGenerator`, as Keras's layers
    do, and move no `keras.Variable` but its own. `tf.random.normal`, functions of `keras.random`
    without a seed and `tf.Variable.assign` are refused by a `ReplayError`.

    Raises:
        TypeError: as a class is defined, if `keras.Model` stands before it among the bases.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuses bases in an order that hides this class's train step behind Keras's."""
        super().__init_subclass__(**kwargs)
        order = cls.__mro__
        if keras.Model in order and order.index(keras.Model) < order.index(TrainStep):
            bases = ", ".join(base.__name__ for base in cls.__bases__)
            raise TypeError(
                f"`TrainStep` must stand before `keras.Model` among the bases of `{cls.__name__}`. "
                f"Received: class {cls.__name__}({bases})"
            )

    def train_step(self, data: Any) -> dict[str, Any]:
        """Makes one weight update on one minibatch.

        Args:
            data: x, (x, y) or (x, y, sample_weight), as `keras.Model.train_step` takes it.

        Returns:
            The logs, which are loss and metrics at the weights before the update.

        Raises:
            TypeError: the model's optimizer is not one of this package's.
            ReplayError: the model must be run anew, and would draw other random numbers, move
                variables that are not its own, or read weights in a `tf.function` of its own.
        """
        model: Any = self
        if not isinstance(model.optimizer, GaussianApproximation):
            raise TypeError(
                "`TrainStep` needs `LocalEntropy` or `HeatRegularization` itself as the optimizer: "
                "under the mixed_float16 policy compile the model with `auto_scale_loss=False`. "
                f"Received: optimizer={model.optimizer!r}"
            )
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        # Read before the forward pass, which moves seeds and statistics.
        state = [tf.identity(v.value) for v in model.non_trainable_variables]
        y_pred = model(x, training=True)
        share = model.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)
        loss = whole(share, model.optimizer.parallel)
        _update_loss_metric(model, loss, x)
        batch = (x, y, sample_weight, state)
        if not model.trainable_variables:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        elif tf.inside_function():
            objective = _replayed(loss, model.trainable_variables) or self._objective(*batch)
            model.optimizer.step(lambda: objective, model.trainable_variables)
        else:
            model.optimizer.step(self._objective, model.trainable_variables, *batch)
        return model.compute_metrics(x, y, y_pred, sample_weight)

    def _objective(
        self, x: Any, y: Any, sample_weight: Any, state: Sequence[tf.Tensor]
    ) -> Objective:
        """Returns the minibatch loss as a function of the weights, by further forward passes."""
        model: Any = self
        variables = model.trainable_variables
        fixed = list(zip(model.non_trainable_variables, state, strict=True))

        def loss_at(weights: Weights) -> tf.Tensor:
            mapping = [*zip(variables, weights, strict=True), *fixed]
            loss, scope = loss_of_model(model, mapping, (x, y, sample_weight), training=True)
            _check_state(model, scope)
            return whole(loss, model.optimizer.parallel)

        values = [tf.convert_to_tensor(v.value) for v in variables]
        return _traced(loss_at, values, model.jit_compile)


def _replayed(loss: tf.Tensor, variables: Sequence[Variable]) -> Objective | None:
    """Returns the logged loss as a function of the weights; None where it can't be replayed."""
    try:
        replayed = ReplayedLoss.of_variables(captured_loss(loss), variables)
    except ReplayError:
        return None
    return None if replayed.custom_gradient else replayed


def _traced(
    loss_at: Callable[[Weights], tf.Tensor], values: Weights, jit_compile: bool
) -> Objective:
    """Returns the loss's graph where it can be replayed: there a subspace can be found."""
    if not tf.inside_function():  # `tf.config.run_functions_eagerly(True)`
        return LossFunction(loss_at, len(values))
    try:
        replayed = ReplayedLoss.of_function(loss_at, values)
    except ReplayError:
        vectorize = not jit_compile and not _has_nested_convolution()
        return LossFunction(loss_at, len(values), vectorize=vectorize)
    return LossFunction(loss_at, len(values)) if replayed.custom_gradient else replayed


def _has_nested_convolution() -> bool:
    """Returns whether the current graph calls functions that convolve, as of groups Keras's do.

    The vectorised form of a grouped convolution's gradient fails as it runs.
    """
    functions = tf.compat.v1.get_default_graph().as_graph_def().library.function
    return any(node.op.startswith("Conv") for each in functions for node in each.node_def)


def _check_state(model: Any, scope: keras.StatelessScope) -> None:
    """Refuses a forward pass that moves what is no variable of the model.

    Its value before the train step's own pass is not known, so other passes would see another.
    """
    known = {id(variable) for variable in [*model.variables, *model.metrics_variables]}
    if not scope.state_mapping.keys() <= known:
        raise ReplayError(
            "The forward pass moves a `keras.Variable` that is not among the model's, so the "
            "samples would not see the loss that is logged. The seed of random functions of "
            "`keras.random` called without one is such a variable, and so is the state of an RNN "
            f"with `stateful=True`. {SEED_ADVICE}"
        )


def _update_loss_metric(model: Any, loss: tf.Tensor, x: Any) -> None:
    for metric in model.metrics:
        if metric.name == "loss":
            metric.update_state(loss, sample_weight=rows_of(x))
