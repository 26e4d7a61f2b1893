"""Algorithm 1: minimisation of local entropy by the mean of q_{x,tau}."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from lerh_tf.kernels.base import Kernel
from lerh_tf.kernels.importance import ImportanceSampling
from lerh_tf.kernels.robbins_monro import RobbinsMonro
from lerh_tf.kernels.sgld import SGLD
from lerh_tf.optimizers._arguments import KernelArgument
from lerh_tf.optimizers.base import GaussianApproximation
from lerh_tf.schedules import Schedule

_SAMPLERS: dict[str, Callable[[], Kernel]] = {
    "gradients": partial(ImportanceSampling, 30, estimator="gradients"),
    "sgld": SGLD,
    "importance_sampling": ImportanceSampling,
}
_SAMPLER = KernelArgument(
    "sampler",
    _SAMPLERS,
    'ImportanceSampling(30, estimator="gradients")',
    others=(RobbinsMonro,),
    owner="HeatRegularization",
)


@keras.saving.register_keras_serializable("lerh_tf")
class LocalEntropy(GaussianApproximation):
    """Minimises the local entropy F_tau by moving to the mean of q_{x,tau}.

    q_{x,tau}(x') is proportional to exp(-f(x') - |x - x'|^2 / (2 tau)),
    x_{k+1} = E_{X ~ q_{x_k,tau}}(X) = x_k - tau grad F_tau(x_k).

    f is the loss of the current minibatch: each call of a train step is one weight update, whose
    expectation the sampler estimates from many evaluations of f.

    Args:
        tau: variance of the Gaussian (paper's tau), a positive number or a Keras
            `LearningRateSchedule` of the count of weight updates, each part of an accumulated one
            counted. Defaults to 0.01.
        sampler: the estimator of the expectation, a kernel or a name: "sgld" and
            "importance_sampling" are the paper's, with its settings; "gradients" is
            `ImportanceSampling(30, estimator="gradients")`, of which a weight update costs a few
            of SGD's and sees the signal that the paper's estimators drown in noise
            (`docs/estimators.md`); a loss whose gradient is zero or missing, such as one behind
            `tf.sign` or `tf.argmax`, needs losses alone, to start with
            `ImportanceSampling(1000, control_variate=True, loss_multiplier=50.0)`. Defaults to
            "gradients".
        optimizer: the inner Keras optimizer that moves the weights along g = (x_k - m) / tau, an
            estimate of grad F_tau, or its name. None is the paper's update x_{k+1} = m,
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
            "batch" where the sampler can, else "means" (`docs/distribution.md`). One replica has
            nothing to share. Defaults to "auto".
        on_failure: what to do about a weight update in which nothing finite was found, tau was
            not positive, or m or g left the dtype of the weights; it moves nothing in any case.
            "raise" raises `tf.errors.InvalidArgumentError` after `step`, at the end of `fit` or,
            with the callback `Diagnostics`, after the batch. "warn" warns after `step` and at the
            end of `fit`, where either warns, once, if m was x in all updates so far. Defaults to
            "raise".
        name: the optimizer's name; None numbers them as Keras does: "local_entropy", then
            "local_entropy_1". Defaults to None.
        **kwargs: further arguments of the default inner SGD, such as `momentum`, `weight_decay`,
            `clipnorm`, `use_ema` and `gradient_accumulation_steps`.

    Raises:
        ValueError: `tau` is not positive and finite, `sampler` no kernel and no known name,
            `seed` out of range, `subspace` or `inner_jit_compile` none of theirs, `parallel`
            unknown or nothing that the sampler's work can be split by, `on_failure`
            neither "raise" nor "warn", `optimizer` no Keras optimizer of gradients or beside
            arguments that belong to it, or a further argument none of `keras.optimizers.SGD`'s.

    References:
        Algorithm 1; equations (3.4) and (3.5).
    """

    def __init__(
        self,
        tau: float | Schedule = 0.01,
        sampler: str | Kernel = "gradients",
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
            _SAMPLER.chosen(sampler),
            kernel_argument=_SAMPLER,
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
    def sampler(self) -> Kernel:
        """The estimator of the expectation."""
        return self._kernel

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        sampler = keras.saving.serialize_keras_object(self._kernel)
        return {**super().get_config(), "sampler": sampler}
