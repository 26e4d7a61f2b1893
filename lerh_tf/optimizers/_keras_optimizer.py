"""Keras's optimizer, mended: its copies keep their state, its graphs are let go, it can skip."""

import abc
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lerh_tf.kernels.base import all_finite
from lerh_tf.loss.objective import Variable, native
from lerh_tf.optimizers._replicas import replicas

_LAYOUT = "layout"


class KerasOptimizer(keras.optimizers.Optimizer):
    """Keras's optimizer with a saved state that waits for the weights it belongs to.

    `pickle` and `copy.deepcopy` restore an optimizer before it is built. What exists then
    (iteration, learning rate, tau) has its value at once, the rest at `build`. Keras itself drops
    the state with a warning.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._waiting: tuple[Any, ...] = ()

    @property
    @abc.abstractmethod
    def layout(self) -> str:
        """What a saved state says of whose it is: those of another layout are not loaded."""

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Restores the state, as far as its variables exist; another optimizer's is skipped."""
        names = set(store.keys())
        saved = bytes(store[_LAYOUT][()]).decode() if _LAYOUT in names else "another optimizer"
        if saved != self.layout:
            warnings.warn(
                f"Skipping variable loading for optimizer '{self.name}': the saved state is not "
                f"one of `{self.layout}`. Received: {saved}",
                stacklevel=2,
            )
            return
        values = [store[str(index)][()] for index in range(len(names) - 1)]
        known = len(values) if self.built else len(self.variables)
        self._waiting = tuple(values[known:])
        super().load_own_variables(dict(zip(map(str, range(known)), values, strict=False)))

    def save_own_variables(self, store: Any) -> None:
        """Writes the state, also what still waits for `build`."""
        super().save_own_variables(store)
        for index, value in enumerate(self._waiting, start=len(self.variables)):
            store[str(index)] = value
        store[_LAYOUT] = np.frombuffer(self.layout.encode(), "uint8")

    def restore_waiting(self, variables: Sequence[Variable]) -> None:
        """Gives new variables the values that waited for them, if any did.

        Args:
            variables: those that `build` made, in their order.

        Raises:
            ValueError: their number or a shape is another than in the saved optimizer.
        """
        values, self._waiting = self._waiting, ()
        if not values:
            return
        found, expected = [v.shape for v in variables], [value.shape for value in values]
        if found != expected:
            raise ValueError(
                "The optimizer was restored from one that was built for other weights. Build it "
                "for weights of the same shapes, or compile with a new one. Received variables of "
                f"the shapes {found}, where the saved ones have {expected}"
            )
        # `fit` builds while it traces, where an assignment would be lost.
        with tf.init_scope():
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

    def leaves_dtype(
        self, gradients: Sequence[tf.Tensor], variables: Sequence[Variable]
    ) -> tf.Tensor:
        """Returns whether Keras's update would bring infinity or NaN, as a scalar bool tensor.

        That is where the gradients, with those that wait to be accumulated, are not finite or,
        if this update moves the weights, the weights after decay and the clipped step are not.

        Args:
            gradients: one per variable.
            variables: the weights to move.
        """
        sums = [g / (self.loss_scale_factor or 1.0) for g in gradients]
        if self.gradient_accumulation_steps:
            sums = [s + w for s, w in zip(sums, self._waiting_gradients(variables), strict=True)]
        steps = self._clip_gradients([s / (self.gradient_accumulation_steps or 1) for s in sums])
        anchor = [tf.convert_to_tensor(native(v)) for v in variables]
        rates = [tf.cast(self.learning_rate, x.dtype) for x in anchor]
        decayed = [x - self._decay(v, x) for v, x in zip(variables, anchor, strict=True)]
        reached = [x - rate * g for x, rate, g in zip(decayed, rates, steps, strict=True)]
        return ~all_finite(sums) | (self._moves_weights() & ~all_finite(reached))

    def apply_unless(
        self,
        skip: tf.Tensor,
        gradients: Sequence[tf.Tensor | None],
        variables: Sequence[Variable],
    ) -> None:
        """Makes Keras's update, or only counts it, so that nothing decays either.

        Gradients that wait to be accumulated are let go where the weights were to move. A part
        of an update on one of several replicas is never skipped: its gradients are to be zero.

        Args:
            skip: scalar bool tensor.
            gradients: one per variable; None where there is none.
            variables: the weights to move.
        """
        apply = super().apply
        if replicas() > 1:
            apply(gradients, variables)
            return

        def count() -> None:
            if self.gradient_accumulation_steps:
                for waiting in self._waiting_gradients(variables):
                    self.assign(
                        waiting, tf.where(self._moves_weights(), tf.zeros_like(waiting), waiting)
                    )
            self._iterations.assign_add(1)

        tf.cond(skip, count, lambda: apply(gradients, variables))

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Takes one step: x -= learning_rate * g, but where that is no finite number.

        Each replica's share is finite, their sum may not be.
        """
        self._subtract(variable, tf.cast(learning_rate, gradient.dtype) * gradient)

    def _apply_weight_decay(self, variables: Sequence[Variable]) -> None:
        """Decays as Keras does; on replicas only where the weight stays finite."""
        if self.weight_decay is None or replicas() == 1:
            super()._apply_weight_decay(variables)
            return

        def decay(strategy: tf.distribute.Strategy, variables: Sequence[tf.Variable]) -> None:
            for variable in variables:
                strategy.extended.update(
                    variable, lambda v: self._subtract(v, self._decay(v, v)), group=False
                )

        tf.__internal__.distribute.interim.maybe_merge_call(
            decay, tf.distribute.get_strategy(), list(map(native, variables))
        )

    def _decay(self, variable: Variable, value: tf.Tensor) -> tf.Tensor:
        """Returns what Keras's weight decay takes from a weight."""
        decay = (self.weight_decay or 0.0) if self._use_weight_decay(variable) else 0.0
        return value * tf.cast(decay, value.dtype) * tf.cast(self.learning_rate, value.dtype)

    def _subtract(self, variable: tf.Variable, step: tf.Tensor) -> None:
        is_finite = tf.math.is_finite(variable - step)
        self.assign_sub(variable, tf.where(is_finite, step, tf.zeros_like(step)))

    def _moves_weights(self) -> tf.Tensor:
        """Returns whether the coming update moves the weights, instead of waiting for more."""
        count = tf.convert_to_tensor(native(self._iterations)) + 1
        return tf.equal(count % (self.gradient_accumulation_steps or 1), 0)

    def _waiting_gradients(self, variables: Sequence[Variable]) -> list[tf.Variable]:
        indices = map(self._get_variable_index, variables)
        return [native(self._accumulated_gradients[index]) for index in indices]

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        """Adds up the replicas' gradients."""
        # TensorFlow's sum registers a gradient function per graph, which keeps the graph for good.
        if replicas() == 1:
            return grads_and_vars
        return super()._all_reduce_sum_gradients(grads_and_vars)
