"""A Keras optimizer that evaluates the loss instead of taking gradients."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lerh_tf.loss.objective import Objective, Variable
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.optimizers._arguments import (
    as_tensor,
    check_closure,
    check_returned,
    checked_variables,
    explained,
)
from lerh_tf.optimizers._capture import CapturedLosses, CompiledClosures, captured_loss, end_update
from lerh_tf.optimizers._replicas import is_eager_replica, whole
from lerh_tf.optimizers._update import Update
from lerh_tf.optimizers._wrapper import Wrapper


class LossOptimizer(Wrapper):
    """Brings the minibatch loss, from `fit` or a hand-written loop, to a weight update."""

    def __init__(self, name: str | None):
        super().__init__(name)
        self._captured = CapturedLosses()
        self._compiled_steps = CompiledClosures(self._step)
        self._compiled_updates_of_all = CompiledClosures(self._update_of_all)

    @property
    @abc.abstractmethod
    def parallel(self) -> str:
        """How replicas share a weight update, "auto", "samples", "batch" or "means"."""

    @abc.abstractmethod
    def _update(self, objective: Objective, variables: Sequence[Variable]) -> Update:
        """Returns what the weights are to be moved by; moves no variable."""

    @abc.abstractmethod
    def _move(self, update: Update, variables: Sequence[Variable]) -> None:
        """Moves weights and chain, and stores what there is to report."""

    @abc.abstractmethod
    def _report_failures(self, context: str = "", stacklevel: int = 2) -> None:
        """Raises or warns if weight updates were not valid since the last report."""

    @tf.autograph.experimental.do_not_convert
    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """Captures the minibatch loss, before Keras's train step differentiates it.

        Args:
            loss: scalar symbolic tensor.

        Returns:
            The loss without a gradient, since the kernel takes the only ones there are.

        Raises:
            ReplayError: the loss was computed eagerly.
        """
        self._captured.put(captured_loss(whole(loss, self.parallel)))
        return tf.stop_gradient(loss)

    @tf.autograph.experimental.do_not_convert
    def apply(
        self,
        grads: Sequence[tf.Tensor | None],
        trainable_variables: Sequence[Variable] | None = None,
    ) -> None:
        """Moves the weights, given the loss that `scale_loss` captured.

        Args:
            grads: None for every weight, as the tape gives them behind `scale_loss`.
            trainable_variables: the weights; may be left out once the optimizer is built.

        Raises:
            ValueError: no loss was captured in this train step, or there is a gradient: of terms
                that were added behind `scale_loss`, which the weight update would not see.
            ReplayError: the captured loss can't be evaluated at other weights.
        """
        captured = self._captured.take()
        if trainable_variables is None and not self.built:
            raise ValueError(
                "`apply` needs `trainable_variables` the first time. "
                "Received: trainable_variables=None"
            )
        if trainable_variables is None:
            trainable_variables = self.inner_optimizer._trainable_variables
        variables = list(trainable_variables)
        _check_no_gradient(grads, variables)
        self.apply_objective(ReplayedLoss.of_variables(captured, variables), variables)

    @tf.autograph.experimental.do_not_convert
    def apply_objective(self, objective: Objective, variables: Sequence[Variable]) -> None:
        """Moves the weights, given f as a function of them.

        Args:
            objective: the minibatch loss.
            variables: the weights that it is a function of.
        """
        self._move(self._update(objective, variables), variables)

    @tf.autograph.experimental.do_not_convert
    def step(
        self,
        closure: Callable[..., tf.Tensor | Objective],
        variables: Sequence[Variable],
        *inputs: Any,
    ) -> tf.Tensor | None:
        """Makes one weight update of a hand-written loop.

        The closure is traced once per closure and signature of the inputs, so keep one closure
        and pass it each minibatch:

            def loss(x, y):
                return loss_fn(y, model(x, training=True))

            for x, y in batches:
                optimizer.step(loss, model.trainable_variables, x, y)

        Args:
            closure: computes the scalar minibatch loss from the inputs and the variables as they
                are, or returns an `Objective`, that loss as a function of the weights.
            variables: the weights to move.
            *inputs: nests of tensors or arrays, the closure's arguments.

        Returns:
            The loss before the update; None for an `Objective`.

        Raises:
            ReplayError: the loss can't be evaluated at other weights.
            TypeError: `closure` can't be called or returned no tensor and no `Objective`, or
                `variables` is no list of variables.
            ValueError: `variables` is empty, or has one twice or one that can't be trained.
            tf.errors.InvalidArgumentError: the update is not valid, unless `on_failure="warn"`.
        """
        check_closure(closure)
        variables = checked_variables(variables)
        if tf.inside_function():
            return self._step(closure, variables, inputs)
        self.build(variables)
        inputs = tf.nest.map_structure(as_tensor, inputs)
        if is_eager_replica():
            # They meet in one function as it is found, and outside of it as variables move.
            here = tf.distribute.get_replica_context()
            found = here.merge_call(self._find_together, args=(closure, variables, inputs))
            loss, update = found
            self._move(update, variables)
        else:
            loss = self._compiled_steps.get(closure, variables)(inputs)
        # The caller stands behind AutoGraph's wrapper of this method.
        self._report_failures(stacklevel=4)
        return loss

    def report_failures(self) -> None:
        """Raises or warns if weight updates were not valid since the last report.

        `step` does so itself, as do `fit` at its end and, where `on_failure` is "raise", the
        callback `Diagnostics` after each batch. Call it where `step` or `apply` is part of a
        function of your own, and after `train_on_batch`.

        Raises:
            tf.errors.InvalidArgumentError: updates were not valid, and `on_failure` is "raise".
        """
        self._report_failures(stacklevel=3)

    def _find_together(
        self, strategy: tf.distribute.Strategy, closures: Any, variables: Any, inputs: Any
    ) -> Any:
        """Returns what `_update_of_closure` gives on replicas that were called eagerly."""
        closures = tuple(strategy.experimental_local_results(closures))
        return self._compiled_updates_of_all.get(closures, variables)(inputs)

    def _update_of_all(
        self, closures: Sequence[Callable[..., Any]], variables: Sequence[Variable], inputs: Any
    ) -> Any:
        def on_replica(inputs: Any) -> Any:
            here = tf.distribute.get_replica_context()
            replica = tf.get_static_value(here.replica_id_in_sync_group)
            closure = closures[replica % len(closures)]
            found = self._update_of_closure(closure, variables, inputs)
            return tf.nest.map_structure(as_tensor, found)

        strategy = tf.distribute.get_strategy()
        return strategy.extended.call_for_each_replica(on_replica, args=(inputs,))

    def _step(
        self, closure: Callable[..., Any], variables: Sequence[Variable], inputs: Any
    ) -> tf.Tensor | None:
        loss, update = self._update_of_closure(closure, variables, inputs)
        self._move(update, variables)
        return loss

    def _update_of_closure(
        self, closure: Callable[..., Any], variables: Sequence[Variable], inputs: Any
    ) -> tuple[tf.Tensor | None, Update]:
        """Returns the loss before the update, None for an `Objective`, and the update."""
        end_update()
        with explained():
            loss = closure(*inputs)
        check_returned(loss)
        if isinstance(loss, Objective):
            return None, self._update(loss, variables)
        objective = ReplayedLoss.of_variables(captured_loss(whole(loss, self.parallel)), variables)
        return loss, self._update(objective, variables)


def _check_no_gradient(grads: Sequence[Any], variables: Sequence[Variable]) -> None:
    for gradient, variable in zip(grads, variables, strict=False):
        if gradient is not None:
            name = getattr(variable, "path", variable.name)
            raise ValueError(
                "`grads` must be None for every weight, as a tape gives them behind `scale_loss`: "
                "this optimizer evaluates the loss instead. Add every term to the loss before "
                "`scale_loss`, and leave `unconnected_gradients` of the tape as it is. "
                f"Received: a gradient of {name!r}, {gradient!r}"
            )
