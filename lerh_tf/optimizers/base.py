"""What Algorithms 1 and 2 share: the outer loop as a Keras optimizer around another one."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf._checks import SEEDS, auto_or_bool, checked_seed, one_of
from lerh_tf.kernels.base import Kernel, deserialized
from lerh_tf.loss.objective import Objective, Variable, native
from lerh_tf.optimizers._arguments import (
    KernelArgument,
    check_dtypes,
    check_size,
    checked_subspace,
)
from lerh_tf.optimizers._capture import end_update
from lerh_tf.optimizers._chain import Chain
from lerh_tf.optimizers._inner import default_inner, given_inner, summing_equal_shares
from lerh_tf.optimizers._loss_optimizer import LossOptimizer
from lerh_tf.optimizers._replicas import (
    Sharing,
    apply_unless,
    check_not_compiled,
    check_strategy,
    checked_parallel,
    replicas,
)
from lerh_tf.optimizers._report import POLICIES, Report
from lerh_tf.optimizers._update import Update, find_update, no_update
from lerh_tf.schedules import Schedule, is_schedule, positive_tau


class GaussianApproximation(LossOptimizer):
    """Hands g = (x_k - m) / tau, m the mean of the Gaussian nearest to q_{x_k,tau}, to another one.

    The inner optimizer moves the weights along g. By default it is an SGD whose learning rate is
    tau, so that x_{k+1} = m. What it does besides (clipping, decay, momentum, averages,
    accumulation) acts once per weight update.

    An update is valid where tau is positive, and m and g finite in the dtype of the weights. One
    that is not moves nothing: the inner optimizer is not called, or receives zeros for a part of
    an accumulated update. Only the count of updates goes on, so that noise does not repeat.

    The arguments are those of `LocalEntropy`, with the kernel in the place of the sampler, and
    `kernel_argument`, by which the kernel was given.
    """

    def __init__(
        self,
        tau: float | Schedule,
        kernel: Kernel,
        *,
        kernel_argument: KernelArgument,
        optimizer: keras.optimizers.Optimizer | None,
        learning_rate: float | Schedule | None,
        seed: int | None,
        subspace: str | bool,
        inner_jit_compile: str | bool,
        parallel: str,
        on_failure: str,
        name: str | None,
        **kwargs: Any,
    ):
        tau = tau if is_schedule(tau) else positive_tau(tau)
        seed = random.randrange(SEEDS) if seed is None else seed
        super().__init__(name)
        self._is_default = optimizer is None
        self.inner_optimizer = summing_equal_shares(
            default_inner(self, learning_rate, kwargs, kernel_argument.advice)
            if optimizer is None
            else given_inner(
                optimizer, learning_rate, kwargs, GaussianApproximation, kernel_argument.advice
            )
        )
        self._kernel = kernel
        self._seed = checked_seed(seed)
        self._subspace = checked_subspace(subspace)
        self._inner_jit_compile = auto_or_bool("inner_jit_compile", inner_jit_compile)
        self._parallel = checked_parallel(parallel, kernel)
        self._on_failure = one_of("on_failure", on_failure, POLICIES)
        self._tau: Any = tau
        if not is_schedule(tau):
            self._tau = self._shared((), "float32", "tau", keras.initializers.Constant(tau))
        self._check_tau(float(tf.convert_to_tensor(self.tau)) if is_schedule(tau) else tau)

    @property
    def tau(self) -> Any:
        """Variance of the Gaussian (paper's tau) at the coming update; settable if a number."""
        return self._tau(self._iterations) if is_schedule(self._tau) else self._tau

    @tau.setter
    def tau(self, tau: Any) -> None:
        if is_schedule(self._tau):
            raise TypeError(
                "`tau` that follows a schedule can't be set: construct the optimizer with a number "
                f"for `tau`. Received: tau={tau}"
            )
        if is_schedule(tau):
            raise TypeError(
                "`tau` can't be set to a schedule: construct the optimizer with the schedule for "
                f"`tau`. Received: tau={tau}"
            )
        tau = positive_tau(tau)
        self._check_tau(tau)
        self._tau.assign(tau)

    def _check_tau(self, tau: float) -> None:
        # Of a strategy's replicas each may have a shorter chain.
        Sharing.of(self._kernel, self._parallel).kernel.check_tau(tau)

    def taus_of_parts(self) -> list[Any]:
        """Returns the tau of each part that the coming move accumulates, the coming one's last."""
        if not is_schedule(self._tau):
            return [self._tau]
        earlier = range((self.gradient_accumulation_steps or 1) - 1, 0, -1)
        return [*(self._tau(tf.maximum(self._iterations - k, 0)) for k in earlier), self.tau]

    @property
    def seed(self) -> int:
        """Seed of the noise."""
        return self._seed

    @property
    def subspace(self) -> str | bool:
        """Where noise is drawn, "auto" or False."""
        return self._subspace

    @property
    def inner_jit_compile(self) -> str | bool:
        """Whether XLA compiles the inner loops, "auto", True or False."""
        return self._inner_jit_compile

    @property
    def parallel(self) -> str:
        """How replicas share a weight update, "auto", "samples", "batch" or "means"."""
        return self._parallel

    @property
    def on_failure(self) -> str:
        """What is done about updates that are not valid, "raise" or "warn"."""
        return self._on_failure

    @property
    def diagnostics(self) -> dict[str, float]:
        """What happened at the last weight update, by name; empty before `build`.

        `step_norm` is |m - x|, `dimensions` the number of weights that the loss depends on,
        `sampled_dimensions` in how many of them, or of their subspace, noise was drawn per
        sample, `compiled` 1 where the inner loop was compiled by XLA on its own, else 0,
        `vectorized` 0 where an operation had to be evaluated sample by sample or the loss has a
        loop, else 1. The others are the kernel's own.
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
        return state | self._state_of_inner()

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
        check_strategy()
        if tf.inside_function() and replicas() > 1 and tf.distribute.get_replica_context():
            raise ValueError(
                "The optimizer must be built before several replicas use it in a graph: call "
                "`optimizer.build(variables)` in the strategy's scope first. Received: built=False"
            )
        self.inner_optimizer.build(variables)
        self._report = Report(self._kernel)
        if self._kernel.has_chain:
            has_own_chains = self._parallel == "samples" and replicas() > 1
            add = self._of_each_replica if has_own_chains else self._shared
            self._chain = Chain(variables, add)
        # Averages and accumulators of the weights are the inner optimizer's.
        super().build([])
        self._restore_pending()

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Ends a training: the inner optimizer's own steps, and a report of what went wrong."""
        self.inner_optimizer.finalize_variable_values(var_list)
        context = f"Up to weight update {int(self._iterations.numpy())} of `{self.name}`: "
        self._report_failures(context)
        if self.built:
            self._report.warn_if_still(context)

    def _report_failures(self, context: str = "", stacklevel: int = 2) -> None:
        if self.built:
            self._report.raise_or_warn(self._on_failure, context, stacklevel)

    def _update(self, objective: Objective, variables: Sequence[Variable]) -> Update:
        """Returns what the weights are to be moved by; moves no variable."""
        check_size(objective, variables)
        check_not_compiled()
        # Of a train step that makes variables TensorFlow throws the first trace away, but where a
        # variable's first value depends on the step's arguments: that update fails, and says so.
        is_thrown_away = tf.inside_function() and not self.built
        self.build(variables)
        self.inner_optimizer._check_variables_are_known(variables)
        used = [v for v, is_used in zip(variables, objective.is_used, strict=True) if is_used]
        anchor = [tf.convert_to_tensor(native(v)) for v in used]
        if is_thrown_away:
            return no_update(anchor, objective.is_used, self._kernel)
        return find_update(
            Sharing.of(self._kernel, self._parallel),
            objective,
            anchor,
            self._chain.start(anchor, self._indices(used)) if self._kernel.has_chain else [],
            tf.convert_to_tensor(self.tau),
            self._seed,
            tf.convert_to_tensor(native(self._iterations)),
            self._subspace,
            self._inner_jit_compile,
            self.loss_scale_factor or 1.0,
        )

    def _move(self, update: Update, variables: Sequence[Variable]) -> None:
        """Moves weights and chain, and stores what there is to report."""
        self._report.store(update.diagnostics, update.fails)
        indices = self._indices(
            [v for v, g in zip(variables, update.gradients, strict=True) if g is not None]
        )
        is_valid = ~tf.reduce_any(update.fails)

        def move(gradients: Any, variables: Any, chain: Any, is_valid: tf.Tensor) -> None:
            self.inner_optimizer.apply(gradients, variables)
            if self._kernel.has_chain:
                self._chain.keep(chain, indices, is_valid)

        arguments = (update.gradients, variables, update.chain, is_valid)
        if self.gradient_accumulation_steps:
            # A part that is not valid adds zeros, but nothing decays where all parts are such.
            is_needed = is_valid | self._has_accumulated()
            apply_unless(~is_needed, move, arguments, self._count_in_inner)
        else:
            apply_unless(~is_valid, move, arguments)
        self._iterations.assign_add(1)
        end_update()

    def _count_in_inner(self) -> None:
        self.inner_optimizer._iterations.assign_add(1)

    def _has_accumulated(self) -> tf.Tensor:
        """Returns whether a part of the coming move has a gradient already."""
        sums = self.inner_optimizer._accumulated_gradients
        return tf.reduce_any([tf.reduce_any(tf.convert_to_tensor(s) != 0.0) for s in sums])

    def _indices(self, variables: Sequence[Variable]) -> list[int]:
        return [self.inner_optimizer._get_variable_index(v) for v in variables]

    def _shared(
        self, shape: Any, dtype: str, name: str, initializer: Any = "zeros"
    ) -> keras.Variable:
        """Returns a new variable whose value is the first replica's."""
        return self.add_variable(
            shape, initializer, dtype=dtype, aggregation="only_first_replica", name=name
        )

    def _of_each_replica(self, shape: Any, dtype: str, name: str) -> keras.Variable:
        """Returns a new variable of which each replica has a value of its own."""

        def create(following: Any, **arguments: Any) -> tf.Variable:
            own = {"synchronization": tf.VariableSynchronization.ON_READ}
            return following(**{**arguments, **own})

        with tf.variable_creator_scope(create):
            return self._shared(shape, dtype, name)

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
            "inner_jit_compile": self._inner_jit_compile,
            "parallel": self._parallel,
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
