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
from lerh_tf.loss.parts import OuterProducts, square_norms
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
    monkeypatch.setattr(hidden, "_PAYS", -(10**9))


def draws(
    kernel: Kernel,
    is_local: bool,
    loss: Callable[[Weights], tf.Tensor] = CASES["generic"],
    told: int = 0,
) -> tuple[Array, Array]:
    """Displacements, [REPETITIONS, 40], and one of the diagnostics of one update, repeated."""

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
            return found.displacement, found.diagnostics[kernel.diagnostic_names[told]]

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


def test_standard_error_of_the_control_variate() -> None:
    kernel = ImportanceSampling(6, control_variate=True, loss_multiplier=0.4)
    told = kernel.diagnostic_names.index("standard_error")
    found, errors = draws(kernel, True, told=told)
    # Without a sample's own part of the cross term it is 7 % more.
    assert np.mean(errors**2) == pytest.approx(found.var(0).sum(), rel=0.03)


def nothing_unseen(self: Any, delta: tf.Tensor) -> tf.Tensor:
    z = tf.matmul(delta, self._a, transpose_b=True) @ self._basis
    return hidden._shared_product(delta, tf.transpose(self._centre)) + self._deviation * z


def everything_unseen(self: Any, delta: tf.Tensor) -> tf.Tensor:
    own = tf.cast(hidden._roots(delta)[0], delta.dtype) @ self._v
    return nothing_unseen(self, delta) + self._deviation * own


def other_noise(self: Any, delta: tf.Tensor) -> tf.Tensor:
    self._a = -self._a
    return keeping(backwards)(self, delta)


backwards = hidden._PerturbedProduct.backwards


def keeping(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """A wrong gradient at the rows beside the right one at the layer's weight."""

    def backward(self: Any, delta: tf.Tensor) -> tf.Tensor:
        self.delta = delta
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


@pytest.mark.parametrize("kind", ["repeated", "bottleneck"])
def test_float32_where_rows_span_less(kind: str) -> None:
    draw = np.random.default_rng(1).standard_normal
    rows = draw((2, 8, 64))
    if kind == "repeated":
        rows[:, 7] = rows[:, 6]
    else:
        rows = draw((2, 8, 5)) @ draw((2, 5, 64))
    z = draw((2, 8, 32 + 64))
    found = {}
    for dtype in (tf.float32, tf.float64):
        layer, centre = hidden._Layer("", 8, 64, 32), tf.zeros([64, 32], dtype)
        product = hidden._PerturbedProduct(layer, centre, tf.ones([], dtype), tf.cast(z, dtype))
        made = product.forwards(tf.cast(rows, dtype))
        seen = product.seen()
        assert isinstance(seen, OuterProducts)
        whole = tf.matmul(*seen, transpose_a=True)
        norms = tf.reduce_sum(whole**2, [1, 2])
        np.testing.assert_allclose(tf.cast(rows, dtype) @ whole, made, atol=1e-3)
        np.testing.assert_allclose(square_norms(seen), norms, rtol=1e-4)
        found[dtype] = whole
    # Rounded to float32, rows of a bottleneck span a little more.
    if kind == "repeated":
        np.testing.assert_allclose(found[tf.float32], found[tf.float64], atol=1e-3)


def test_samples_that_are_not_finite_weigh_nothing() -> None:
    @tf.function(autograph=False)
    def run() -> Any:
        anchor = [tf.constant(w) for w in ANCHOR]

        def loss(weights: Weights) -> tf.Tensor:
            infinite, one = (tf.constant(v, tf.float64) for v in (np.inf, 1.0))
            broken = tf.where(weights[3][0] > ANCHOR[3][0], infinite, one)
            a, b, c, d = weights
            rows = tf.tanh(tf.constant(X) @ a) * broken
            return tf.reduce_mean(tf.linalg.matvec(tf.tanh(rows @ b) @ c, d) ** 2)

        objective: Any = ReplayedLoss.of_function(loss, anchor)
        local = with_hidden_layers(objective, [w.shape for w in anchor], False)
        assert isinstance(local, HiddenLayers)
        kernel = ImportanceSampling(16, control_variate=True)
        noise = PhiloxNoise(0, tf.constant(0), local.noise_like(anchor))
        return kernel(local, anchor, tf.constant(TAU, tf.float64), noise)

    found = run()
    assert 0 < found.diagnostics["non_finite"] < 16
    assert all(np.isfinite(d).all() for d in found.displacement)
    assert np.isfinite(found.diagnostics["standard_error"])


def trained(optimizer: Any, jit_compile: bool, rows: int) -> Any:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(9, "relu"), layers.Dense(8, "relu"), layers.Dense(2)]
    )
    model.compile(optimizer, "mse", jit_compile=jit_compile)
    x, y = np.random.default_rng(0).random((2, rows, 6)).astype("float32")
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
    found = [trained(inner, False, 10), trained(none, False, 10)]
    # One is enough to see that the whole train step compiles.
    found += [trained(make("auto"), True, 10)] if kernel == "robbins-monro" else []
    assert (inner.diagnostics["compiled"], none.diagnostics["compiled"]) == (1.0, 0.0)
    # Five rows see 5 x 9 of the first kernel; the others take 5 x 8 and 5 x 2 numbers, with
    # gradients 5 x 9 and 5 x 8 more. The biases have 9 + 8 + 2.
    drawn = 45 + 40 + 10 + 19 + (0 if kernel == "control-variate" else 45 + 40)
    assert inner.diagnostics["sampled_dimensions"] == drawn
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_ragged_batches_train() -> None:
    # The number of rows is then not known as the step is traced, and the layers are left whole.
    optimizer = LocalEntropy(0.1, ImportanceSampling(6, estimator="gradients"), seed=0)
    assert all(np.isfinite(w).all() for w in trained(optimizer, False, 12))
    assert optimizer.diagnostics["sampled_dimensions"] == 2 * 9 + 72 + 16 + 19


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
