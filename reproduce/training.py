"""Trains one case with one seed through stock `compile` and `fit` and measures its curve."""

import math
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from reproduce import methods, networks
from reproduce.data import Mnist
from reproduce.datasets import gathered
from reproduce.protocols import Case, GradientDescent, Training
from reproduce.runner import Outcome, Report
from reproduce.sampling import held_out_subset, minibatches, minibatches_with_replacement
from reproduce.timing import Turn


def train(
    case: Case, seed: int, data: Mnist, report: Report, subspace: str | bool = "auto"
) -> Outcome:
    """Trains a case; each minibatch is one weight update.

    Initial weights, minibatch order and test images depend on the seed alone, so that every
    method of one seed shares them, and nothing depends on what ran before in this process. SGD's
    updates that come first, if any, are then the same for every method too.

    Args:
        case: Method and training set-up.
        seed: The run's seed.
        data: MNIST, or arrays of its shapes.
        report: Called after every weight update.
        subspace: "auto" or False, the optimizers' own argument.

    Returns:
        The result (status, curve of accuracy and training loss), and what lies beside it: timings,
        and the accuracy on other test images at the curve's points. JSON types.
    """
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    setup = case.training
    model = networks.build(setup.network, setup.initialization, seed, setup.activation)
    curve = Curve(setup, seed, data, report)
    updates = _updates(setup, seed, data)
    if setup.sgd_updates:
        sgd = GradientDescent(setup.sgd_learning_rate)
        _fit(model, methods.optimizer(sgd, seed), updates.take(setup.sgd_updates), curve)
    if not curve.diverged:
        own = methods.optimizer(case.method, seed, subspace)
        _fit(model, own, updates.skip(setup.sgd_updates), curve)
    return curve.result(), curve.timings()


def _fit(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    updates: tf.data.Dataset,
    curve: "Curve",
) -> None:
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    try:
        model.fit(updates, shuffle=False, verbose=0, callbacks=[curve])
    except tf.errors.InvalidArgumentError as error:
        cause = methods.failure(optimizer)
        if cause is None or cause not in error.message:
            raise
        curve.break_off()


class Clock(keras.callbacks.Callback):
    """Times the weight updates of a `fit`, each until its loss is known."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self._started = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Starts the clock of one weight update."""
        self._started = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stops it, then raises if the update was not valid: that look is not timed."""
        float(logs["loss"])
        seconds = time.perf_counter() - self._started
        methods.raise_failure(self.model.optimizer)
        self.seconds.append(seconds)


class Curve(Clock):
    """Measures held-out accuracy, training loss and diagnostics at the protocol's updates.

    The training loss is the mean over the minibatches since the previous measurement, each taken
    before its weight update; diagnostics are those of the last one. A run whose loss, logits or
    estimate cease to be finite stops there and is diverged from that update on.

    Args:
        setup: Says when to measure, and on how many images.
        seed: Draws the test images.
        data: Where they are drawn from.
        report: Called after every weight update.
    """

    def __init__(self, setup: Training, seed: int, data: Mnist, report: Report) -> None:
        super().__init__()
        self._setup, self._seed, self._report = setup, seed, report
        self._points = frozenset(setup.evaluations)
        self._images = pixels(setup, data)(np.asarray(data.test_images))
        self._labels = np.asarray(data.test_labels)
        self._curve: dict[str, list[Any]] = {"update": [], "accuracy": [], "loss": []}
        self._diagnostics: dict[str, list[float]] = {}
        self._elsewhere: dict[str, list[float | None]] = {"all": [], "per_evaluation": []}
        self._diverged_at: int | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Measures the initial weights."""
        if not self.seconds:
            self._measure(0, None)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stops the clock and measures where the protocol asks for it."""
        super().on_train_batch_end(batch, logs)
        loss, update = float(logs["loss"]), len(self.seconds)
        if not math.isfinite(loss):
            self._diverge(update)
        elif update in self._points:
            self._measure(update, loss)
            self.model.reset_metrics()
        self._report(update)

    @property
    def diverged(self) -> bool:
        """Whether the run has ended before its time."""
        return self._diverged_at is not None

    def break_off(self) -> None:
        """Ends a run in whose coming update the optimizer found nothing finite."""
        self._diverged_at = len(self.seconds) + 1

    def result(self) -> dict[str, Any]:
        """Returns what the record keeps; `diverged_at` is None for a run that went through.

        The curve begins before the first update, the diagnostics at the first measurement after
        an update of the method's own.
        """
        return {
            "status": "diverged" if self.diverged else "completed",
            "diverged_at": self._diverged_at,
            "parameters": int(self.model.count_params()),
            "curve": self._curve,
            "diagnostics": self._diagnostics,
        }

    def timings(self) -> dict[str, Any]:
        """Returns seconds per weight update by the method; the first, with its compilation, apart.

        SGD's updates before the method's own are not timed. Beside them, `held_out` is the
        accuracy on all test images, at the table's columns, and on as many as the protocol's drawn
        at each evaluation (R10): results, but newer than the first records, whose numbers they
        leave as they are.
        """
        own = Turn(self.seconds[self._setup.sgd_updates :])
        return {
            "updates": len(own.seconds),
            "first_update_seconds": own.first if own.seconds else None,
            "median_update_seconds": own.median if len(own.seconds) > 1 else None,
            "total_update_seconds": sum(own.seconds),
            "held_out": self._elsewhere,
        }

    def _measure(self, update: int, loss: float | None) -> None:
        anew = self._accuracy(self._drawn(update))
        is_anew = self._setup.test_draw == "per_evaluation"
        accuracy = anew if is_anew else self._accuracy(self._drawn(0))
        if math.isnan(accuracy):
            self._diverge(update)
            return
        self._elsewhere["per_evaluation"].append(anew)
        # All of them take as long as some weight updates: only where tables show it.
        is_told = update in self._setup.columns
        self._elsewhere["all"].append(self._accuracy() if is_told else None)
        for name, value in (("update", update), ("accuracy", accuracy), ("loss", loss)):
            self._curve[name].append(value)
        reported = methods.diagnostics(self.model.optimizer) if update else {}
        for name, value in reported.items():
            self._diagnostics.setdefault(name, []).append(value)

    def _accuracy(self, drawn: NDArray[Any] | None = None) -> float:
        """On the test images drawn, or on all; NaN where the logits are not finite."""
        images = self._images if drawn is None else tf.gather(self._images, drawn)
        labels = self._labels if drawn is None else self._labels[drawn]
        logits = np.asarray(self.model(images, training=False))
        if not np.isfinite(logits).all():
            return math.nan
        return float((logits.argmax(axis=1) == labels).mean())

    def _drawn(self, position: int) -> NDArray[Any]:
        return held_out_subset(self._seed, len(self._labels), self._setup.test_images, position)

    def _diverge(self, update: int) -> None:
        self._diverged_at = update
        self.model.stop_training = True


def pixels(setup: Training, data: Mnist) -> Callable[[Any], tf.Tensor]:
    """Returns what takes images (n, 28, 28) or (n, 784), uint8, to inputs (n, 784), float32."""

    def unit(images: Any) -> tf.Tensor:
        return tf.cast(tf.reshape(images, (-1, networks.PIXELS)), tf.float32) / 255.0

    if setup.pixels == "unit":
        return unit
    counts = np.bincount(np.asarray(data.train_images).ravel(), minlength=256)
    shades = np.arange(256) / 255.0
    mean = np.average(shades, weights=counts)
    deviation = np.average((shades - mean) ** 2, weights=counts) ** 0.5
    return lambda images: (unit(images) - mean) / deviation


def _updates(setup: Training, seed: int, data: Mnist) -> tf.data.Dataset:
    draw = minibatches if setup.sampling == "epochs" else minibatches_with_replacement
    order = draw(seed, len(data.train_labels), setup.batch_size, setup.total_updates)
    labels, scaled = np.asarray(data.train_labels, np.int64), pixels(setup, data)
    updates = gathered((np.asarray(data.train_images), labels), order)
    return updates.map(lambda images, labels: (scaled(images), labels))
