"""Many short trainings in one process: what one leaves behind does not add up."""

import gc
import weakref
from typing import Any

import keras
import psutil
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy
from lerh_tf.optimizers import _doors
from tests.lerh_tf._regression import data

pytestmark = pytest.mark.usefixtures("plain_loops")

WARM_UP, FITS, KEPT = 10, 30, 4
# Numbers in each model beside its weights: 4 MiB that a model which is kept holds on to.
BALLAST = 2**20
BOUND = 1.0 * 2**20
"""Bytes per fit: the allocator's own unrest stays below, a leaked model does not."""


class Weighty(keras.layers.Layer):
    """Adds nothing and holds much."""

    def build(self, shape: Any) -> None:
        self.add_weight(shape=(BALLAST,), trainable=False)

    def call(self, x: Any) -> Any:
        return x


def short_fit() -> keras.Model:
    """Trains a new model with a new optimizer."""
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1), Weighty()])
    optimizer = LocalEntropy(0.01, ImportanceSampling(3), seed=0, subspace=False)
    # With a built optimizer Keras traces its step once, not twice.
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    model.fit(*data(), batch_size=8, verbose=0)
    return model


def growth(fits: int, kept: list[keras.Model] | None = None) -> float:
    """Bytes of resident memory that each fit adds; `kept` gets the models, if given."""
    before = resident()
    for _ in range(fits):
        model = short_fit()
        if kept is not None:
            kept.append(model)
        del model
    return (resident() - before) / fits


def resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def test_memory_levels_off() -> None:
    growth(WARM_UP)
    assert growth(FITS - WARM_UP) < BOUND
    # The measure would see a model that is kept.
    assert growth(KEPT, kept=[]) > 2 * BOUND


def test_graphs_and_optimizers_are_let_go() -> None:
    # Graphs of other tests in this process, which their caches may hold.
    held = set(_doors._earlier)
    model, stepping, weight = short_fit(), LocalEntropy(0.01, SGLD(3)), tf.Variable([1.0])
    stepping.step(lambda: tf.reduce_sum(weight**2), [weight])
    watched = [weakref.ref(each) for each in (model, model.optimizer, stepping)]
    del model, stepping
    keras.backend.clear_session()
    gc.collect()
    assert [each() for each in watched] == [None] * 3
    assert set(_doors._earlier) <= held
