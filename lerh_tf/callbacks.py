"""Keras callbacks: the diagnostics of each weight update, and a tau that follows them."""

import math
from typing import Any

import keras
import tensorflow as tf

from lerh_tf._checks import checked_seed, integer_at_least, positive_float
from lerh_tf.measures import LossSampler, heat_regularization_of, local_entropy_of
from lerh_tf.optimizers.base import GaussianApproximation
from lerh_tf.optimizers.local_entropy import LocalEntropy

# What does not change from one weight update to the next.
_CONSTANT = frozenset({"dimensions", "compiled", "vectorized"})


class Diagnostics(keras.callbacks.Callback):
    """Writes the diagnostics of each weight update into Keras's logs.

    After each batch the logs hold tau, the optimizer's diagnostics and `relative_error`, the
    standard error of the mean over the size of the step, where the kernel estimates one: near 0
    the step is signal, near 1 it is noise alone, infinite where nothing moved. After each epoch
    they hold the means over its batches. The progress bar and `History` show them, as do
    `CSVLogger` and `TensorBoard` where they stand behind this callback in the list.

    Where the optimizer's `on_failure` is "raise", it raises after the batch whose weight update
    failed, instead of at the end of `fit`. With `steps_per_execution` it sees the last update of
    each execution, and on several replicas the first replica's.

    With `measure_on` each epoch's logs also hold F_tau and F^H_tau on that data, at the weights
    and the tau that the epoch ends with: `measured_local_entropy`, its `..._standard_error` and
    `..._gap`, F_tau - f; the same three of `measured_heat_regularization`; and f itself,
    `measured_loss`. They are those of `local_entropy` and `heat_regularization`, from one sample.

    Args:
        measure_on: data in the forms that `fit` takes `validation_data` in: (x, y),
            (x, y, sample_weight), a `tf.data.Dataset`, a `PyDataset`. None measures nothing.
            Defaults to None.
        samples: number of draws J that `measure_on` is evaluated at, at least 2. Defaults to 100.
        batch_size: rows per batch of arrays in `measure_on`. Defaults to 256.
        seed: of these draws, which are the same after each epoch; integer in [0, 2**32). Defaults
            to 0.

    Raises:
        ValueError: an argument is out of its range.
        TypeError: at the start of training, if the optimizer is not one of this package's.
    """

    def __init__(
        self,
        measure_on: Any = None,
        *,
        samples: int = 100,
        batch_size: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._measure_on = measure_on
        self._samples = integer_at_least("samples", samples, 2)
        self._batch_size = integer_at_least("batch_size", batch_size, 1)
        self._seed = checked_seed(seed)
        self._sampler: LossSampler | None = None
        self._sums: dict[str, float] = {}
        self._batches = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Refuses other optimizers."""
        _optimizer_of(self, GaussianApproximation)
        self._sampler = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts the epoch's means."""
        self._sums, self._batches = {}, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Adds the weight update's values to the batch's logs."""
        optimizer = self.model.optimizer
        values = _diagnostics(optimizer)
        logs.update(values)
        self._batches += 1
        self._sums = {name: self._sums.get(name, 0.0) + value for name, value in values.items()}
        if optimizer.on_failure == "raise":
            optimizer.report_failures()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds the means, and what is measured, to the epoch's logs."""
        logs.update({name: total / self._batches for name, total in self._sums.items()})
        if self._measure_on is not None:
            logs.update(self._measured())

    def _measured(self) -> dict[str, float]:
        # Made late, since a model may be built by its first batch, and once, since it is traced.
        if self._sampler is None:
            self._sampler = LossSampler(self.model, self._samples, self._seed)
        data = keras.utils.unpack_x_y_sample_weight(self._measure_on)
        tau = _value(self.model.optimizer.tau)
        losses = self._sampler.losses(*data, tau=tau, batch_size=self._batch_size)
        values = {"measured_loss": losses.center}
        for name, of in (
            ("measured_local_entropy", local_entropy_of),
            ("measured_heat_regularization", heat_regularization_of),
        ):
            found = of(losses)
            values[name] = found.value
            values[f"{name}_standard_error"] = found.standard_error
            values[f"{name}_gap"] = found.gap
        return values


class AdaptTau(keras.callbacks.Callback):
    """Chooses tau by the effective sample size (ESS) of importance sampling.

    tau <- tau (ESS / (target_ess J))^rate after each batch, within [lower, upper].

    A wider Gaussian leaves fewer of its J samples with a weight that counts, so tau grows while
    the ESS is above the target and shrinks while it is below. Where the log weights are nearly
    normal, -log(ESS / J) is proportional to tau, and the rule contracts to the tau that it equals
    the target at, for rate * log(1 / target_ess) < 2. An update without any effective sample
    counts as one with a single one. The rule has no state but tau, which the optimizer saves.
    It holds the ESS, not the learning: in many dimensions the samples of a far too wide Gaussian
    have about equal losses again, so with gradients, the default estimator, tau may grow up to
    `upper`. Set that to the largest tau that learns.
    The paper asks for a heuristic and leaves it open; this one is not the paper's.

    Args:
        target_ess: wanted ESS as a share of the samples, in (0, 1). Defaults to 0.5.
        rate: exponent of the correction, in (0, 1]. Defaults to 0.1.
        lower: smallest tau, positive. Defaults to 1e-6.
        upper: largest tau, at least `lower`. Defaults to 10.

    Raises:
        ValueError: an argument is out of its range.
        TypeError: at the start of training, if the optimizer is not `LocalEntropy` with
            `ImportanceSampling`, or its tau follows a schedule.

    References:
        Section 5.1.2, for the ESS's dependence on tau; Robbins and Monro (1951).
    """

    def __init__(
        self,
        target_ess: float = 0.5,
        rate: float = 0.1,
        lower: float = 1e-6,
        upper: float = 10.0,
    ) -> None:
        super().__init__()
        self._target = positive_float("target_ess", target_ess)
        if self._target >= 1.0:
            raise ValueError(f"`target_ess` must be below 1. Received: target_ess={target_ess}")
        self._rate = positive_float("rate", rate)
        if self._rate > 1.0:
            raise ValueError(f"`rate` must be at most 1. Received: rate={rate}")
        self._lower, self._upper = positive_float("lower", lower), positive_float("upper", upper)
        if self._lower > self._upper:
            raise ValueError(
                f"`lower` must not be above `upper`. Received: lower={lower}, upper={upper}"
            )

    def on_train_begin(self, logs: Any = None) -> None:
        """Refuses optimizers without an effective sample size or a tau to set."""
        optimizer = _optimizer_of(self, LocalEntropy)
        tells_size = "effective_sample_size" in optimizer.sampler.diagnostic_names
        if not (tells_size and hasattr(optimizer.sampler, "samples")):
            raise TypeError(
                "`AdaptTau` needs the samples and the effective sample size of a sampler such as "
                "`ImportanceSampling`. "
                f"Received: sampler={optimizer.sampler}"
            )
        if not isinstance(optimizer.tau, keras.Variable):
            raise TypeError(
                "`AdaptTau` sets tau after each batch, which can't be done where it follows a "
                "schedule: construct `LocalEntropy` with a number for `tau`. Received: a schedule "
                f"whose tau is {_value(optimizer.tau):.3g} now"
            )

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Corrects tau for the next weight update."""
        optimizer = self.model.optimizer
        size = max(optimizer.diagnostics["effective_sample_size"], 1.0)
        share = size / optimizer.sampler.samples
        tau = _value(optimizer.tau) * (share / self._target) ** self._rate
        optimizer.tau = min(max(tau, self._lower), self._upper)


def _optimizer_of(callback: keras.callbacks.Callback, needed: type[Any]) -> Any:
    optimizer = callback.model.optimizer
    if not isinstance(optimizer, needed):
        allowed = "`LocalEntropy`" if needed is LocalEntropy else "one of this package's"
        raise TypeError(
            f"`{type(callback).__name__}` needs an optimizer that is {allowed}. "
            f"Received: optimizer={optimizer!r}"
        )
    return optimizer


def _diagnostics(optimizer: GaussianApproximation) -> dict[str, float]:
    """Returns the last weight update's values, by the names that the logs have for them."""
    found = optimizer.diagnostics
    values = {"tau": _value(optimizer.tau)}
    values |= {name: value for name, value in found.items() if name not in _CONSTANT}
    if "standard_error" in found:
        step = found["step_norm"]
        values["relative_error"] = found["standard_error"] / step if step > 0.0 else math.inf
    return values


def _value(tau: Any) -> float:
    return float(tf.convert_to_tensor(tau).numpy())
