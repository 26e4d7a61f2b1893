"""Trains a classifier by one method and measures it."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from examples.map import data, measures, networks
from examples.map.data import Examples, Mnists, Split
from examples.map.methods import METHODS, SIGN_METHODS, Method
from examples.map.protocol import RATES, Protocol, Task
from examples.map.randomness import integer_seed
from examples.map.search import Settings
from examples.sign_network import zero_one
from lerh_tf import local_entropy
from reproduce.datasets import gathered
from reproduce.sampling import minibatches

Report = Callable[[int], None]
Result = dict[str, Any]

PER_CALL = 50
"""Updates per call of TensorFlow, at most, for all methods alike."""
_VALIDATION_BATCH = 500


def classify(
    task: Task,
    method: str,
    settings: Settings,
    updates: int,
    seed: int,
    protocol: Protocol,
    mnist: Mnists,
    is_final: bool,
    report: Report,
) -> Result:
    """Trains once, keeps the weights of the best validation, and measures them.

    Args:
        task: What is trained.
        method: Its name.
        settings: Its hyper-parameters.
        updates: Weight updates, a multiple of the checkpoints.
        seed: Of data, weights, minibatches and noise.
        protocol: The rest.
        mnist: Loads MNIST.
        is_final: Whether the test set is read, once, and flatness measured.
        report: Called with the number of checkpoints passed.

    Returns:
        The score on the validation set and, with the right labels, `clean_validation`; of a final
        run also the score on the test set, calibration and flatness.
    """
    split = split_of(task, seed, protocol, mnist)
    way = method_of(task, method)
    model = build(task, method, seed, way.scheduled(settings, updates, _noise_seed(seed)))
    fitted = fit(model, task, split.training, split.validation, updates, seed, protocol, report)
    result = fitted | _validated(model, split)
    if is_final:
        result |= _tested(model, data.test_set(task.data, mnist))
        result |= _flatness(model, task, split.training, seed, protocol)
    return result


def over_rates(
    task: Task,
    method: str,
    settings: Settings,
    updates: int,
    seed: int,
    protocol: Protocol,
    mnist: Mnists,
    is_final: bool,
    report: Report,
) -> Result:
    """Trains once at each constant learning rate of `RATES`, a share of the updates each.

    Returns:
        As `classify`, means over the rates, and what each gave; without flatness.
    """
    split, way = split_of(task, seed, protocol, mnist), method_of(task, method)
    model = build(task, method, seed, way.optimizer(settings, RATES[0], _noise_seed(seed)))
    optimizer = model.optimizer
    optimizer.build(model.trainable_variables)
    state = [(v, v.numpy()) for v in (*model.variables, *optimizer.variables)]
    rate_of_first = float(optimizer.learning_rate)
    found: list[Result] = []
    statuses: set[str] = set()
    test = data.test_set(task.data, mnist) if is_final else None
    for position, rate in enumerate(RATES):
        for variable, value in state:
            variable.assign(value)
        optimizer.learning_rate = rate_of_first * rate / RATES[0]
        each = protocol.checkpoints * max(1, updates // len(RATES) // protocol.checkpoints)
        fitted = fit(
            model, task, split.training, split.validation, each, seed, protocol, lambda _: None
        )
        statuses.add(fitted["status"])
        found.append(_validated(model, split) | ({} if test is None else _tested(model, test)))
        report(position + 1)
    names = list(found[0])
    means = {name: float(np.mean([one[name] for one in found])) for name in names}
    reached = "completed" if statuses == {"completed"} else "diverged at some rates"
    return {**means, "status": reached, "by_rate": {n: [one[n] for one in found] for n in names}}


def method_of(task: Task, method: str) -> Method:
    """Returns a task's method with gradients, or the one that trains signs by `fit`."""
    return (SIGN_METHODS if task.kind == "sign" else METHODS)[method]


def build(task: Task, method: str, seed: int, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """Returns the task's network, compiled."""
    through = method == "straight_through"
    model = networks.build(task.network, data.FEATURES[task.data], seed, through)
    is_zero_one = task.kind == "sign" and not through
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    loss = zero_one if is_zero_one else entropy
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    return model


def fit(
    model: keras.Model,
    task: Task,
    training: Examples,
    validation: Examples,
    updates: int,
    seed: int,
    protocol: Protocol,
    report: Report,
) -> Result:
    """Trains a compiled model and leaves it with its best weights.

    Returns:
        The `validations`, and the `status`: diverged if the last weights were not finite at any
        checkpoint, whichever are kept.
    """
    each = updates // protocol.checkpoints
    model.steps_per_execution = math.gcd(each, PER_CALL)
    order = minibatches(seed, len(training[0]), task.batch, updates)
    best = keras.callbacks.EarlyStopping(
        monitor="val_accuracy",
        mode="max",
        patience=protocol.checkpoints,
        restore_best_weights=True,
    )
    watched = _Watched(report)
    callbacks: list[keras.callbacks.Callback] = [watched, best]
    if model.optimizer.use_ema:
        callbacks.insert(0, keras.callbacks.SwapEMAWeights(swap_on_epoch=True))
    history = model.fit(
        gathered(training, order),
        epochs=protocol.checkpoints,
        steps_per_epoch=each,
        # The order is the dataset's.
        shuffle=False,
        validation_data=_in_batches(validation),
        verbose=0,
        callbacks=callbacks,
    )
    validations = [float(value) for value in history.history["val_accuracy"]]
    return {"status": status(watched.is_finite), "validations": validations}


def status(is_finite: bool) -> str:
    """Returns a run's status; what counts is whether its weights were finite at all checkpoints."""
    return "completed" if is_finite else "diverged"


class _Watched(keras.callbacks.Callback):
    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report
        self.is_finite = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        weights = self.model.trainable_variables
        self.is_finite &= all(bool(np.isfinite(weight.numpy()).all()) for weight in weights)
        self._report(epoch + 1)


def split_of(task: Task, seed: int, protocol: Protocol, mnist: Mnists) -> Split:
    """Returns a run's training and validation set."""
    return data.split(task.data, mnist, seed, task.training, protocol.validation, task.wrong_labels)


def _noise_seed(seed: int) -> int:
    return integer_seed("noise", seed)


def _logits(model: keras.Model, inputs: Any) -> Any:
    return model.predict(_in_batches(inputs), verbose=0)


def _in_batches(arrays: Any) -> tf.data.Dataset:
    # Of arrays Keras makes a dataset with threads, and TensorFlow's deterministic mode complains.
    return tf.data.Dataset.from_tensor_slices(arrays).batch(_VALIDATION_BATCH)


def _validated(model: keras.Model, split: Split) -> Result:
    inputs, labels = split.validation
    chosen = _logits(model, inputs).argmax(1)
    return {
        "validation": float((chosen == labels).mean()),
        "clean_validation": float((chosen == split.clean_labels).mean()),
    }


def _tested(model: keras.Model, test: Examples) -> Result:
    inputs, labels = test
    found = measures.calibration(_logits(model, inputs), labels)
    return {"test": found.accuracy, "nll": found.nll, "ece": found.ece}


def _flatness(
    model: keras.Model, task: Task, training: Examples, seed: int, protocol: Protocol
) -> Mapping[str, float]:
    """F_tau - f on training examples and, where the loss has one, its Hessian's trace."""
    x, y = (part[: protocol.flatness_examples] for part in training)
    around = local_entropy(
        model,
        _in_batches((x, y)),
        tau=protocol.flatness_tau,
        samples=protocol.flatness_samples,
        seed=_noise_seed(seed),
        verbose=0,
    )
    found = {"gap": around.gap, "gap_error": around.standard_error}
    if task.kind == "classification":
        trace = measures.model_trace(model, x, y, protocol.probes, _noise_seed(seed))
        found |= {"trace": trace.value, "trace_error": trace.standard_error}
    return found
