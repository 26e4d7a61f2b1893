"""Trains on logical CPUs that share each weight update, and prints what came of it as JSON."""

import json
import sys
from collections.abc import Callable
from typing import Any, TypeAlias
from unittest import mock

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LocalEntropy,
    RobbinsMonro,
    whole_batches,
)
from lerh_tf.loss import compilation
from lerh_tf.optimizers import _replicas
from tests.lerh_tf.optimizers._replicas import not_compilable, position_of

Array = npt.NDArray[Any]
Strategy: TypeAlias = tf.distribute.Strategy
Make = Callable[..., Any]
ROWS, WIDTH, UPDATES = 12, 20, 10

MAKE: dict[str, Make] = {
    # Two blocks' worth of samples, and one that replicas divide.
    "importance": lambda **a: LocalEntropy(0.01, ImportanceSampling(1100), seed=0, **a),
    "control variate": lambda **a: LocalEntropy(
        0.01, ImportanceSampling(7, control_variate=True), seed=0, **a
    ),
    "gradients": lambda **a: LocalEntropy(
        0.01, ImportanceSampling(7, estimator="gradients"), seed=0, **a
    ),
    "robbins-monro": lambda **a: HeatRegularization(
        0.01, RobbinsMonro(5, 5, tolerance=0.5), seed=0, **a
    ),
}


def chain(samples: int, **arguments: Any) -> Any:
    return LocalEntropy(0.01, SGLD(samples), seed=0, **arguments)


def data(rows: int = ROWS) -> tuple[Array, Array]:
    x = np.random.default_rng(0).normal(size=(rows, WIDTH)).astype("float32")
    return x, x[:, :3].sum(1, keepdims=True)


def network() -> keras.Model:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((WIDTH,))
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dense(3, "tanh")(inputs)))


def choosing() -> keras.Model:
    """Indices pick rows of an embedding; the inputs are the first three columns, as such."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((WIDTH,))
    indices = keras.ops.cast(keras.ops.abs(inputs[:, :3]) * 10.0, "int32")
    rows = keras.layers.Embedding(90, 2)(indices)
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(rows)))


def batches(samples: str, strategy: Strategy) -> tuple[Any, int]:
    """The whole of the data as one batch, and how many make an epoch."""
    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(ROWS)
    return (whole_batches(dataset, strategy) if samples == "samples" else dataset), 1


def by_fit(
    strategy: Strategy,
    make: Make,
    parallel: str = "auto",
    updates: int = UPDATES,
    net: Callable[[], keras.Model] = network,
) -> keras.Model:
    with strategy.scope():
        model = net()
        model.compile(make(parallel=parallel), "mse")
        model.optimizer.build(model.trainable_variables)
    return go_on(strategy, model, updates)


def go_on(strategy: Strategy, model: keras.Model, updates: int, **arguments: Any) -> keras.Model:
    x, steps = batches(model.optimizer.parallel, strategy)
    model.fit(x, steps_per_epoch=steps, epochs=updates, shuffle=False, verbose=0, **arguments)
    return model


def values(strategy: Strategy, model: keras.Model) -> list[Array]:
    """The weights of each replica, flattened."""
    copies = [strategy.experimental_local_results(v.value) for v in model.trainable_variables]
    return [
        np.concatenate([c.numpy().ravel() for c in of_replica])
        for of_replica in zip(*copies, strict=True)
    ]


def weights(model: keras.Model) -> Array:
    return np.concatenate([v.numpy().ravel() for v in model.trainable_variables])


def relative(actual: Array, expected: Array, start: Array) -> float:
    """|actual - expected| over how far the expected ones moved."""
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected - start))


def compared(strategy: Strategy, model: keras.Model, expected: keras.Model) -> dict[str, Any]:
    replicas = values(strategy, model)
    found, known = model.optimizer.diagnostics, expected.optimizer.diagnostics
    return {
        "off": relative(replicas[0], weights(expected), weights(network())),
        "apart": max(float(np.abs(each - replicas[0]).max()) for each in replicas),
        "diagnostics": {
            name: (found[name] - known[name]) / max(abs(known[name]), 1e-30)
            for name in known
            if known[name] != found[name]
        },
    }


def shared(strategies: dict[int, Strategy], none: Strategy) -> dict[str, Any]:
    """How far replicas that share updates are from one process, by kernel, split and count."""
    counts: dict[str, dict[str, tuple[int, ...]]] = {
        "importance": {"samples": (2, 3, 4), "batch": (2,)},
        "control variate": {"samples": (2,), "batch": (2,)},
        "gradients": {"samples": (2,), "batch": (3,)},
        "robbins-monro": {"samples": (2,), "batch": (2,)},
    }
    found = {}
    for name, splits in counts.items():
        expected = by_fit(none, MAKE[name])
        for parallel, each in splits.items():
            for count in each:
                model = by_fit(strategies[count], MAKE[name], parallel)
                case = f"{name}, {parallel}, {count}"
                found[case] = compared(strategies[count], model, expected)
    return found


def wrong(two: Strategy, none: Strategy) -> dict[str, float]:
    """How far wrong variants of a shared update are from one process."""
    make = MAKE["importance"]
    expected, start = weights(by_fit(none, make, updates=1)), weights(network())

    def shifted(self: Any, update: tf.Tensor) -> tf.Tensor:
        return tf.cast(update, tf.int64) + tf.cast(self.replicas.position, tf.int64)

    with mock.patch.object(_replicas.Sharing, "noise_position", shifted):
        noise = {
            f"noise shifted by replica, {parallel}": by_fit(two, make, parallel, updates=1)
            for parallel in ("samples", "batch")
        }
    models = {**noise, "local means averaged": by_fit(two, make, "means", updates=1)}
    return {name: relative(weights(each), expected, start) for name, each in models.items()}


def chains(two: Strategy, none: Strategy) -> dict[str, Any]:
    """Two chains of half of the states each, whose means are averaged, on replicas and by hand."""
    model, expected = by_fit(two, lambda **a: chain(10, **a), "samples", updates=3), network()
    parts = [by_fit(none, lambda **a: chain(5, **a), updates=0) for _ in range(2)]
    for _ in range(3):
        x = [v.numpy() for v in expected.trainable_variables]
        for replica, part in enumerate(parts):
            part.set_weights(x)
            with mock.patch.object(_replicas.Sharing, "noise_position", position_of(replica)):
                go_on(none, part, 1)
        means = [np.mean(m, axis=0) for m in zip(*(p.get_weights() for p in parts), strict=True)]
        expected.set_weights(means)
    (position,) = [v for v in model.optimizer.variables if "kernel_chain" in v.path][:1]
    copies = [c.numpy() for c in two.experimental_local_results(position.value)]
    return {
        "off": relative(weights(model), weights(expected), weights(network())),
        "apart": float(np.abs(copies[1] - copies[0]).max()),
        "error": model.optimizer.diagnostics["standard_error"]
        / np.sqrt(np.mean([p.optimizer.diagnostics["standard_error"] ** 2 for p in parts])),
    }


def by_step(
    strategy: Strategy, make: Make, parts: list[slice], parallel: str, eagerly: bool = False
) -> Array:
    """Two updates of a loop of one's own, each replica with its rows."""
    with strategy.scope():
        model, mse = network(), keras.losses.MeanSquaredError()
        optimizer = make(parallel=parallel)
        optimizer.build(model.trainable_variables)

    def each(values: Array) -> Any:
        return strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(values[parts[context.replica_id_in_sync_group]])
        )

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return mse(y, model(x, training=True))

    def update(x: Any, y: Any) -> None:
        strategy.run(lambda x, y: optimizer.step(loss, model.trainable_variables, x, y), (x, y))

    call = update if eagerly else tf.function(update, autograph=False)
    for _ in range(2):
        call(*map(each, data(parts[-1].stop)))
    return weights(model)


def loops(two: Strategy) -> dict[str, float]:
    """Unequal parts and eager calls, beside one process whose loss is the mean of the parts'.

    The rows of all span the inputs or do not; by one part's number one could take either for so.
    """
    found = {}
    for name, bounds in {"graph": (4, 12), "eager": (4, 12), "spanning": (8, 24)}.items():
        parts = [slice(0, bounds[0]), slice(*bounds)]
        expected = alone(parts)
        actual = by_step(two, MAKE["gradients"], parts, "batch", eagerly=name == "eager")
        found[name] = relative(actual, expected, weights(network()))
    halves, same = [slice(0, 6), slice(6, ROWS)], [slice(0, ROWS)] * 2
    for name, kernel, parts, parallel in (
        ("eager samples", "gradients", same, "samples"),
        ("eager moves", "robbins-monro", halves, "batch"),
    ):
        actual = by_step(two, MAKE[kernel], parts, parallel, eagerly=True)
        found[name] = relative(actual, alone(parts, kernel), weights(network()))
    return found


def alone(parts: list[slice], kernel: str = "gradients") -> Array:
    """Two updates of one process."""
    model, optimizer = network(), MAKE[kernel]()

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        squares = (model(x, training=True) - y) ** 2
        return tf.add_n([tf.reduce_mean(squares[part]) for part in parts]) / 2.0

    for _ in range(2):
        optimizer.step(loss, model.trainable_variables, *data(parts[-1].stop))
    return weights(model)


def large(two: Strategy, none: Strategy) -> float:
    """How far parts are from the whole where a forward pass limits the blocks, and weights' part in
    it, with a regularizer of them, is there once."""

    def trained(strategy: Strategy) -> Array:
        draw = np.random.default_rng(1)
        x, y = draw.normal(size=(200, WIDTH)), draw.normal(size=(200, 1))
        with strategy.scope():
            keras.utils.set_random_seed(0)
            hidden = keras.layers.Dense(50, "tanh", kernel_regularizer="l2")
            model = keras.Sequential([keras.Input((WIDTH,)), hidden, keras.layers.Dense(1)])
            start.append(weights(model))
            model.compile(MAKE["importance"](), "mse")
        model.fit(x.astype("float32"), y.astype("float32"), 200, shuffle=False, verbose=0)
        return weights(model)

    start: list[Array] = []
    return relative(trained(two), trained(none), start[0])


def hidden(three: Strategy, none: Strategy) -> dict[str, float]:
    """How far samples of a large hidden layer, of what rows see, are from one device's, and how
    many dimensions are drawn."""

    def wide() -> keras.Model:
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(400, "tanh"), keras.layers.Dense(400), keras.layers.Dense(1)]
        return keras.Sequential([keras.Input((WIDTH,)), *layers])

    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(ROWS, drop_remainder=True)
    make = MAKE["robbins-monro"]
    expected = by_fit(none, make, updates=0, net=wide)
    expected.fit(dataset, verbose=0)
    found = by_fit(three, make, "samples", updates=0, net=wide)
    found.fit(whole_batches(dataset, three), steps_per_epoch=1, shuffle=False, verbose=0)
    drawn, dimensions = (
        found.optimizer.diagnostics[name] for name in ("sampled_dimensions", "dimensions")
    )
    off = relative(weights(found), weights(expected), weights(wide()))
    return {"off": off, "drawn": drawn / dimensions}


def main() -> None:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
    )
    none = tf.distribute.get_strategy()
    # TensorFlow's default exchange on CPUs keeps the number of replicas that it first met.
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    strategies = {2: two} | {
        count: tf.distribute.MirroredStrategy(
            [f"CPU:{i}" for i in range(count)], tf.distribute.ReductionToOneDevice()
        )
        for count in (3, 4)
    }
    chosen = by_fit(none, MAKE["importance"], net=choosing, updates=2)
    together = by_fit(two, MAKE["importance"], net=choosing, updates=2)
    found = {
        "shared": shared(strategies, none),
        "wrong": wrong(two, none),
        "chains": chains(two, none),
        "loops": loops(two),
        "embedding": relative(weights(together), weights(chosen), weights(choosing())),
        "large": large(two, none),
        "hidden": hidden(strategies[3], none),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    with mock.patch.object(compilation, "is_compilable", not_compilable):
        main()
