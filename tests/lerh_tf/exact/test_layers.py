"""The table of layers in `docs/speed.md` says what an update does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from lerh_tf import ImportanceSampling, LocalEntropy, TrainStep

PAGE = Path(__file__).parents[3] / "docs" / "speed.md"
HEADER = "| layer | noise in fewer dimensions | all samples at once | compiled |"


class ByTrainStep(TrainStep, keras.Model):
    """A model that may be run anew at other weights."""


# Has weights, so that what stands behind it does not meet the inputs themselves.
SCALE = layers.LayerNormalization
# By the table's name: the input's shape, the layers under test.
LAYERS: dict[str, tuple[tuple[int, ...], Callable[[], list[Any]]]] = {
    "Dense that meets inputs": ((9,), lambda: [layers.Dense(3)]),
    "Dense behind others, large": ((400,), lambda: [SCALE(), layers.Dense(400)]),
    "Dense behind others, small": ((9,), lambda: [SCALE(), layers.Dense(9)]),
    "Embedding": ((2,), lambda: [layers.Embedding(50, 3), layers.Flatten()]),
    "Conv1D": ((9, 2), lambda: [layers.Conv1D(3, 3)]),
    "Conv2D": ((7, 7, 2), lambda: [layers.Conv2D(3, 3)]),
    "Conv3D": ((4, 4, 4, 1), lambda: [layers.Conv3D(2, 2)]),
    "DepthwiseConv2D": ((6, 6, 2), lambda: [layers.DepthwiseConv2D(3)]),
    "SeparableConv2D": ((6, 6, 2), lambda: [layers.SeparableConv2D(3, 3)]),
    "Conv2DTranspose": ((4, 4, 2), lambda: [layers.Conv2DTranspose(3, 2, 2)]),
    "Conv2D, dilated": ((8, 8, 2), lambda: [layers.Conv2D(3, 3, dilation_rate=2)]),
    "Conv2D, groups, by `TrainStep`": ((6, 6, 4), lambda: [layers.Conv2D(4, 3, groups=2)]),
    "MaxPooling2D": ((6, 6, 2), lambda: [layers.Conv2D(2, 1), layers.MaxPooling2D()]),
    "AveragePooling2D": ((6, 6, 2), lambda: [layers.Conv2D(2, 1), layers.AveragePooling2D(2)]),
    "BatchNormalization": ((4,), lambda: [layers.BatchNormalization()]),
    "LayerNormalization": ((4,), lambda: [layers.LayerNormalization()]),
    "Dropout": ((4,), lambda: [SCALE(), layers.Dropout(0.5)]),
    "LSTM, GRU, by `TrainStep`": ((3, 2), lambda: [layers.LSTM(3)]),
}


def row(name: str) -> str:
    shape, make = LAYERS[name]
    keras.utils.set_random_seed(0)
    x = y = keras.Input(shape)
    for layer in make():
        y = layer(y)
    y = layers.Dense(1)(layers.Flatten()(y))
    model = (ByTrainStep if "TrainStep" in name else keras.Model)(x, y)
    sampler = ImportanceSampling(2, estimator="gradients")
    optimizer = LocalEntropy(0.001, sampler, seed=0)
    # Built before, Keras traces the train step once.
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse", jit_compile=False)
    model.train_on_batch(np.ones((2, *shape)), np.ones((2, 1)))
    told = optimizer.diagnostics
    answers = (
        told["sampled_dimensions"] < told["dimensions"],
        told["vectorized"] == 1.0,
        told["compiled"] == 1.0,
    )
    return f"| {name} | {' | '.join('yes' if yes else 'no' for yes in answers)} |"


def table() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(HEADER) + 2
    return lines[start : start + len(LAYERS)]


def test_the_table_lists_these_layers() -> None:
    assert [line.split(" | ")[0].removeprefix("| ") for line in table()] == list(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_the_table_says_what_an_update_does(name: str) -> None:
    assert row(name) in table()
