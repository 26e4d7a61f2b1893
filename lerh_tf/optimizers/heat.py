"""Algorithm 2: minimisation of the heat-regularized loss."""

from collections.abc import Callable
from typing import Any

import keras

from lerh_tf.kernels.base import Kernel
from lerh_tf.kernels.importance import ImportanceSampling
from lerh_tf.kernels.robbins_monro import RobbinsMonro
from lerh_tf.kernels.sgld import SGLD
from lerh_tf.optimizers._arguments import KernelArgument
from lerh_tf.optimizers.base import GaussianApproximation
from lerh_tf.schedules import Schedule

_SOLVERS: dict[str, Callable[[], Kernel]] = {"robbins_monro": RobbinsMonro}
_SOLVER = KernelArgument(
    "solver",
    _SOLVERS,
    "RobbinsMonro(30, 30)",
    others=(ImportanceSampling, SGLD),
    owner="LocalEntropy",
)


@keras.saving.register_keras_serializable("lerh_tf")
class HeatRegularization(GaussianApproximation):
    """Minimises F^H_tau, f convolved with a Gaussian, by the mode-seeking best Gaussian.

    x_{k+1} minimises x -> KL(N(x, tau I) || q_{x_k,tau}), so that
    x_{k+1} = x_k - tau grad F^H_tau(x_{k+1}).

    f is the loss of the current minibatch: each call of a train step is one weight update, whose
    implicit equation the solver solves with many gradients of f.

    Args:
        tau: variance of the Gaussian (paper's tau), a positive number or a Keras
            `LearningRateSchedule` of the count of weight updates, each part of an accumulated one
            counted. Defaults to 0.01.
        solver: the solver of the implicit equation, a kernel or the name of one with the paper's
            settings: "robbins_monro". Defaults to "robbins_monro".
        optimizer: the inner Keras optimizer that moves the weights along g = (x_k - m) / tau, an
            estimate of grad F^H_tau(x_{k+1}), or its name. None is the paper's update x_{k+1} = m,
            as an SGD whose learning rate is tau (Remark 3.2). Defaults to None.
        learning_rate: that SGD's, a number or schedule; None ties it to tau. Defaults to None.
        seed: integer in [0, 2**32), seed of the noise; None draws one from Python's `random`,
            which `keras.utils.set_random_seed` sets. Defaults to None.
        subspace: "auto" samples kernels and embeddings that only the inputs meet in the subspace
            that the minibatch sees, the same in distribution and much faster, and large hidden
            kernels through what few rows see of them (`docs/speed.md`); False samples all weights.
            Defaults to "auto".
        inner_jit_compile: whether XLA compiles the inner loops on their own, whatever `compile`'s
            `jit_compile` says of the whole train step: True, False, or "auto", where it is known
            to compile all of the loss and not to be slower. The noise is the same, results
            differ by rounding. Defaults to "auto".
        parallel: how the replicas of a `tf.distribute` strategy share a weight update. With "batch"
            each holds a part of the minibatch, and the update is that of one device with all of
            it; with "samples" all hold the same minibatch (`lerh_tf.whole_batches`) and each draws
            its share of the samples; with "means" each finds the mean of its own part of the
            minibatch, and the mean of these counts, another algorithm than one device's. "auto" is
            "batch" where the solver can, else "means" (`docs/distribution.md`). One replica has
            nothing to share. Defaults to "auto".
        on_failure: what to do about a weight update in which nothing finite was found, tau was
            not positive, or m or g left the dtype of the weights; it moves nothing in any case.
            "raise" raises `tf.errors.InvalidArgumentError` after `step`, at the end of `fit` or,
            with the callback `Diagnostics`, after the batch. "warn" warns after `step` and at the
            end of `fit`, where either warns, once, if m was x in all updates so far. Defaults to
            "raise".
        name: the optimizer's name; None numbers them as Keras does: "heat_regularization", then
            "heat_regularization_1". Defaults to None.
        **kwargs: further arguments of the default inner SGD, such as `momentum`, `weight_decay`,
            `clipnorm`, `use_ema` and `gradient_accumulation_steps`.

    Raises:
        ValueError: `tau` is not positive and finite, `solver` no kernel and no known name,
            `seed` out of range, `subspace` or `inner_jit_compile` none of theirs, `parallel`
            unknown or nothing that the solver's work can be split by, `on_failure`
            neither "raise" nor "warn", `optimizer` no Keras optimizer of gradients or beside
            arguments that belong to it, or a further argument none of `keras.optimizers.SGD`'s.

    References:
        Algorithm 2; h(x) = 0 of Section 5.2.
    """

    def __init__(
        self,
        tau: float | Schedule = 0.01,
        solver: str | Kernel = "robbins_monro",
        *,
        optimizer: keras.optimizers.Optimizer | str | None = None,
        learning_rate: float | Schedule | None = None,
        seed: int | None = None,
        subspace: str | bool = "auto",
        inner_jit_compile: str | bool = "auto",
        parallel: str = "auto",
        on_failure: str = "raise",
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            tau,
            _SOLVER.chosen(solver),
            kernel_argument=_SOLVER,
            optimizer=optimizer,
            learning_rate=learning_rate,
            seed=seed,
            subspace=subspace,
            inner_jit_compile=inner_jit_compile,
            parallel=parallel,
            on_failure=on_failure,
            name=name,
            **kwargs,
        )

    @property
    def solver(self) -> Kernel:
        """The solver of the implicit equation."""
        return self._kernel

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        solver = keras.saving.serialize_keras_object(self._kernel)
        return {**super().get_config(), "solver": solver}
