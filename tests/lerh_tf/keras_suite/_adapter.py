"""Optimizers that take bare gradients, as Keras's own tests hand them over.

Gradients g become the minibatch loss f(v) = <g, v>, whose gradient is g everywhere. The library
traces, captures and cuts it, its kernel samples it and its `apply` moves the weights: here is only
what makes a loss of gradients. With tau = 1 one move of Robbins-Monro of size a_1 = 1 is

m = x - 1 (x - x + tau g) = x - g,

so that (x - m) / tau is g to the bit, whatever the noise, and x -= learning_rate * g follows.
"""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf import SGLD, HeatRegularization, LocalEntropy, RobbinsMonro, RobbinsMonroSteps, Scoping
from lerh_tf.loss.objective import Variable


class LinearLoss:
    """f(v) = <g, v>, traced once per list of variables as long as it is one object.

    Attributes:
        variables: v.
        scale: what g was multiplied by.
    """

    variables: Sequence[Variable] = ()
    scale: float = 1.0

    def __call__(self, gradients: Sequence[Any]) -> tf.Tensor:
        pairs = zip(gradients, self.variables, strict=True)
        products = (product(g, v) for g, v in pairs if g is not None)
        return sum(products, tf.constant(0.0)) / self.scale


class TakesGradients(keras.optimizers.Optimizer):
    """To be mixed in before one of the library's optimizers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._linear = LinearLoss()
        self._loss_is_captured = False

    # What Keras's tests reach into is the inner optimizer's.
    @property
    def _accumulated_gradients(self) -> Any:
        return self.inner_optimizer._accumulated_gradients

    @_accumulated_gradients.setter
    def _accumulated_gradients(self, of_no_weights: Any) -> None:
        pass

    @property
    def _model_variables_moving_average(self) -> Any:
        return self.inner_optimizer._model_variables_moving_average

    @_model_variables_moving_average.setter
    def _model_variables_moving_average(self, of_no_weights: Any) -> None:
        pass

    def scale_loss(self, loss: Any) -> Any:
        if not tf.is_symbolic_tensor(loss):
            # What the gradients that follow are gradients of: Keras's own rule.
            return keras.optimizers.Optimizer.scale_loss(self, loss)
        self._loss_is_captured = True
        return super().scale_loss(loss)

    def apply(
        self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None
    ) -> None:
        if self._loss_is_captured:
            self._loss_is_captured = False
            super().apply(grads, trainable_variables)
            return
        known = self.inner_optimizer._trainable_variables
        self._linear.variables = list(known if trainable_variables is None else trainable_variables)
        self._linear.scale = self.loss_scale_factor or 1.0
        if not self.gradient_accumulation_steps:
            grads = [as_summed(g) for g in grads]
        self.step(self._linear, self._linear.variables, [with_tensors(g) for g in grads])


def with_tensors(gradient: Any) -> Any:
    """A sparse gradient whose parts are tensors; Keras's tests give tuples."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.IndexedSlices(*map(tf.convert_to_tensor, (gradient.values, gradient.indices)))


def as_summed(gradient: Any) -> Any:
    """This replica's share of the gradient as TensorFlow sums it over replicas.

    Of one eager tensor that all replicas hand over it takes the sum to be that tensor, and Keras's
    tests hand over such; what the library makes of it is a tensor on each replica.
    """
    replica = tf.distribute.get_replica_context()
    count = tf.distribute.get_strategy().num_replicas_in_sync
    if replica is None or count == 1 or not tf.executing_eagerly():
        return gradient
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, gradient) / count


def product(gradient: Any, variable: Variable) -> tf.Tensor:
    """<g, v>; a sparse g meets some rows of v only."""
    value = tf.convert_to_tensor(variable)
    if isinstance(gradient, tf.IndexedSlices):
        value, gradient = tf.gather(value, gradient.indices), gradient.values
    return tf.cast(tf.reduce_sum(tf.cast(gradient, value.dtype) * value), tf.float32)


@keras.saving.register_keras_serializable("lerh_tf_tests")
class SGD(TakesGradients, HeatRegularization):
    """Algorithm 2 in the place of Keras's SGD, with that SGD inside.

    Args:
        learning_rate: SGD's.
        momentum: SGD's.
        nesterov: SGD's.
        **kwargs: SGD's other arguments, or those of `HeatRegularization`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **kwargs: Any,
    ) -> None:
        solver = RobbinsMonro(1, 1, step_sizes=RobbinsMonroSteps(1.0))
        exact = {"tau": 1.0, "solver": solver, "seed": 0, "learning_rate": learning_rate}
        super().__init__(**{**exact, "momentum": momentum, "nesterov": nesterov, **kwargs})


@keras.saving.register_keras_serializable("lerh_tf_tests")
class Adam(TakesGradients, LocalEntropy):
    """Algorithm 1 in the place of Adam, in tests that do not look at Adam's numbers."""

    def __init__(self, learning_rate: Any = 0.001, **kwargs: Any) -> None:
        chain = {"tau": Scoping(0.001, 0.0), "sampler": SGLD(3), "seed": 0}
        super().__init__(learning_rate=learning_rate, **{**chain, **kwargs})
