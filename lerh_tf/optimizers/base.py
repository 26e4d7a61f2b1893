"""What Algorithms 1 and 2 share: the outer loop as a Keras optimizer around another one."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf._checks import SEEDS, checked_seed, one_of
from lerh_tf.kernels.base import Kernel, deserialized
from lerh_tf.loss.objective import Objective, Variable, native
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.optimizers._arguments import (
    as_tensor,
    check_closure,
    check_dtypes,
    check_returned,
    check_size,
    checked_subspace,
    checked_tau,
    checked_variables,
)
from lerh_tf.optimizers._capture import CapturedLosses, CompiledClosures, captured_loss, end_update
from lerh_tf.optimizers._chain import Chain
from lerh_tf.optimizers._inner import default_inner, given_inner, summing_over_replicas_only
from lerh_tf.optimizers._replicas import (
    apply_where,
    is_eager_replica,
    replicas,
    whole,
)
from lerh_tf.optimizers._report import POLICIES, Report
from lerh_tf.optimizers._update import Update, find_update
from lerh_tf.optimizers._wrapper import Wrapper
from lerh_tf.schedules import Schedule, is_schedule


class GaussianApproximation(Wrapper):
    """Hands g = (x_k - m) / tau, m the mean of the Gaussian nearest to q_{x_k,tau}, to another one.

    The inner optimizer moves the weights along g. By default it is an SGD whose learning rate is
    tau, so that x_{k+1} = m. What it does besides (clipping, decay, momentum, averages,
    accumulation) acts once per weight update.

    An update is valid where tau is positive, and m and g finite in the dtype of the weights. One
    that is not moves nothing: the inner optimizer is not called, or receives zeros for a part of
    an accumulated update. Only the count of updates goes on, so that noise does not repeat.

    The arguments are those of `LocalEntropy`, with the kernel in the place of the sampler.
    """

    def __init__(
        self,
        tau: float | Schedule,
        kernel: Kernel,
        *,
        optimizer: keras.optimizers.Optimizer | None,
        learning_rate: float | Schedule | None,
        seed: int | None,
        subspace: str | bool,
        on_failure: str,
        name: str | None,
        **kwargs: Any,
    ):
        tau = checked_tau(tau)
        seed = random.randrange(SEEDS) if seed is None else seed
        super().__init__(name)
        self._is_default = optimizer is None
        self.inner_optimizer = summing_over_replicas_only(
            default_inner(self, learning_rate, kwargs)
            if optimizer is None
            else given_inner(optimizer, learning_rate, kwargs, GaussianApproximation)
        )
        self._kernel = kernel
        self._seed = checked_seed(seed)
        self._subspace = checked_subspace(subspace)
        self._on_failure = one_of("on_failure", on_failure, POLICIES)
        self._captured = CapturedLosses()
        self._compiled_steps = CompiledClosures(self._step)
        self._compiled_updates = CompiledClosures(self._update_of_closure)
        self._tau: Any = tau
        if not is_schedule(tau):
            kernel.check_tau(tau)
            self._tau = self._shared((), "float32", "tau", keras.initializers.Constant(tau))

    @property
    def tau(self) -> Any:
        """Variance of the Gaussian (paper's tau) at the coming update; settable if a number."""
        return self.tau_at(0)

    @tau.setter
    def tau(self, tau: Any) -> None:
        if is_schedule(self._tau) or is_schedule(tau):
            raise TypeError(
                "`tau` that follows a schedule can't be set, nor can one be set to a schedule: "
                f"construct the optimizer with what it is to be. Received: tau={tau}"
            )
        tau = checked_tau(tau)
        self._kernel.check_tau(tau)
        self._tau.assign(tau)

    def tau_at(self, back: int) -> Any:
        """Returns tau at the coming update or, if it follows a schedule, so many before it."""
        if not is_schedule(self._tau):
            return self._tau
        return self._tau(tf.maximum(self._iterations - back, 0) if back else self._iterations)

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
        """What is done about updates that are not valid: "raise" or "warn"."""
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
        return self._report.diagnostics() if self.built else {}

    @property
    def state(self) -> dict[str, keras.Variable]:
        """See `Wrapper`."""
        state = {"iteration": self._iterations}
        if not is_schedule(self._tau):
            state["tau"] = self._tau
        if self.built and self._kernel.has_chain:
            state |= self._chain.state()
        for index, variable in enumerate(self.inner_optimizer.variables):
            # Those of the weights by their position: the weights' names change with the process.
            is_first = variable.name in ("iteration", "learning_rate")
            state[f"inner_{variable.name if is_first else index}"] = variable
        return state

    @property
    def format(self) -> str:
        """See `Wrapper`."""
        names = (type(each).__name__ for each in (self, self._kernel, self.inner_optimizer))
        return "lerh_tf 2: {}({}), {}".format(*names)

    def build(self, variables: Sequence[Variable]) -> None:
        """Creates the variables of both optimizers for a list of trainable weights."""
        if self.built:
            return
        check_dtypes(variables)
        if tf.inside_function() and replicas() > 1 and tf.distribute.get_replica_context():
            raise ValueError(
                "The optimizer must be built before several replicas use it in a graph: call "
                "`optimizer.build(variables)` in the strategy's scope first. Received: built=False"
            )
        self.inner_optimizer.build(variables)
        self._report = Report(self._kernel)
        if self._kernel.has_chain:
            self._chain = Chain(variables, self._shared)
        # Averages and accumulators of the weights are the inner optimizer's.
        super().build([])
        self._restore_pending()

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
        """Moves the weights, given the loss that `scale_loss` captured.

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
        if trainable_variables is None:
            trainable_variables = self.inner_optimizer._trainable_variables
        variables = list(trainable_variables)
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
            # Replicas meet where variables are assigned to, and can't inside a function.
            loss, update = self._compiled_updates.get(closure, variables)(inputs)
            self._move(update, variables)
        else:
            loss = self._compiled_steps.get(closure, variables)(inputs)
        self.report_failures()
        return loss

    def report_failures(self) -> None:
        """Raises or warns if weight updates were not valid since the last report.

        `step` does so itself, as do `fit` at its end and the callback `Diagnostics` after each
        batch. Call it where `step` or `apply` is part of a function of your own, and after
        `train_on_batch`.

        Raises:
            tf.errors.InvalidArgumentError: updates were not valid, and `on_failure` is "raise".
        """
        if self.built:
            self._report.tell(self._on_failure)

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Ends a training: the inner optimizer's own steps, and a report of failures."""
        self.inner_optimizer.finalize_variable_values(var_list)
        self.report_failures()
        self._report.end_training()

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
        self.inner_optimizer._check_variables_are_known(variables)
        used = [v for v, is_used in zip(variables, objective.is_used, strict=True) if is_used]
        anchor = [tf.convert_to_tensor(native(v)) for v in used]
        return find_update(
            self._kernel,
            objective,
            anchor,
            self._chain.start(anchor, self._indices(used)) if self._kernel.has_chain else [],
            tf.convert_to_tensor(self.tau),
            self._seed,
            tf.convert_to_tensor(native(self._iterations)),
            self._subspace,
            self.loss_scale_factor or 1.0,
        )

    def _move(self, update: Update, variables: Sequence[Variable]) -> None:
        """Moves weights and chain, and stores what there is to report."""
        used = [v for v, g in zip(variables, update.gradients, strict=True) if g is not None]
        is_valid = ~tf.reduce_any(update.fails)
        self._report.store(update.diagnostics, update.fails)
        if self._kernel.has_chain:
            self._chain.keep(update.chain, self._indices(used), is_valid)
        apply = self.inner_optimizer.apply
        if self.gradient_accumulation_steps:
            apply(update.gradients, variables)
        else:
            apply_where(is_valid, apply, update.gradients, variables)
        self._iterations.assign_add(1)
        end_update()

    def _indices(self, variables: Sequence[Variable]) -> list[int]:
        return [self.inner_optimizer._get_variable_index(v) for v in variables]

    def _shared(
        self, shape: Any, dtype: str, name: str, initializer: Any = "zeros"
    ) -> keras.Variable:
        """Returns a new variable whose value is the first replica's."""
        return self.add_variable(
            shape, initializer, dtype=dtype, aggregation="only_first_replica", name=name
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, without the kernel."""
        is_number = not is_schedule(self._tau)
        config = {
            "name": self.name,
            "tau": float(self._tau.numpy())
            if is_number
            else keras.optimizers.schedules.serialize(self._tau),
            "seed": self._seed,
            "subspace": self._subspace,
            "on_failure": self._on_failure,
        }
        if not self._is_default:
            inner = keras.saving.serialize_keras_object(self.inner_optimizer)
            return {**config, "optimizer": inner}
        rate = {"learning_rate": None} if self._is_tied else {}
        return {**self.inner_optimizer.get_config(), **config, **rate}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> "GaussianApproximation":
        """Returns the optimizer that `get_config` described."""
        return cls(**deserialized(config, custom_objects))
