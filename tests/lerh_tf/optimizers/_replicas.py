"""Trains on two logical CPUs and prints what came of it as JSON; a process of its own."""

import functools
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple
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
    TrainStep,
)
from lerh_tf.loss import compilation
from lerh_tf.optimizers import _replicas

Array = npt.NDArray[Any]
BATCH, UPDATES = 8, 2
MEANS: dict[str, Any] = {"seed": 0, "parallel": "means"}
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgld": lambda **a: LocalEntropy(0.01, SGLD(5), seed=0, **a),
    "importance": lambda **a: LocalEntropy(0.01, ImportanceSampling(20), **MEANS, **a),
    "robbins-monro": lambda **a: HeatRegularization(0.01, RobbinsMonro(2, 2), **MEANS, **a),
    "control-variate": lambda **a: LocalEntropy(
        0.01, ImportanceSampling(5, control_variate=True), **MEANS, **a
    ),
    "gradients": lambda **a: LocalEntropy(
        0.01, ImportanceSampling(5, estimator="gradients"), **MEANS, **a
    ),
}


def not_compilable(objective: Any) -> bool:
    # No mock, which would keep its arguments, and with them graphs.
    return False


class StepModel(TrainStep, keras.Model):
    pass


class Trained(NamedTuple):
    """Weights of each replica, and the logs of each update."""

    weights: list[list[Array]]
    losses: list[float]


def data() -> tuple[Array, Array]:
    x = np.random.default_rng(0).normal(size=(BATCH, 3)).astype("float32")
    return x, x.sum(1, keepdims=True)


def network(base: type[keras.Model] = keras.Model) -> keras.Model:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    return base(inputs, keras.layers.Dense(1)(keras.layers.Dense(2, "tanh")(inputs)))


def by_fit(
    strategy: tf.distribute.Strategy,
    make: Callable[[], Any],
    base: type[keras.Model] = keras.Model,
    **arguments: Any,
) -> Trained:
    with strategy.scope():
        model = network(base)
        model.compile(make(), "mse", **arguments)
    x, y = data()
    history = model.fit(x, y, batch_size=BATCH, epochs=UPDATES, shuffle=False, verbose=0)
    return Trained(weights_of(strategy, model), history.history["loss"])


def by_loop(
    strategy: tf.distribute.Strategy, make: Callable[[], Any], eagerly: bool = False
) -> Trained:
    with strategy.scope():
        model, optimizer, mse = network(), make(), keras.losses.MeanSquaredError()
        optimizer.build(model.trainable_variables)

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return mse(y, model(x, training=True))

    def update(x: Any, y: Any) -> Any:
        def on_replica(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
            return optimizer.step(loss, model.trainable_variables, x, y)

        return strategy.reduce("SUM", strategy.run(on_replica, args=(x, y)), axis=None)

    batch = [distributed(strategy, values) for values in data()]
    call = update if eagerly else tf.function(update)
    losses = [float(call(*batch)) for _ in range(UPDATES)]
    return Trained(weights_of(strategy, model), losses)


def distributed(strategy: tf.distribute.Strategy, values: Array) -> Any:
    parts = np.split(values, strategy.num_replicas_in_sync)
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def weights_of(strategy: tf.distribute.Strategy, model: keras.Model) -> list[list[Array]]:
    copies = [strategy.experimental_local_results(v.value) for v in model.trainable_variables]
    return [[copy.numpy() for copy in of_replica] for of_replica in zip(*copies, strict=True)]


def by_hand(make: Callable[[], Any]) -> list[Array]:
    """Without a strategy: each part of the minibatch moves x on its own; the mean of both counts.

    Both go on from the first part's chain.
    """
    model = network()
    variables, parts = model.trainable_variables, list(zip(*map(halves, data()), strict=True))
    first, second = make(), make()
    for _ in range(UPDATES):
        x = [v.numpy() for v in variables]
        if second.built:
            for slot, value in zip(second.variables, first.variables, strict=True):
                slot.assign(value)
        moved = []
        for replica, (optimizer, part) in enumerate(zip((first, second), parts, strict=True)):
            for v, value in zip(variables, x, strict=True):
                v.assign(value)
            with mock.patch.object(_replicas.Sharing, "noise_position", position_of(replica)):
                optimizer.step(loss_of(model), variables, *part)
            moved.append([v.numpy() for v in variables])
        for v, *m in zip(variables, *moved, strict=True):
            v.assign(np.mean(m, axis=0))
    return [v.numpy() for v in variables]


def position_of(replica: int) -> Callable[[Any, tf.Tensor], tf.Tensor]:
    return lambda self, update: tf.cast(update, tf.int64) + (replica << 48)


def loss_of(model: keras.Model) -> Callable[..., tf.Tensor]:
    return lambda x, y: tf.reduce_mean((model(x, training=True) - y) ** 2)


def halves(values: Array) -> list[Array]:
    return np.split(values, 2)


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return ""


def distance(actual: list[Array], expected: list[Array]) -> float:
    return max(float(np.abs(a - e).max()) for a, e in zip(actual, expected, strict=True))


def failing_eagerly(strategy: tf.distribute.Strategy) -> dict[str, Any]:
    """What an eager `step` does where each replica's loss is NaN."""
    with strategy.scope():
        model, optimizer = network(), OPTIMIZERS["sgld"]()
        optimizer.build(model.trainable_variables)
    before, (x, y) = weights_of(strategy, model), data()
    step = functools.partial(optimizer.step, loss_of(model), model.trainable_variables)
    try:
        strategy.run(step, args=(x, np.full_like(y, np.nan)))
    except tf.errors.InvalidArgumentError as error:
        told = str(error)
    stays = all(map(equal, weights_of(strategy, model), before))
    strategy.run(step, args=(x, y))
    return {
        "told": told,
        "stays": stays,
        "goes on": not equal(weights_of(strategy, model)[0], before[0]),
    }


class BadSecond(keras.optimizers.schedules.LearningRateSchedule):
    """A tau that is wrong at the second update."""

    def __init__(self, bad: float):
        self._bad = bad

    def __call__(self, step: Any) -> tf.Tensor:
        return tf.where(tf.equal(step, 1), self._bad, 0.01)


def second_update_stays(strategy: tf.distribute.Strategy, bad: float) -> bool:
    """Whether an update with a bad tau leaves the weights as they were, decay and all."""
    with strategy.scope():
        model = network()
        sampler = ImportanceSampling(5)
        optimizer = LocalEntropy(
            BadSecond(bad), sampler, seed=0, on_failure="warn", weight_decay=0.5, use_ema=True
        )
        model.compile(optimizer, "mse")
    states = [weights_of(strategy, model)]
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            model.fit(*data(), batch_size=BATCH, verbose=0)
        states.append(weights_of(strategy, model))
    start, first, second = states
    return not equal(first[0], start[0]) and all(map(equal, second, first))


def equal(actual: list[Array], expected: list[Array]) -> bool:
    return distance(actual, expected) == 0.0


def failing(strategy: tf.distribute.Strategy) -> dict[str, Any]:
    """One replica's part of the minibatch has NaN labels: none moves."""
    with strategy.scope():
        model = network()
        model.compile(OPTIMIZERS["sgld"](on_failure="warn"), "mse")
    x, y = data()
    y[BATCH // 2 :] = np.nan
    before = weights_of(strategy, model)[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
        warned = [str(w.message) for w in caught if w.category is RuntimeWarning]
    after = weights_of(strategy, model)
    chain = [v.numpy() for v in model.optimizer.variables if "chain" in v.name]
    return {
        "chain": max(float(np.abs(values).max()) for values in chain),
        "finite": all(bool(np.isfinite(w).all()) for w in after[0]),
        "moved": distance(after[0], before),
        "equal": distance(after[1], after[0]) == 0.0,
        "warned": warned,
    }


def one_device(make: Callable[[], Any], none: tf.distribute.Strategy) -> dict[str, float]:
    """How far strategies of one device are from none, by the way to train."""
    strategies = {
        "OneDeviceStrategy": tf.distribute.OneDeviceStrategy("CPU:0"),
        "MirroredStrategy": tf.distribute.MirroredStrategy(["CPU:0"]),
        "CentralStorageStrategy": tf.distribute.experimental.CentralStorageStrategy(["CPU:0"]),
    }
    ways: dict[str, Callable[[tf.distribute.Strategy], Trained]] = {
        "fit": lambda s: by_fit(s, make),
        "eager loop": lambda s: by_loop(s, make, eagerly=s is not none),
        "eager train step": lambda s: by_fit(s, make, StepModel, run_eagerly=True),
    }
    expected = {way: train(none).weights[0] for way, train in ways.items()}
    return {
        f"{name}, {way}": distance(ways[way](strategy).weights[0], expected[way])
        for name, strategy in strategies.items()
        for way in (ways if name == "MirroredStrategy" else ["fit"])
    }


def not_built(strategy: tf.distribute.Strategy) -> str:
    """What a `step` says that would have to build the optimizer on two replicas, in a graph."""
    with strategy.scope():
        model = network()

    def update(optimizer: Any) -> None:
        strategy.run(optimizer.step, args=(loss_of(model), model.trainable_variables, *data()))

    with strategy.scope():
        optimizer = OPTIMIZERS["importance"]()
    try:
        tf.function(update, autograph=False)(optimizer)
    except ValueError as error:
        return str(error)
    return ""


def main() -> None:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found: dict[str, Any] = {"failing": failing(two), "failing eagerly": failing_eagerly(two)}

    found["bad tau"] = {str(bad): second_update_stays(two, bad) for bad in (np.nan, -0.5)}

    def accumulating_sgd() -> keras.optimizers.SGD:
        return keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)

    def accumulating() -> Any:
        return OPTIMIZERS["importance"](gradient_accumulation_steps=2)

    found["accumulation"] = [
        error_of(functools.partial(by_fit, two, make)) for make in (accumulating_sgd, accumulating)
    ]
    for name, make in OPTIMIZERS.items():
        entries = {"fit": by_fit(two, make)}
        if name == "sgld":
            entries |= {"loop": by_loop(two, make), "eager-loop": by_loop(two, make, eagerly=True)}
        expected = by_hand(make)
        found[name] = {
            "replicas": len(entries["fit"].weights),
            "apart": max(distance(*each.weights) for each in entries.values()),
            "off": {entry: distance(each.weights[0], expected) for entry, each in entries.items()},
            "moved": distance(expected, [v.numpy() for v in network().trainable_variables]),
            "losses": [each.losses for each in entries.values()],
        }
    importance, single = OPTIMIZERS["importance"], tf.distribute.get_strategy()
    found["one"] = one_device(importance, single)
    found["not built"] = not_built(two)
    stock = by_fit(two, importance).weights[0]
    found["train-step"] = {
        eagerly: distance(by_fit(two, importance, StepModel, run_eagerly=eagerly).weights[0], stock)
        for eagerly in (False, True)
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    with mock.patch.object(compilation, "is_compilable", not_compilable):
        main()
