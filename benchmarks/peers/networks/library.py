"""This library on the networks, through Keras's stock train step."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from benchmarks.peers.networks.problem import HEADS, KEY, SHAPES, TOKENS, VOCABULARY, Problem
from benchmarks.peers.problem import CLASSES, PIXELS, Array
from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy, RobbinsMonro

_TAU = 0.01
_KERNELS: Mapping[str, Mapping[str, Any]] = {
    "sgld": {"": SGLD(100)},
    "is": {
        "": ImportanceSampling(100),
        ", control variate": ImportanceSampling(100, control_variate=True),
        ", gradients": ImportanceSampling(100, estimator="gradients"),
    },
    "hr": {"": RobbinsMonro(10, 10)},
}
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    ", subspace=False": {"subspace": False},
    ", inner_jit_compile=False": {"inner_jit_compile": False},
}
"""The defaults, and each of them off."""


def systems(network: str, problem: Problem) -> dict[tuple[str, str], Callable[[], object]]:
    """Returns functions that make a weight update, by algorithm and name."""
    return {
        (algorithm, f"lerh_tf{kind}{setting}"): _update(network, problem, kernel, arguments)[1]
        for algorithm, kernels in _KERNELS.items()
        for kind, kernel in kernels.items()
        for setting, arguments in _SETTINGS.items()
    }


def value_and_gradient(network: str, problem: Problem) -> tuple[float, list[Array]]:
    """Returns f and grad f at the first weights."""
    model, loss = _model(network, problem), keras.losses.SparseCategoricalCrossentropy(True)
    with tf.GradientTape() as tape:
        value = loss(problem.labels, model(problem.x, training=True))
    variables = [v.value for v in model.trainable_variables]
    return float(value), [tf.convert_to_tensor(g).numpy() for g in tape.gradient(value, variables)]


def _update(
    network: str, problem: Problem, kernel: Any, arguments: Mapping[str, Any]
) -> tuple[keras.Model, Callable[[], object]]:
    model = _model(network, problem)
    make = HeatRegularization if isinstance(kernel, RobbinsMonro) else LocalEntropy
    optimizer = make(_TAU, kernel, seed=0, **arguments)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(True), jit_compile=False)
    x, labels = tf.constant(problem.x), tf.constant(problem.labels)
    return model, lambda: model.train_on_batch(x, labels)


def _model(network: str, problem: Problem) -> keras.Model:
    model = _MAKERS[network]()
    assert [v.shape for v in model.trainable_variables] == list(SHAPES[network])
    model.set_weights(problem.weights)
    return model


def _wide() -> keras.Model:
    hidden = [layers.Dense(1024, "relu"), layers.Dense(1024, "relu")]
    return keras.Sequential([keras.Input((PIXELS,)), *hidden, layers.Dense(CLASSES)])


def convolutional() -> keras.Model:
    """Returns the convolutional network, with weights of Keras's."""
    pairs = [
        layer
        for filters in (8, 16)
        for layer in (layers.Conv2D(filters, 3, activation="relu"), layers.MaxPooling2D())
    ]
    return keras.Sequential(
        [keras.Input((28, 28, 1)), *pairs, layers.Flatten(), layers.Dense(CLASSES)]
    )


def _attention() -> keras.Model:
    tokens = keras.Input((TOKENS,), dtype="int64")
    embedded = layers.Embedding(VOCABULARY, 32)(tokens)
    attended = layers.MultiHeadAttention(HEADS, KEY)(embedded, embedded)
    hidden = layers.LayerNormalization()(embedded + attended)
    hidden = layers.Dense(64, "relu")(hidden)
    return keras.Model(tokens, layers.Dense(CLASSES)(layers.GlobalAveragePooling1D()(hidden)))


_MAKERS: Mapping[str, Callable[[], keras.Model]] = {
    "wide": _wide,
    "convolutional": convolutional,
    "attention": _attention,
}
