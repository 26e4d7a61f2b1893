"""Trains by `fit` on logical CPUs that share each weight update, and prints what came of it."""

import gc
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy, whole_batches
from lerh_tf.loss import compilation
from tests.lerh_tf.optimizers._parallel import (
    MAKE,
    ROWS,
    WIDTH,
    Array,
    Make,
    Strategy,
    by_fit,
    chain,
    data,
    go_on,
    network,
    relative,
    weights,
)
from tests.lerh_tf.optimizers._replicas import not_compilable


def network_with(layer: Callable[[], keras.Layer] | None = None) -> keras.Model:
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(3, "tanh"), *([layer()] if layer else []), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((WIDTH,)), *layers])


def exceptions(two: Strategy, none: Strategy) -> dict[str, dict[str, float]]:
    """How far two replicas with parts of a minibatch are from one process with all of it."""
    mean = keras.losses.MeanSquaredError
    cases: dict[str, tuple[Any, int, str]] = {
        "none of them": (None, ROWS, "sum_over_batch_size"),
        "unequal parts": (None, ROWS - 1, "sum_over_batch_size"),
        "weighted mean": (None, ROWS, "mean_with_sample_weight"),
        "normalization": (keras.layers.BatchNormalization, ROWS, "sum_over_batch_size"),
        "dropout": (lambda: keras.layers.Dropout(0.5, seed=0), ROWS, "sum_over_batch_size"),
    }
    optimizers: dict[str, Make] = {"ours": MAKE["gradients"], "sgd": lambda: keras.optimizers.SGD()}

    def trained(strategy: Strategy, make: Make, case: str) -> Array:
        layer, rows, reduction = cases[case]
        x, y = (each[:rows] for each in data())
        with strategy.scope():
            model = network_with(layer)
            model.compile(make(), mean(reduction))
        # Keras adds up the parts of the first batch, so only the last may have unequal ones.
        row_weights = np.arange(1.0, rows + 1)
        model.fit(x, y, 8, sample_weight=row_weights, shuffle=False, verbose=0)
        return weights(model)

    return {
        case: {
            name: relative(
                trained(two, make, case),
                trained(none, make, case),
                weights(network_with(cases[case][0])),
            )
            for name, make in optimizers.items()
        }
        for case in cases
    }


def never_wrong(y: Any, prediction: Any) -> Any:
    return keras.ops.cast(keras.ops.abs(y - prediction) > 1e9, "float32")


def refusals(two: Strategy) -> dict[str, str]:
    """What is said where an update can't be shared as asked for."""

    def told(make: Make, loss: Any = "mse", split: Any = None, **arguments: Any) -> str:
        try:
            with two.scope():
                model = network()
                model.compile(make(), loss, **arguments)
            if split is not None:
                model.fit(*split, batch_size=ROWS, shuffle=False, verbose=0)
            else:
                go_on(two, model, 1)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def samples() -> Any:
        return MAKE["gradients"](parallel="samples")

    def without_coordinates() -> Any:
        return LocalEntropy(0.01, ImportanceSampling(5), parallel="samples", subspace=False)

    def diverging() -> Any:
        # All ten moves shrink, the first four alone grow.
        steps = keras.optimizers.schedules.PiecewiseConstantDecay([4], [6.0, 2.0])
        sampler = SGLD(10, step_sizes=steps, relative_to_tau=True)
        return LocalEntropy(0.01, sampler, parallel="samples")

    total = keras.losses.MeanSquaredError(reduction="sum")
    half = [each[: ROWS // 2] for each in data()]
    twice = [np.concatenate([each, each]) for each in half]
    turned = [np.concatenate([each, each[::-1]]) for each in half]
    on_second = [twice[0], np.concatenate([half[1], np.full_like(half[1], np.nan)])]
    return {
        "same rows": told(without_coordinates, split=twice),
        "rows": told(samples, split=data()),
        "rows in another order": told(without_coordinates, split=turned),
        "rows of one loss": told(without_coordinates, never_wrong, data()),
        "NaN on one": told(without_coordinates, split=on_second),
        "diverging": told(diverging),
        "sum": told(samples, total),
        "compiled": told(MAKE["gradients"], jit_compile=True),
        "short": told(lambda: chain(2, parallel="samples")),
    }


def resumed(two: Strategy, none: Strategy) -> dict[str, float]:
    """Four updates with a change of strategy, or an interruption, in the middle."""
    make, start = MAKE["gradients"], weights(network())
    expected = weights(by_fit(none, make, updates=4))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, before, after in (("one to two", none, two), ("two to one", two, none)):
            first = by_fit(before, make, updates=2)
            tf.train.Checkpoint(model=first, optimizer=first.optimizer).write(f"{folder}/{name}")
            second = by_fit(after, make, updates=0)
            checkpoint = tf.train.Checkpoint(model=second, optimizer=second.optimizer)
            checkpoint.read(f"{folder}/{name}").assert_existing_objects_matched()
            found[name] = relative(weights(go_on(after, second, 2)), expected, start)
        found["backup"] = relative(weights(backed_up(two, make, Path(folder))), expected, start)
    return found


def resumed_chains(two: Strategy) -> dict[str, float]:
    """How far the chains are from the first one's last state, before and after a checkpoint."""

    def positions(model: keras.Model) -> Array:
        (position, *_) = [v for v in model.optimizer.variables if "kernel_chain" in v.path]
        return np.stack([c.numpy() for c in two.experimental_local_results(position.value)])

    def make(**arguments: Any) -> Any:
        return chain(10, **arguments)

    first, second = (by_fit(two, make, "samples", updates) for updates in (2, 0))
    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(model=first, optimizer=first.optimizer).write(f"{folder}/it")
        checkpoint = tf.train.Checkpoint(model=second, optimizer=second.optimizer)
        checkpoint.read(f"{folder}/it").assert_existing_objects_matched()
    left, found = positions(first), positions(second)
    moved = go_on(two, second, 1)
    return {
        "before": float(np.abs(left - left[0]).max()),
        "after": float(np.abs(found - left[0]).max()),
        "later": float(np.abs(np.diff(positions(moved), axis=0)).max()),
    }


class Stop(keras.callbacks.Callback):
    """Breaks a training off in its third epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 2:
            raise KeyboardInterrupt


def backed_up(two: Strategy, make: Make, folder: Path) -> keras.Model:
    backup = [keras.callbacks.BackupAndRestore(str(folder))]
    try:
        go_on(two, by_fit(two, make, updates=0), 4, callbacks=[*backup, Stop()])
    except KeyboardInterrupt:
        return go_on(two, by_fit(two, make, updates=0), 4, callbacks=backup)
    raise AssertionError


def whole(two: Strategy, none: Strategy) -> dict[str, float]:
    """How far a `fit` of whole batches is from one device's, over two epochs."""

    def trained(strategy: Strategy, parallel: str, rows: int, net: Callable[[], Any]) -> Array:
        dataset = tf.data.Dataset.from_tensor_slices(data()).batch(rows)
        model = by_fit(strategy, MAKE["gradients"], parallel, updates=0, net=net)
        batches = whole_batches(dataset, strategy) if parallel == "samples" else dataset.repeat()
        model.fit(batches, steps_per_epoch=len(dataset), epochs=2, shuffle=False, verbose=0)
        return weights(model)

    def dropping() -> keras.Model:
        return network_with(lambda: keras.layers.Dropout(0.5, seed=0))

    cases = {"smaller last batch": (5, network), "dropout": (ROWS, dropping)}
    return {
        name: relative(
            trained(two, "samples", *case), trained(none, "auto", *case), weights(case[1]())
        )
        for name, case in cases.items()
    }


def shuffled(two: Strategy) -> list[float]:
    """The step of each update of a `fit` whose batches are drawn anew in each epoch."""
    dataset = tf.data.Dataset.from_tensor_slices(data()).shuffle(ROWS).batch(5)
    model = by_fit(two, MAKE["gradients"], "samples", updates=0)
    steps: list[float] = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: steps.append(
            model.optimizer.diagnostics["step_norm"]
        )
    )
    batches, per_epoch = whole_batches(dataset, two), len(dataset)
    model.fit(
        batches, steps_per_epoch=per_epoch, epochs=2, shuffle=False, verbose=0, callbacks=[keep]
    )
    return steps


def kept(two: Strategy, parallel: str) -> int:
    """How many graphs are left of a training whose model is gone."""

    def graphs() -> int:
        keras.backend.clear_session()
        gc.collect()
        return sum(isinstance(each, FuncGraph) for each in gc.get_objects())

    # What is kept once is no leak.
    by_fit(two, MAKE["importance"], parallel, updates=1)
    before = graphs()
    by_fit(two, MAKE["importance"], parallel, updates=1)
    return graphs() - before


def pipeline(two: Strategy) -> list[Any]:
    """What the replicas see of five rows in batches of two, over two epochs."""
    dataset = tf.data.Dataset.range(5).shuffle(5, seed=3).batch(2)
    batches = iter(whole_batches(dataset, two))
    seen = [two.experimental_local_results(next(batches)) for _ in range(2 * len(dataset))]
    return [[each.numpy().tolist() for each in batch] for batch in seen]


def main() -> None:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    none = tf.distribute.get_strategy()
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = {
        "exceptions": exceptions(two, none),
        "refusals": refusals(two),
        "resumed": resumed(two, none),
        "resumed chains": resumed_chains(two),
        "whole": whole(two, none),
        "shuffled": shuffled(two),
        "kept": {parallel: kept(two, parallel) for parallel in ("samples", "batch", "means")},
        "pipeline": pipeline(two),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    with mock.patch.object(compilation, "is_compilable", not_compilable):
        main()
