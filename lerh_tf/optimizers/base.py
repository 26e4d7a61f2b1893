"""What Algorithms 1 and 2 share: the outer loop as a Keras optimizer."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lerh_tf._checks import positive_float
from lerh_tf._compilation import is_compilable
from lerh_tf.kernels.base import Estimate, Kernel, deserialized, dot, size_of, widest_dtype
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.noise import PhiloxNoise, working_dtype
from lerh_tf.objective import Objective, ReplayedLoss, Variable, native
from lerh_tf.optimizers._arguments import SEEDS, as_float, as_tensor, checked_seed, checked_subspace
from lerh_tf.optimizers._doors import CapturedLosses, CompiledSteps, end_update
from lerh_tf.schedules import Schedule, is_schedule
from lerh_tf.subspace import Subspace, find_subspace

_COMMON_DIAGNOSTICS = ("step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized")
_TAU_FAILURE = (
    "`tau` must be positive and finite at every weight update, also where it follows a schedule. "
    "The weights were left as they were. Received: tau="
)


class GaussianApproximation(keras.optimizers.Optimizer):
    """x_{k+1} = m, the mean of the Gaussian nearest to q_{x_k,tau}.

    The update reaches Keras as the gradient g = (x - m) / tau and is x -= learning_rate * g, so
    that clipping, weight decay, averages, accumulation and constraints act on it once per weight
    update. With the learning rate tied to tau, its default, it is x = m.

    The optimizer's variables, whose order is the file format, are: iteration; the learning rate
    and tau, each if given as a number; what Keras's `build` adds; one scalar per diagnostic; for
    kernels with a chain a flag (has it started?) and one position per weight.

    Args:
        tau: variance of the Gaussian (paper's tau), a positive number or a Keras
            `LearningRateSchedule` of the raw update counter, positive at all of them.
        kernel: the estimator of m.
        seed: integer in [0, 2**32); None draws one from Python's `random`.
        learning_rate: number or schedule; None ties it to tau at each step.
        subspace: "auto" samples input layers in the subspace that the minibatch sees, the same in
            distribution and much faster; False samples all weights.
        name: the optimizer's name.
        **kwargs: arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: `tau` is not positive and finite, `seed` out of range, or `subspace`
            neither "auto" nor False.
    """

    def __init__(
        self,
        tau: float | Schedule,
        kernel: Kernel,
        seed: int | None,
        learning_rate: float | Schedule | None,
        subspace: str | bool,
        name: str,
        **kwargs: Any,
    ):
        if not is_schedule(tau):
            tau = positive_float("tau", tau)
        seed = random.randrange(SEEDS) if seed is None else checked_seed(seed)
        rate = _TiedToTau(self) if learning_rate is None else as_float(learning_rate)
        super().__init__(learning_rate=rate, name=name, **kwargs)
        self._kernel = kernel
        self._seed = seed
        self._subspace = checked_subspace(subspace)
        self._captured = CapturedLosses()
        self._compiled_steps = CompiledSteps(self._step)
        self._tau: Any = tau if is_schedule(tau) else self._scalar("tau", tau)

    @property
    def tau(self) -> Any:
        """Variance of the Gaussian (paper's tau) at the coming update; settable if a number."""
        return self._tau(self._iterations) if is_schedule(self._tau) else self._tau

    @tau.setter
    def tau(self, tau: float) -> None:
        if is_schedule(self._tau):
            raise TypeError(
                "`tau` follows a schedule and can't be set; construct the optimizer with a number "
                f"to set it later. Received: tau={tau}"
            )
        self._tau.assign(positive_float("tau", tau))

    @property
    def learning_rate(self) -> Any:
        """Factor on the gradient of the regularized loss; tau unless given."""
        return self._get_current_learning_rate()

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | Schedule) -> None:
        if isinstance(self._learning_rate, _TiedToTau):
            raise TypeError(
                "The learning rate is tied to `tau` and can't be set on its own: set `tau`, or "
                "construct the optimizer with a `learning_rate` to set it later. "
                f"Received: learning_rate={learning_rate}"
            )
        keras.optimizers.Optimizer.learning_rate.fset(self, learning_rate)

    @property
    def seed(self) -> int:
        """Seed of the noise."""
        return self._seed

    @property
    def diagnostics(self) -> dict[str, float]:
        """What happened at the last weight update, by name; empty before `build`.

        `step_norm` is |m - x|, `dimensions` the number of weights that the loss depends on,
        `sampled_dimensions` in how many of them, or of their subspace, noise was drawn per
        sample, `compiled` 1 where the inner loop was compiled by XLA on its own, else 0,
        `vectorized` 0 where an operation, such as a convolution, had to be evaluated sample by
        sample, else 1. The others are the kernel's own.
        """
        if not self.built:
            return {}
        names = self._diagnostic_names
        return {name: float(v.numpy()) for name, v in zip(names, self._diagnostics, strict=True)}

    def build(self, variables: Sequence[Variable]) -> None:
        """Creates the optimizer's variables for a list of trainable weights."""
        if self.built:
            return
        super().build(variables)
        self._diagnostics = [self._scalar(name, 0.0) for name in self._diagnostic_names]
        if self._kernel.has_chain:
            self._chain_started = self.add_variable((len(variables),), name="chain_started")
            self._chain = [
                self.add_variable(v.shape, dtype=working_dtype(v.dtype).name, name="chain")
                for v in variables
            ]

    @tf.autograph.experimental.do_not_convert
    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """Captures the minibatch loss, before Keras's train step differentiates it.

        Args:
            loss: scalar symbolic tensor.

        Returns:
            The loss without a gradient: the kernel takes the only ones there are.

        Raises:
            ReplayError: the loss was computed eagerly.
        """
        self._captured.put(loss)
        return tf.stop_gradient(loss)

    @tf.autograph.experimental.do_not_convert
    def apply(
        self,
        grads: Sequence[tf.Tensor | None],
        trainable_variables: Sequence[Variable] | None = None,
    ) -> None:
        """Moves the weights to m, given the loss that `scale_loss` captured.

        Args:
            grads: ignored; the stock train step passes None for every weight.
            trainable_variables: the weights; may be left out once the optimizer is built.

        Raises:
            ValueError: no loss was captured in this train step.
            ReplayError: the captured loss can't be evaluated at other weights.
        """
        captured = self._captured.take()
        if trainable_variables is None and not self.built:
            raise ValueError(
                "`apply` needs `trainable_variables` the first time. "
                "Received: trainable_variables=None"
            )
        variables = list(
            self._trainable_variables if trainable_variables is None else trainable_variables
        )
        self.apply_objective(ReplayedLoss.of_variables(captured, variables), variables)
        end_update(captured.graph)

    @tf.autograph.experimental.do_not_convert
    def apply_objective(self, objective: Objective, variables: Sequence[Variable]) -> None:
        """Moves the weights to m, given f as a function of them.

        Args:
            objective: the minibatch loss.
            variables: the weights that it is a function of.
        """
        self.build(variables)
        self._check_variables_are_known(variables)
        used = [v for v, is_used in zip(variables, objective.is_used, strict=True) if is_used]
        anchor = [tf.convert_to_tensor(native(v)) for v in used]
        subspace = self._subspace_of(objective, anchor)
        estimate = self._estimate(objective, subspace, anchor, self._chain_start(anchor, used))
        told = self._diagnose(estimate, objective, subspace, anchor)
        # Compiled by XLA the assertions vanish; the displacement is zero there and here.
        with tf.control_dependencies(told), tf.control_dependencies(self._assertions(estimate)):
            self._keep_chain(estimate, used)
            super().apply(self._gradients(estimate, objective, anchor), variables)

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
        """
        if tf.inside_function():
            return self._step(closure, variables, inputs)
        variables = list(variables)
        self.build(variables)
        inputs = tf.nest.map_structure(as_tensor, inputs)
        return self._compiled_steps.get(closure, variables)(inputs)

    def _step(
        self,
        closure: Callable[..., tf.Tensor | Objective],
        variables: Sequence[Variable],
        inputs: Any,
    ) -> tf.Tensor | None:
        if tf.inside_function():
            end_update(tf.compat.v1.get_default_graph())
        loss = closure(*inputs)
        if isinstance(loss, Objective):
            self.apply_objective(loss, variables)
            return None
        self.scale_loss(loss)
        self.apply([None] * len(variables), variables)
        return loss

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Takes one step: x -= learning_rate * g."""
        self.assign_sub(variable, tf.cast(learning_rate, gradient.dtype) * gradient)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, without the kernel."""
        config = super().get_config()
        if isinstance(self._learning_rate, _TiedToTau):
            config["learning_rate"] = None
        if is_schedule(self._tau):
            config["tau"] = keras.optimizers.schedules.serialize(self._tau)
        else:
            config["tau"] = float(self._tau.numpy())
        config["seed"] = self._seed
        config["subspace"] = self._subspace
        return config

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> "GaussianApproximation":
        """Returns the optimizer that `get_config` described."""
        return cls(**deserialized(config, custom_objects))

    def _gradients(
        self, estimate: Estimate, objective: Objective, anchor: Sequence[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        """Returns (x - m) / tau per variable, None where the loss does not depend on it."""
        tau = tf.where(self._tau_is_valid(), self.tau, tf.ones_like(self.tau))
        # Keras divides by the factor that it believes the loss was multiplied by.
        scale = -(self.loss_scale_factor or 1.0)
        gradients = iter(
            [
                tf.cast(scale * d / tf.cast(tau, d.dtype), x.dtype)
                for d, x in zip(estimate.displacement, anchor, strict=True)
            ]
        )
        return [next(gradients) if is_used else None for is_used in objective.is_used]

    def _tau_is_valid(self) -> tf.Tensor:
        tau = tf.convert_to_tensor(self.tau)
        return tf.math.is_finite(tau) & (tau > 0.0)

    def _subspace_of(self, objective: Objective, anchor: Sequence[tf.Tensor]) -> Subspace | None:
        if not self._subspace or not isinstance(objective, ReplayedLoss):
            return None
        return find_subspace(objective, [x.shape for x in anchor])

    def _estimate(
        self,
        objective: Objective,
        subspace: Subspace | None,
        anchor: Sequence[tf.Tensor],
        start: Sequence[tf.Tensor],
    ) -> Estimate:
        update = tf.convert_to_tensor(native(self._iterations))
        tau = tf.cast(tf.convert_to_tensor(self.tau), widest_dtype([x.dtype for x in anchor]))

        def noise_for(tensors: Sequence[tf.Tensor]) -> PhiloxNoise:
            return PhiloxNoise(self._seed, update, tensors)

        if subspace is None:
            estimate = self._kernel(objective, anchor, tau, noise_for(anchor), start, update)
        else:
            estimate = estimate_in_subspace(
                self._kernel, subspace, anchor, tau, noise_for, start, update
            )
        return estimate.dropped_unless(self._tau_is_valid(), start)

    def _chain_start(
        self, anchor: Sequence[tf.Tensor], variables: Sequence[Variable]
    ) -> list[tf.Tensor]:
        """Returns the last state of the chain, or the weights if there is none yet."""
        if not self._kernel.has_chain:
            return []
        started = tf.convert_to_tensor(self._chain_started) > 0.0
        indices = [self._get_variable_index(v) for v in variables]
        # A value assigned in `build` would be lost where `fit` builds while tracing.
        return [
            tf.where(started[index], self._chain[index], tf.cast(x, self._chain[index].dtype))
            for index, x in zip(indices, anchor, strict=True)
        ]

    def _keep_chain(self, estimate: Estimate, variables: Sequence[Variable]) -> None:
        if not self._kernel.has_chain:
            return
        indices = [self._get_variable_index(v) for v in variables]
        has_run = np.zeros(len(self._chain), "float32")
        has_run[indices] = 1.0
        self.assign(self._chain_started, tf.maximum(self._chain_started, has_run))
        for index, state in zip(indices, estimate.chain, strict=True):
            self.assign(self._chain[index], state)

    def _assertions(self, estimate: Estimate) -> list[tf.Operation]:
        return [
            tf.debugging.Assert(self._tau_is_valid(), [_TAU_FAILURE, self.tau]),
            tf.debugging.Assert(estimate.is_valid, [self._kernel.failure]),
        ]

    @property
    def _diagnostic_names(self) -> tuple[str, ...]:
        return (*_COMMON_DIAGNOSTICS, *self._kernel.diagnostic_names)

    def _diagnose(
        self,
        estimate: Estimate,
        objective: Objective,
        subspace: Subspace | None,
        anchor: Sequence[tf.Tensor],
    ) -> list[tf.Operation]:
        """Stores what happened, and returns the operations that do."""
        evaluated = objective if subspace is None else subspace.objective
        dimensions = size_of(anchor)
        values = {
            "step_norm": tf.sqrt(dot(estimate.displacement, estimate.displacement)),
            "dimensions": dimensions,
            "sampled_dimensions": dimensions if subspace is None else subspace.size,
            "compiled": float(is_compilable(evaluated)),
            "vectorized": float(evaluated.is_vectorized),
            **estimate.diagnostics,
        }
        return [
            native(slot).assign(tf.cast(values[name], slot.dtype))
            for name, slot in zip(self._diagnostic_names, self._diagnostics, strict=True)
        ]

    def _scalar(self, name: str, value: float) -> keras.Variable:
        initializer = keras.initializers.Constant(value)
        return self.add_variable(
            (), initializer, dtype="float32", aggregation="only_first_replica", name=name
        )


class _TiedToTau:
    """A learning rate that is the optimizer's tau whenever Keras asks for it."""

    def __init__(self, optimizer: GaussianApproximation):
        self._optimizer = optimizer

    def __call__(self) -> Any:
        return self._optimizer.tau

    def get_config(self) -> dict[str, Any]:
        """Nothing to keep: `GaussianApproximation.get_config` writes None for it."""
        return {}
