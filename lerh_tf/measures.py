"""F_tau and F^H_tau of a model on a whole data set, and so how flat f is around its weights."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from scipy.special import logsumexp

from lerh_tf._checks import checked_seed, integer_at_least, positive_float
from lerh_tf.loss.objective import LossFunction, Objective, Weights, displaced, native, scaled
from lerh_tf.loss.stateless import loss_of_model, rows_of
from lerh_tf.noise import PhiloxNoise, block_size
from lerh_tf.optimizers._replicas import whole
from lerh_tf.schedules import positive_tau

Array = npt.NDArray[np.float64]

# The first block to draw: no training with the same seed comes to it, so that weights are not
# measured with the noise that moved them.
_FIRST_BLOCK = 2**30


class RegularizedLoss(NamedTuple):
    """A regularized loss of a model, and the loss itself, on one data set.

    Attributes:
        value: the estimate of F_tau(x) or F^H_tau(x).
        standard_error: of `value`, and of `gap` too, since f(x) is exact.
        loss: f(x), without noise.
    """

    value: float
    standard_error: float
    loss: float

    @property
    def gap(self) -> float:
        """`value` - `loss`, how much f rises around x, near 0 at a flat minimum."""
        return self.value - self.loss


def local_entropy(
    model: keras.Model,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    tau: float,
    samples: int = 100,
    loss_multiplier: float = 1.0,
    batch_size: int = 256,
    steps: int | None = None,
    seed: int = 0,
    verbose: str | int = "auto",
) -> RegularizedLoss:
    """Estimates F_tau at a model's weights, on a whole data set.

    F_tau(x) = -log E exp(-f(x + sqrt(tau) z)), z ~ N(0, I), by the mean over J draws of z.

    f is what `model.evaluate` calls the loss: the compiled loss and the regularization losses,
    without dropout, over all the data, batches weighted by their rows. It is taken as a function
    of all trainable weights x. Each draw is evaluated on all batches before its exponential is
    taken. Neither weights nor any other state of the model change, and memory does not depend on
    the data's size.

    The expectation of the estimate is at least F_tau, and the more so the fewer draws count: its
    standard error is, by the delta method, sqrt((J / ESS - 1) / (J - 1)) with ESS the effective
    sample size of the weights exp(-f), and so at most 1. Near 1 a single draw decides, and the
    estimate is no more than a bound from above.

    Args:
        model: a compiled and built Keras model.
        x: the data, in any form that `model.evaluate` takes: arrays, a `tf.data.Dataset`, a
            `PyDataset`, a generator.
        y: targets, where `x` does not hold them.
        sample_weight: weights of the rows, where `x` does not hold them.
        tau: variance of the Gaussian (paper's tau), a positive number.
        samples: number of draws J, at least 2. Defaults to 100.
        loss_multiplier: positive factor on f in all that is returned, as `ImportanceSampling` has
            it. Defaults to 1.
        batch_size: rows per batch of arrays; J draws are made for each. Defaults to 256.
        steps: number of batches, for data without an end; None takes all. Defaults to None.
        seed: integer in [0, 2**32). Draw j is a function of the seed and j alone. Defaults to 0.
        verbose: of `model.evaluate`'s progress bar. Defaults to "auto".

    Returns:
        F_tau(x) as `value`, its `standard_error`, f(x) as `loss`, and `gap`, `value` less `loss`.
        A draw without a finite loss counts as exp(-f) = 0.

    Raises:
        TypeError: `model` is no Keras model.
        ValueError: `model` is not compiled or has no trainable weights, a number is out of its
            range, or there is no data.
        ReplayError: the model reads weights in a `tf.function` of its own.

    References:
        The definition of F_tau, Section 2.1.
    """
    multiplier = positive_float("loss_multiplier", loss_multiplier)
    sampled = LossSampler(model, samples, seed).losses(
        x, y, sample_weight, tau=tau, batch_size=batch_size, steps=steps, verbose=verbose
    )
    return local_entropy_of(SampledLosses(multiplier * sampled.center, multiplier * sampled.around))


def heat_regularization(
    model: keras.Model,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    tau: float,
    samples: int = 100,
    batch_size: int = 256,
    steps: int | None = None,
    seed: int = 0,
    verbose: str | int = "auto",
) -> RegularizedLoss:
    """Estimates F^H_tau at a model's weights, on a whole data set.

    F^H_tau(x) = E f(x + sqrt(tau) z), z ~ N(0, I), by the mean over J draws of z.

    f and the arguments are those of `local_entropy`; with one seed the draws are the same too.

    Args:
        model: a compiled and built Keras model.
        x: the data, in any form that `model.evaluate` takes.
        y: targets, where `x` does not hold them.
        sample_weight: weights of the rows, where `x` does not hold them.
        tau: variance of the Gaussian (paper's tau), a positive number.
        samples: number of draws J, at least 2. Defaults to 100.
        batch_size: rows per batch of arrays. Defaults to 256.
        steps: number of batches, for data without an end; None takes all. Defaults to None.
        seed: integer in [0, 2**32). Defaults to 0.
        verbose: of `model.evaluate`'s progress bar. Defaults to "auto".

    Returns:
        F^H_tau(x) with its standard error, and f(x).

    Raises:
        TypeError: as `local_entropy`.
        ValueError: as `local_entropy`.
        ReplayError: as `local_entropy`.

    References:
        The definition of F^H_tau, Section 2.2.
    """
    sampler = LossSampler(model, samples, seed)
    return heat_regularization_of(
        sampler.losses(
            x, y, sample_weight, tau=tau, batch_size=batch_size, steps=steps, verbose=verbose
        )
    )


class SampledLosses(NamedTuple):
    """f on a data set, at the weights and around them.

    Attributes:
        center: f(x).
        around: f(x + sqrt(tau) z_j), shape [J].
    """

    center: float
    around: Array


def local_entropy_of(losses: SampledLosses) -> RegularizedLoss:
    """Returns -log mean_j exp(-f_j); its standard error is that of the mean over the mean."""
    logs = np.where(np.isfinite(losses.around), -losses.around, -math.inf)
    largest = logs.max()
    if largest == -math.inf:
        return RegularizedLoss(math.inf, math.nan, losses.center)
    value = math.log(len(logs)) - float(logsumexp(logs))
    terms = np.exp(logs - largest)
    return RegularizedLoss(value, _error_of_mean(terms) / float(terms.mean()), losses.center)


def heat_regularization_of(losses: SampledLosses) -> RegularizedLoss:
    """Returns mean_j f_j."""
    if not np.isfinite(losses.around).all():
        return RegularizedLoss(float(losses.around.mean()), math.nan, losses.center)
    return RegularizedLoss(
        float(losses.around.mean()), _error_of_mean(losses.around), losses.center
    )


def _error_of_mean(values: Array) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


class LossSampler(keras.Model):
    """Evaluates f over a data set at a model's weights x and at x + sqrt(tau) z_j, j = 1, ..., J.

    A model only in that Keras's `evaluate` feeds it: any data, batch by batch, on the replicas of
    the measured model's strategy, with a progress bar, through one trace per shape of a batch.

    Args:
        model: a compiled and built Keras model.
        samples: number of draws J, at least 2.
        seed: of the noise, integer in [0, 2**32).

    Raises:
        TypeError: `model` is no Keras model.
        ValueError: `model` is not compiled or has no trainable weights, or a number is out of its
            range.
    """

    def __init__(self, model: keras.Model, samples: int, seed: int):
        _check_model(model)
        with model.distribute_strategy.scope():
            super().__init__()
            self._samples = integer_at_least("samples", samples, 2)
            self._seed = checked_seed(seed)
            # In functions, and so not among this model's own layers, whose metrics it resets.
            self._variables_of_model: Callable[[], Any] = lambda: model.trainable_variables
            self._loss_on: Callable[[Any], Any] = functools.partial(_loss_on, model)
            self._run_model: Callable[[Any], Any] = lambda data: model(
                keras.utils.unpack_x_y_sample_weight(data)[0], training=False
            )
            self._tau = self.add_weight(shape=(), dtype="float64", trainable=False, name="tau")
            self._means = _MeanOverRows(1 + self._samples)
            self.built = True
            self.compile(run_eagerly=model.run_eagerly, jit_compile=False)

    def losses(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        tau: float,
        batch_size: int = 256,
        steps: int | None = None,
        verbose: str | int = 0,
    ) -> SampledLosses:
        """Returns f at the weights as they are now and around them; see `local_entropy`."""
        if x is None:
            raise ValueError("`x` must hold the data. Received: x=None")
        self._tau.assign(positive_tau(tau))
        with warnings.catch_warnings():
            if steps is None:
                # Keras warns so at the regular end of data whose length is not known beforehand.
                warnings.filterwarnings("ignore", "Your input ran out of data", UserWarning)
            self.evaluate(
                x,
                y,
                sample_weight=sample_weight,
                batch_size=integer_at_least("batch_size", batch_size, 1),
                steps=steps,
                verbose=verbose,
            )
        if not self._means.rows > 0.0:
            raise ValueError(f"`x` must hold at least one row of data. Received: x={x!r}")
        means = self._means.result().numpy()
        return SampledLosses(float(means[0]), means[1:])

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        """Adds one batch's losses, as `evaluate` asks for it."""
        if tf.inside_function():
            # A model's own `tf.function` that is first called at other weights would keep them.
            tf.function(self._run_model, autograph=False).get_concrete_function(data)
        loss_at, rows = self._loss_on(data)
        x = [tf.convert_to_tensor(native(v)) for v in self._variables_of_model()]
        objective = LossFunction(loss_at, len(x), vectorize=not self.run_eagerly)
        self._means.update_state(
            tf.concat([loss_at(x)[None], self._losses_around(objective, x)], 0), rows
        )
        return {"loss": self._means.result()[0]}

    def _losses_around(self, objective: Objective, x: list[tf.Tensor]) -> tf.Tensor:
        """Returns f(x + sqrt(tau) z_j) on one batch, shape [J]: the same z_j on each."""
        noise = PhiloxNoise(self._seed, tf.constant(0, tf.int64), x)
        size = tf.minimum(block_size(x, objective.footprint), self._samples)
        blocks = (self._samples + size - 1) // size
        tau = tf.convert_to_tensor(native(self._tau))

        def add_block(block: tf.Tensor, losses: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            count = tf.minimum(size, self._samples - block * size)
            z = noise(_FIRST_BLOCK + tf.cast(block, tf.int64), count)
            of_block = objective.vectorized(displaced(x, scaled(tau, z)))
            return block + 1, losses.write(block, tf.cast(of_block, tf.float64))

        _, losses = tf.while_loop(
            lambda block, _: block < blocks,
            add_block,
            (tf.constant(0), tf.TensorArray(tf.float64, blocks, infer_shape=False)),
            parallel_iterations=1,
        )
        return tf.reshape(losses.concat(), [self._samples])


class _MeanOverRows(keras.metrics.Metric):
    """The mean of a vector over batches, each with its number of rows as its weight, in float64."""

    def __init__(self, size: int):
        super().__init__(name="losses")
        # One variable: where data end, an addition that does not depend on them is still made.
        self._sums = self.add_variable((size + 1,), "zeros", dtype="float64", name="sums")

    def update_state(self, values: tf.Tensor, rows: tf.Tensor) -> None:
        """Adds one batch's vector; a replica without rows has no mean loss, and adds nothing."""
        terms = tf.concat([values, tf.ones([1], tf.float64)], 0)
        self._sums.assign_add(tf.math.multiply_no_nan(terms, tf.cast(rows, tf.float64)))

    @property
    def rows(self) -> tf.Tensor:
        """The number of rows so far."""
        return tf.convert_to_tensor(native(self._sums))[-1]

    def result(self) -> tf.Tensor:
        """Returns the mean; NaN without rows."""
        return tf.convert_to_tensor(native(self._sums))[:-1] / self.rows


def _loss_on(model: keras.Model, batch: Any) -> tuple[Callable[[Weights], tf.Tensor], tf.Tensor]:
    """Returns f on one batch as a function of the trainable weights, and the batch's rows."""
    data = keras.utils.unpack_x_y_sample_weight(batch)

    def loss_at(weights: Weights) -> tf.Tensor:
        mapping = list(zip(model.trainable_variables, weights, strict=True))
        loss, _ = loss_of_model(model, mapping, data, training=False)
        return tf.cast(tf.reshape(whole(loss), []), tf.float64)

    return loss_at, rows_of(data[0])


def _check_model(model: Any) -> None:
    if not isinstance(model, keras.Model):
        raise TypeError(f"`model` must be a `keras.Model`. Received: model={model!r}")
    if not model.compiled:
        raise ValueError(
            f"`model` must be compiled: its loss is what is measured. Received: model={model!r}"
        )
    if not model.trainable_variables:
        raise ValueError(
            "`model` must be built and have trainable weights: call it on a batch first. "
            f"Received: model={model!r}"
        )
