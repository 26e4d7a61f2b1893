"""What Algorithms 1 and 2 share: the outer loop as a Keras optimizer."""

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf._checks import one_of
from lerh_tf.exact.subspace import Subspace, find_subspace
from lerh_tf.kernels.base import Kernel, deserialized
from lerh_tf.loss.objective import Objective, Variable, native
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.optimizers._arguments import (
    CLIPPING,
    SEEDS,
    TiedToTau,
    as_float,
    as_tensor,
    check_closure,
    check_dtypes,
    check_keras_arguments,
    check_returned,
    check_size,
    checked_seed,
    checked_subspace,
    checked_variables,
    on_the_host,
    positive_tau,
    settable_rate,
)
from lerh_tf.optimizers._chain import Chain
from lerh_tf.optimizers._diagnostics import Diagnostics, measured
from lerh_tf.optimizers._doors import CapturedLosses, CompiledSteps, captured_loss, end_update
from lerh_tf.optimizers._failures import POLICIES, Failures
from lerh_tf.optimizers._keras_optimizer import KerasOptimizer
from lerh_tf.optimizers._replicas import is_eager_replica, whole
from lerh_tf.optimizers._update import Draw, Step, Update
from lerh_tf.schedules import Schedule, is_schedule

_FIXED = frozenset({"seed", "subspace", "on_failure", "sampler", "solver"})


class GaussianApproximation(KerasOptimizer):
    """x_{k+1} = m, the mean of the Gaussian nearest to q_{x_k,tau}.

    The update reaches Keras as the gradient g = (x - m) / tau and is x -= learning_rate * g, so
    that clipping, weight decay, averages, accumulation and constraints act on it once per weight
    update. With the learning rate tied to tau, its default, it is x = m.

    An update that fails, because tau is not positive, nothing finite was found or the weights
    would not be finite after it, moves nothing but the iteration. Under gradient accumulation and
    on one of several replicas it is a part of an update, and counts as one that does not move;
    an accumulated update that would leave the dtype as a whole is let go with all its parts.

    The optimizer's variables, whose order is the file format, are: iteration; the learning rate
    and tau, each if given as a number; what Keras's `build` adds; one scalar per diagnostic; the
    counts of failures that were not reported yet; for kernels with a chain a flag (has it
    started?) and one position per weight.

    Args:
        tau: variance of the Gaussian (paper's tau), a positive number or a Keras
            `LearningRateSchedule` of the raw update counter, positive at all of them.
        kernel: the estimator of m.
        seed: integer in [0, 2**32); None draws one from Python's `random`.
        learning_rate: number or schedule; None ties it to tau at each step.
        subspace: "auto" samples input layers in the subspace that the minibatch sees, the same in
            distribution and much faster; False samples all weights.
        on_failure: "raise" or "warn", what to do about an update that fails.
        name: the optimizer's name.
        **kwargs: arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: `tau` is not positive and finite, `seed` out of range, `subspace` neither
            "auto" nor False, `on_failure` neither "raise" nor "warn", or a number among the other
            arguments not finite.
    """

    def __init__(
        self,
        tau: float | Schedule,
        kernel: Kernel,
        seed: int | None,
        learning_rate: float | Schedule | None,
        subspace: str | bool,
        on_failure: str,
        name: str | None,
        **kwargs: Any,
    ):
        if not is_schedule(tau):
            tau = positive_tau(tau)
        seed = random.randrange(SEEDS) if seed is None else checked_seed(seed)
        rate = TiedToTau(self) if learning_rate is None else as_float(learning_rate)
        check_keras_arguments(kwargs)
        super().__init__(learning_rate=rate, name=name, **kwargs)
        self._kernel = kernel
        self._on_failure = one_of("on_failure", on_failure, POLICIES)
        self._failures = Failures(on_failure, kernel.failure)
        self._seed = seed
        self._subspace = checked_subspace(subspace)
        self._captured = CapturedLosses()
        self._compiled_steps = CompiledSteps(self._step)
        self._compiled_updates = CompiledSteps(self._update_of_closure)
        self._tau: Any = tau if is_schedule(tau) else self._scalar("tau", tau)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED:
            raise AttributeError(
                f"`{name}` can't be set: compiled train steps hold it. Make another optimizer and "
                f"compile the model with it. Received: {name}={value!r}"
            )
        check_keras_arguments(self._beside(name) | {name: value})
        super().__setattr__(name, value)

    def _beside(self, name: str) -> dict[str, Any]:
        """Returns the arguments that limit what an attribute may be set to."""
        return {n: getattr(self, n, None) for n in CLIPPING} if name in CLIPPING else {}

    @property
    def tau(self) -> Any:
        """Variance of the Gaussian (paper's tau) at the coming update; settable if a number."""
        return self._tau(self._iterations) if is_schedule(self._tau) else self._tau

    @tau.setter
    def tau(self, tau: Any) -> None:
        if is_schedule(self._tau):
            raise TypeError(
                "`tau` follows a schedule and can't be set; construct the optimizer with a number "
                f"to set it later. Received: tau={tau}"
            )
        self._tau.assign(positive_tau(on_the_host(tau)))

    @property
    def learning_rate(self) -> Any:
        """Factor on the gradient of the regularized loss; tau unless given."""
        return self._get_current_learning_rate()

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | Schedule) -> None:
        if isinstance(self._learning_rate, TiedToTau):
            raise TypeError(
                "The learning rate is tied to `tau` and can't be set on its own: set `tau`, or "
                "construct the optimizer with a `learning_rate` to set it later. "
                f"Received: learning_rate={learning_rate}"
            )
        keras.optimizers.Optimizer.learning_rate.fset(self, settable_rate(learning_rate))

    @property
    def layout(self) -> str:
        """See `KerasOptimizer`: the algorithm, its kernel, what exists before `build`."""
        own, kernel = type(self).__name__, type(self._kernel).__name__
        state = (self._iterations, self._learning_rate, self._tau)
        made_at_first = (v.name for v in state if isinstance(v, keras.Variable))
        return f"{own}({kernel}): {', '.join(made_at_first)}"

    @property
    def seed(self) -> int:
        """Seed of the noise."""
        return self._seed

    @property
    def subspace(self) -> str | bool:
        """Where noise is drawn: "auto" or False."""
        return self._subspace

    @property
    def on_failure(self) -> str:
        """What is done about an update that fails: "raise" or "warn"."""
        return self._on_failure

    @property
    def diagnostics(self) -> dict[str, float]:
        """What happened at the last weight update, by name; empty before `build`.

        `step_norm` is |m - x|, `dimensions` the number of weights that the loss depends on,
        `sampled_dimensions` in how many of them, or of their subspace, noise was drawn per
        sample, `compiled` 1 where the inner loop was compiled by XLA on its own, else 0,
        `vectorized` 0 where an operation, such as a convolution, had to be evaluated sample by
        sample or the loss has a loop, else 1. The others are the kernel's own.
        """
        return self._diagnostics.read() if self.built else {}

    def build(self, variables: Sequence[Variable]) -> None:
        """Creates the optimizer's variables for a list of trainable weights."""
        if self.built:
            return
        check_dtypes(variables)
        made_before = len(self.variables)
        super().build(variables)
        self._diagnostics = Diagnostics(self._kernel, lambda name: self._scalar(name, 0.0))
        self._unreported = self.add_variable(
            (self._failures.causes,), dtype="int64", aggregation="sum", name="unreported_failures"
        )
        if self._kernel.has_chain:
            self._chain = Chain(variables, self._shared)
        self.restore_waiting(self.variables[made_before:])

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
        self._captured.put(captured_loss(whole(loss)))
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

    @tf.autograph.experimental.do_not_convert
    def apply_objective(self, objective: Objective, variables: Sequence[Variable]) -> None:
        """Moves the weights to m, given f as a function of them.

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
            tf.errors.InvalidArgumentError: the update failed, unless `on_failure="warn"`.
        """
        check_closure(closure)
        variables = checked_variables(variables)
        if tf.inside_function():
            return self._step(closure, variables, inputs)
        self.build(variables)
        inputs = tf.nest.map_structure(as_tensor, inputs)
        if is_eager_replica():
            # Replicas meet where variables are assigned to, and can't inside a function.
            loss, update = self._compiled_updates.get(closure, variables)(inputs)
            self._move(update, variables)
        else:
            loss = self._compiled_steps.get(closure, variables)(inputs)
        self.report_failures()
        return loss

    def report_failures(self) -> None:
        """Raises or warns if weight updates have failed since the last report.

        `step` does so itself, as do `fit` at its end and the callback `Diagnostics` after each
        batch. Call it where you compile a train step by XLA, which can't raise, in a loop of
        your own, and after `train_on_batch`.

        Raises:
            tf.errors.InvalidArgumentError: updates failed, and `on_failure` is "raise".
        """
        if self.built:
            self._failures.report(self._unreported)

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Ends a training: Keras's own steps, and a report of updates that failed."""
        super().finalize_variable_values(var_list)
        self.report_failures()

    def _step(
        self,
        closure: Callable[..., tf.Tensor | Objective],
        variables: Sequence[Variable],
        inputs: Any,
    ) -> tf.Tensor | None:
        loss, update = self._update_of_closure(closure, variables, inputs)
        self._move(update, variables)
        return loss

    def _update_of_closure(
        self,
        closure: Callable[..., tf.Tensor | Objective],
        variables: Sequence[Variable],
        inputs: Any,
    ) -> tuple[tf.Tensor | None, Update]:
        """Returns the loss before the update, None for an `Objective`, and the update."""
        if tf.inside_function():
            end_update(tf.compat.v1.get_default_graph())
        loss = closure(*inputs)
        check_returned(loss)
        if isinstance(loss, Objective):
            return None, self._update(loss, variables)
        objective = ReplayedLoss.of_variables(captured_loss(whole(loss)), variables)
        return loss, self._update(objective, variables)

    def _update(self, objective: Objective, variables: Sequence[Variable]) -> Update:
        """Returns what the weights are to be moved by; moves no variable."""
        check_size(objective, variables)
        self.build(variables)
        self._check_variables_are_known(variables)
        used = [v for v, is_used in zip(variables, objective.is_used, strict=True) if is_used]
        anchor = [tf.convert_to_tensor(native(v)) for v in used]
        start = self._chain.start(anchor, self._indices(used)) if self._kernel.has_chain else []
        subspace = self._subspace_of(objective, anchor)
        step = self._step_to_mean()
        estimate = self._draw().estimate(objective, subspace, anchor, start)
        found = step.has_valid_tau & estimate.is_valid
        estimate = estimate.dropped_unless(found, start)
        leaves = self.leaves_dtype(step.gradients(estimate, anchor), used)
        estimate = estimate.dropped_unless(~leaves, start)
        gradients = iter(step.gradients(estimate, anchor))
        return Update(
            [next(gradients) if is_used else None for is_used in objective.is_used],
            estimate.chain,
            measured(estimate, objective, subspace, anchor),
            # One cause each, in the order of `Failures`.
            [~step.has_valid_tau, step.has_valid_tau & ~estimate.is_valid, found & leaves],
            leaves,
        )

    def _move(self, update: Update, variables: Sequence[Variable]) -> None:
        """Moves weights and chain, and stores what there is to tell."""
        used = [v for v, g in zip(variables, update.gradients, strict=True) if g is not None]
        self._diagnostics.store(update.diagnostics)
        count = functools.partial(self.assign_add, self._unreported)
        asserted = self._failures.record(update.fails, tf.convert_to_tensor(self.tau), count)
        with tf.control_dependencies(asserted):
            if self._kernel.has_chain:
                self._chain.keep(update.chain, self._indices(used))
            partly = self.gradient_accumulation_steps
            skip = update.leaves if partly else tf.reduce_any(update.fails)
            self.apply_unless(skip, update.gradients, variables)
        if tf.inside_function():
            end_update(tf.compat.v1.get_default_graph())

    def _indices(self, variables: Sequence[Variable]) -> list[int]:
        return [self._get_variable_index(v) for v in variables]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, without the kernel."""
        config = super().get_config()
        if isinstance(self._learning_rate, TiedToTau):
            config["learning_rate"] = None
        if is_schedule(self._tau):
            config["tau"] = keras.optimizers.schedules.serialize(self._tau)
        else:
            config["tau"] = float(self._tau.numpy())
        config["seed"] = self._seed
        config["subspace"] = self._subspace
        config["on_failure"] = self._on_failure
        return config

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> "GaussianApproximation":
        """Returns the optimizer that `get_config` described."""
        return cls(**deserialized(config, custom_objects))

    def _draw(self) -> Draw:
        update = tf.convert_to_tensor(native(self._iterations))
        return Draw(self._kernel, self._seed, update, tf.convert_to_tensor(self.tau))

    def _step_to_mean(self) -> Step:
        return Step(tf.convert_to_tensor(self.tau), self.loss_scale_factor or 1.0)

    def _subspace_of(self, objective: Objective, anchor: Sequence[tf.Tensor]) -> Subspace | None:
        if not self._subspace or not isinstance(objective, ReplayedLoss):
            return None
        return find_subspace(objective, [x.shape for x in anchor])

    def _scalar(self, name: str, value: float) -> keras.Variable:
        return self._shared((), "float32", name, keras.initializers.Constant(value))

    def _shared(
        self, shape: Any, dtype: str, name: str, initializer: Any = "zeros"
    ) -> keras.Variable:
        """Returns a new variable whose value is the first replica's."""
        return self.add_variable(
            shape, initializer, dtype=dtype, aggregation="only_first_replica", name=name
        )
