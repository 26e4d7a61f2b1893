"""Many short trainings in one process: what one leaves behind does not add up."""

import ctypes
import gc
import statistics
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import keras
import psutil
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy
from lerh_tf.optimizers import _capture
from tests.lerh_tf._regression import data

WARM_UP, FITS, KEPT = 6, 18, 4
KERNEL = ImportanceSampling(3)
# Numbers in each model beside its weights: 4 MiB that a model which is kept holds on to.
BALLAST = 2**20
LEVEL = 2**16
"""Bytes per fit that count as none."""
LITTLE = 2**19
"""Bytes per new model: Keras and TensorFlow keep something of each, with SGD too."""


class Weighty(keras.layers.Layer):
    """Adds nothing and holds much."""

    def build(self, shape: Any) -> None:
        self.add_weight(shape=(BALLAST,), trainable=False)

    def call(self, x: Any) -> Any:
        return x


def short_fit(subspace: str | bool = False, kernel: Any = KERNEL) -> keras.Model:
    """Trains a new model with a new optimizer."""
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1), Weighty()])
    optimizer = LocalEntropy(0.01, kernel, seed=0, subspace=subspace)
    # With a built optimizer Keras traces its step once, not twice.
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    model.fit(*data(), batch_size=8, verbose=0)
    return model


def growth(fit: Callable[[], Any], fits: int) -> float:
    """Bytes of resident memory that a fit adds, the median over fits: allocators jump."""
    seen = [resident()]
    for _ in range(fits):
        fit()
        seen.append(resident())
    return statistics.median(after - before for before, after in pairwise(seen))


def resident() -> int:
    gc.collect()
    # What other tests left free in this process would hide a model that is kept.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return int(psutil.Process().memory_info().rss)


@pytest.mark.feature(
    "memory", "many fits of one model", "memory levels off", cases=["kernel0", "kernel1"]
)
@pytest.mark.parametrize("kernel", [KERNEL, SGLD(3)])
def test_memory_levels_off_over_fits_of_one_model(kernel: Any) -> None:
    model = short_fit("auto", kernel)
    assert model.optimizer.diagnostics["compiled"] == 1.0

    def fit() -> None:
        model.fit(*data(), batch_size=8, verbose=0)

    growth(fit, WARM_UP)
    assert growth(fit, FITS - WARM_UP) < LEVEL


@pytest.mark.feature("memory", "many weight updates by `optimizer.step`", "memory levels off")
def test_memory_levels_off_over_eager_steps() -> None:
    (x, y), weight = data(), tf.Variable(tf.ones([3, 1]))
    optimizer = LocalEntropy(0.01, KERNEL, seed=0)

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean((x @ weight - y) ** 2)

    def fit() -> None:
        for _ in range(10):
            optimizer.step(loss, [weight], x, y)

    growth(fit, WARM_UP)
    assert growth(fit, FITS - WARM_UP) < LEVEL
    assert optimizer.diagnostics["compiled"] == 1.0


@pytest.mark.feature(
    "memory",
    "many models in one process",
    "graphs and optimizers are let go; TensorFlow keeps a little of each, as with "
    "SGD, and for good what XLA compiled, as of any `jit_compile=True`",
)
@pytest.mark.usefixtures("plain_loops")
def test_new_models_leave_little() -> None:
    growth(short_fit, WARM_UP)
    # Of few fits even the median jumps.
    ours = growth(short_fit, FITS + WARM_UP)
    assert ours < LITTLE
    # The measure would see a model that is kept.
    kept: list[keras.Model] = []
    assert growth(lambda: kept.append(short_fit()), KEPT) > 2 * LITTLE + ours


@pytest.mark.feature("memory", "many models in one process")
@pytest.mark.usefixtures("plain_loops")
def test_graphs_and_optimizers_are_let_go() -> None:
    # Graphs of other tests in this process, which their caches may hold.
    held = set(_capture._earlier)
    model, stepping, weight = short_fit(), LocalEntropy(0.01, SGLD(3)), tf.Variable([1.0])
    stepping.step(lambda: tf.reduce_sum(weight**2), [weight])
    watched = [weakref.ref(each) for each in (model, model.optimizer, stepping)]
    del model, stepping
    keras.backend.clear_session()
    gc.collect()
    assert [each() for each in watched] == [None] * 3
    assert set(_capture._earlier) <= held
