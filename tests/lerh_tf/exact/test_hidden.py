"""Hidden layers that are not formed: in law the kernels on whole weights."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
)
from lerh_tf.exact import hidden
from lerh_tf.exact.hidden import HiddenLayers, with_hidden_layers
from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.loss.objective import Weights
from lerh_tf.loss.parts import OuterProducts
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.noise import PhiloxNoise
from tests.lerh_tf.kernels.test_reduced_law import Array, distance

REPETITIONS = 6000
# With fixed seeds this is no lottery; a sound law exceeds it in one of 100,000 comparisons.
STANDARD_ERRORS = 4.5
TAU = 0.3

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 2))
Y = RNG.standard_normal(3)
# Three rows see three of the five dimensions of each column of the second, and of the four of the
# third.
ANCHOR = [0.8 * RNG.standard_normal(shape) for shape in ((2, 5), (5, 4), (4, 2), (2,))]
HIDDEN = 2
# The third row repeats the second, and a unit is dead: what a layer sees has fewer dimensions.
REPEATED = X[[0, 1, 1]]


def network(x: Array, weights: Weights) -> tf.Tensor:
    a, b, c, d = weights
    h = tf.tanh(tf.tanh(tf.constant(x) @ a) @ b)
    return 2.0 * tf.reduce_mean((tf.linalg.matvec(tf.tanh(h @ c), d) - Y) ** 2)


def dead_unit(x: Array, weights: Weights) -> tf.Tensor:
    a, b, c, d = weights
    h = tf.tanh((tf.tanh(tf.constant(x) @ a) * [1.0, 0.0, 1.0, 1.0, 1.0]) @ b)
    return 2.0 * tf.reduce_mean((tf.linalg.matvec(tf.tanh(h @ c), d) - Y) ** 2)


CASES: dict[str, Callable[[Weights], tf.Tensor]] = {
    "generic": functools.partial(network, X),
    "repeated rows, dead unit": functools.partial(dead_unit, REPEATED),
}
KERNELS: dict[str, Kernel] = {
    "robbins-monro": RobbinsMonro(2, 2, step_sizes=RobbinsMonroSteps(0.9, 1.0)),
    "gradients": ImportanceSampling(4, estimator="gradients"),
}


@pytest.fixture(autouse=True)
def every_layer_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden, "_PAYS", 1)


def draws(
    kernel: Kernel, is_local: bool, loss: Callable[[Weights], tf.Tensor] = CASES["generic"]
) -> tuple[Array, Array]:
    """Displacements, [REPETITIONS, 40], and the first diagnostic of one update, repeated."""

    @tf.function(jit_compile=True, autograph=False)
    def repeated() -> Any:
        anchor = [tf.constant(w) for w in ANCHOR]
        objective: Any = ReplayedLoss.of_function(loss, anchor)
        if is_local:
            objective = with_hidden_layers(
                objective, [w.shape for w in anchor], kernel.differentiates
            )
            assert isinstance(objective, HiddenLayers)
            assert len(objective._layers) == HIDDEN
        like = objective.noise_like(anchor)

        def once(k: tf.Tensor) -> Any:
            noise = PhiloxNoise(5 if is_local else 6, k, like)
            found: Estimate = kernel(objective, anchor, tf.constant(TAU, tf.float64), noise)
            return found.displacement, found.diagnostics[kernel.diagnostic_names[0]]

        signature = ([tf.float64] * len(anchor), tf.float64)
        return tf.map_fn(once, tf.range(REPETITIONS), fn_output_signature=signature)

    # A concrete function: of many `tf.function`s TensorFlow warns.
    displacement, diagnostic = repeated.get_concrete_function()()
    parts = [d.numpy().reshape(REPETITIONS, -1) for d in displacement]
    return np.concatenate(parts, 1), diagnostic.numpy()


@functools.cache
def plain(kernel: str, case: str) -> tuple[Array, Array]:
    return draws(KERNELS[kernel], False, CASES[case])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_of_gradients_have_the_law_of_the_plain_ones(kernel: str, case: str) -> None:
    found, diagnostic = draws(KERNELS[kernel], True, CASES[case])
    expected, expected_diagnostic = plain(kernel, case)
    assert distance(found, expected) < STANDARD_ERRORS
    assert distance(diagnostic[:, None], expected_diagnostic[:, None]) < STANDARD_ERRORS


def test_control_variate_has_the_mean_of_the_plain_one_and_less_noise() -> None:
    kernel = ImportanceSampling(4, control_variate=True)
    (found, size), (expected, expected_size) = draws(kernel, True), draws(kernel, False)
    error = np.sqrt((found.var(0) + expected.var(0)) / REPETITIONS)
    assert np.max(np.abs(found.mean(0) - expected.mean(0)) / error) < STANDARD_ERRORS
    assert distance(size[:, None], expected_size[:, None]) < STANDARD_ERRORS
    # The complement is not drawn: of five dimensions of a column two are not seen.
    layer = slice(10, 30)
    assert found[:, layer].var(0).sum() < 0.8 * expected[:, layer].var(0).sum()


def nothing_unseen(self: Any, delta: tf.Tensor) -> tf.Tensor:
    z = tf.matmul(delta, self._a, transpose_b=True) @ self._basis
    return hidden._shared_product(delta, tf.transpose(self._centre)) + self._deviation * z


def everything_unseen(self: Any, delta: tf.Tensor) -> tf.Tensor:
    own = hidden._roots(delta)[0] @ self._v
    return nothing_unseen(self, delta) + self._deviation * own


def other_noise(self: Any, delta: tf.Tensor) -> tf.Tensor:
    self._a = -self._a
    return keeping(backwards)(self, delta)


backwards = hidden._PerturbedProduct.backwards


def keeping(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """A wrong gradient at the rows beside the right one at the layer's weight."""

    def backward(self: Any, delta: tf.Tensor) -> tf.Tensor:
        self.gradient = OuterProducts(self.seen.left, delta)
        return function(self, delta)

    return backward


@pytest.mark.parametrize("wrong", [nothing_unseen, everything_unseen, other_noise])
def test_wrong_gradients_have_another_law(
    wrong: Callable[..., tf.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden._PerturbedProduct, "backwards", keeping(wrong))
    found, _ = draws(KERNELS["robbins-monro"], True)
    assert distance(found, plain("robbins-monro", "generic")[0]) > 6.0


@pytest.mark.parametrize("rows", [np.ones((3, 5)), RNG.standard_normal((3, 5)), np.zeros((3, 5))])
def test_root_and_its_inverse(rows: Array) -> None:
    gram = rows @ rows.T
    root, inverse = (r[0].numpy() for r in hidden._roots(tf.constant(rows[None])))
    np.testing.assert_allclose(root @ root, gram, atol=1e-8)
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    basis = inverse @ rows
    np.testing.assert_allclose(root @ basis, rows, atol=1e-7)


def test_rows_that_are_not_finite_make_the_sample_so() -> None:
    rows = np.ones((2, 3, 4))
    rows[1, 2, 3] = np.inf
    root, _ = hidden._roots(tf.constant(rows))
    assert np.isfinite(root[0]).all()
    assert np.isnan(root[1]).all()


def trained(optimizer: Any, jit_compile: bool) -> Any:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(9, "relu"), layers.Dense(8, "relu"), layers.Dense(2)]
    )
    model.compile(optimizer, "mse", jit_compile=jit_compile)
    x, y = np.random.default_rng(0).random((2, 12, 6)).astype("float32")
    # A ragged batch: the number of rows is then not known as the step is traced.
    model.fit(x, y[:, :2], batch_size=5, shuffle=False, epochs=2, verbose=0)
    return model.get_weights()


@pytest.mark.parametrize("kernel", ["gradients", "robbins-monro", "control-variate"])
def test_training_compiled_or_not(kernel: str) -> None:
    def make(inner_jit_compile: str | bool) -> Any:
        settings: Any = {"seed": 0, "inner_jit_compile": inner_jit_compile}
        if kernel == "robbins-monro":
            return HeatRegularization(0.1, RobbinsMonro(2, 3), **settings)
        sampler = (
            ImportanceSampling(6, control_variate=True)
            if kernel == "control-variate"
            else ImportanceSampling(6, estimator="gradients")
        )
        return LocalEntropy(0.1, sampler, **settings)

    inner, none = make("auto"), make(False)
    found = [trained(inner, False), trained(none, False)]
    # One is enough to see that the whole train step compiles.
    found += [trained(make("auto"), True)] if kernel == "robbins-monro" else []
    assert (inner.diagnostics["compiled"], none.diagnostics["compiled"]) == (1.0, 0.0)
    assert inner.diagnostics["sampled_dimensions"] < 160
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "is_local"),
    [
        (RobbinsMonro(), True),
        (ImportanceSampling(control_variate=True), True),
        (ImportanceSampling(estimator="gradients"), True),
        (ImportanceSampling(), False),
        (SGLD(), False),
    ],
)
def test_which_kernels_can(kernel: Kernel, is_local: bool) -> None:
    assert kernel.draws_locally is is_local
