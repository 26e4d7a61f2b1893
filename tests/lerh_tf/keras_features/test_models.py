"""Models and optimizers that are frozen, cloned, used again, combined, or of several dtypes."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from scipy.special import softmax

from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy, RobbinsMonro
from lerh_tf.noise import PhiloxNoise
from tests.lerh_tf.keras_features._descent import Array, assert_same, descent, sgd, training

pytestmark = pytest.mark.usefixtures("built_optimizers", "plain_loops")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 4)).astype("float32")
Y = RNG.standard_normal((4, 2)).astype("float32")


def network() -> keras.Model:
    return keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(2)])


def chained() -> LocalEntropy:
    return LocalEntropy(0.1, SGLD(3), seed=2)


def compiled(optimizer: keras.optimizers.Optimizer, seed: int = 1) -> keras.Model:
    keras.utils.set_random_seed(seed)
    model = network()
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    return model


def update(model: keras.Model) -> list[Array]:
    model.train_on_batch(X, Y)
    return [np.array(v.numpy()) for v in [*model.variables, *model.optimizer.variables]]


def assert_equal(actual: list[Array], expected: list[Array]) -> None:
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.feature("models", "layers frozen after `compile`", "once compiled anew, as with SGD")
@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("recompiled", [True, False])
def test_frozen_after_compile(recompiled: bool) -> None:
    # Without compiling anew Keras goes on with the step that it has traced.
    def train(model: keras.Model, optimizer: Any) -> dict[str, Any]:
        optimizer.build(model.trainable_variables)
        model.compile(optimizer, "mse")
        model.train_on_batch(X, Y)
        model.layers[0].trainable = False
        before = model.layers[0].kernel.numpy()
        if recompiled:
            model.compile(optimizer, "mse")
        model.train_on_batch(X, Y)
        assert np.array_equal(model.layers[0].kernel.numpy(), before) == recompiled
        model.layers[0].trainable = True
        model.compile(optimizer, "mse")
        model.train_on_batch(X, Y)
        return {}

    assert_same(training(descent(), network, train), training(sgd(), network, train))


@pytest.mark.feature(
    "models",
    "layers unfrozen and compiled with the same optimizer",
    'refused by Keras, as with SGD: "recreate a new optimizer instance"',
)
@pytest.mark.parametrize("make", [chained, sgd])
def test_unfrozen_after_training(make: Callable[[], Any]) -> None:
    model, optimizer = network(), make()
    model.layers[0].trainable = False
    model.compile(optimizer, "mse")
    model.train_on_batch(X, Y)
    model.layers[0].trainable = True
    model.compile(optimizer, "mse")
    with pytest.raises(ValueError, match="recreate a new optimizer instance"):
        model.train_on_batch(X, Y)


class OwnStep(keras.Model):
    """A model whose train step is the one of Keras's guide, with or without `scale_loss`."""

    def __init__(self, scales: bool):
        super().__init__()
        self._inner, self._scales = network(), scales

    def call(self, x: Any) -> Any:
        return self._inner(x)

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
            if self._scales:
                loss = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


@pytest.mark.feature(
    "training",
    "a `train_step` of your own, tape and `apply_gradients`",
    'refused: "`optimizer.scale_loss(loss)` inside the tape"; with it, yes',
)
@pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning")
def test_own_train_step() -> None:
    states = []
    for make in (network, lambda: OwnStep(True)):
        keras.utils.set_random_seed(1)
        model = make()
        model.build((None, 4))
        model.compile(chained(), "mse")
        model.train_on_batch(X, Y)
        states.append([v.numpy() for v in model.trainable_variables])
    assert_equal(*states)
    model = OwnStep(False)
    model.compile(chained(), "mse")
    with pytest.raises(ValueError, match=r"`apply` received gradients.*`optimizer.scale_loss"):
        model.train_on_batch(X, Y)


@pytest.mark.feature("saving", "`keras.models.clone_model`", "yes")
def test_clone_with_a_deserialized_optimizer_trains_the_same() -> None:
    model = compiled(chained())
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    clone.compile(keras.optimizers.get(keras.optimizers.serialize(model.optimizer)), "mse")
    assert_equal(update(clone), update(model))


@pytest.mark.feature(
    "saving",
    "`keras.optimizers.get`",
    "yes: instances, configurations and names such as `lerh_tf>LocalEntropy`",
)
def test_get_knows_the_registered_names() -> None:
    optimizer = chained()
    assert keras.optimizers.get(optimizer) is optimizer
    for name in ("LocalEntropy", "HeatRegularization"):
        config = {"class_name": f"lerh_tf>{name}", "config": {"tau": 0.5}}
        found = keras.optimizers.get(config)
        assert type(found).__name__ == name
        assert float(found.tau.numpy()) == 0.5
        assert type(keras.optimizers.get(f"lerh_tf>{name}")).__name__ == name


@pytest.mark.feature(
    "models",
    "optimizer used for a second model",
    'refused by Keras: "recreate a new optimizer instance"',
)
def test_optimizer_of_another_model_is_refused() -> None:
    optimizer = chained()
    update(compiled(optimizer))
    other = network()
    other.compile(optimizer, "mse")
    with pytest.raises(ValueError, match=r"Unknown variable.*recreate a new optimizer instance"):
        other.train_on_batch(X, Y)


@pytest.mark.feature("models", "two models trained in turn", "as if alone")
def test_models_trained_in_turn_are_trained_alone() -> None:
    alone = [[update(model) for _ in range(2)][-1] for model in map(compiled, (chained(), sgd()))]
    first, second = compiled(chained()), compiled(chained(), seed=3)
    for _ in range(2):
        in_turn, other = update(first), update(second)
    assert_equal(in_turn, alone[0])
    assert not np.array_equal(in_turn[0], other[0])


@pytest.mark.feature(
    "training",
    "`MultiOptimizer`",
    'refused: "a wrapping `LossScaleOptimizer` does not forward the loss, nor does a '
    '`MultiOptimizer`"',
)
@pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason="Keras 3.14 does not have it"
)
def test_multi_optimizer_is_refused() -> None:
    optimizers = keras.optimizers.OptimizerMap(keras.optimizers.SGD())
    optimizers[".*/kernel"] = chained()
    model = network()
    model.compile(keras.optimizers.MultiOptimizer(optimizers), "mse")
    with pytest.raises(ValueError, match=r"`apply` received gradients.*`MultiOptimizer`"):
        model.train_on_batch(X, Y)


def of_dtypes(*dtypes: str) -> Callable[[], keras.Model]:
    return lambda: keras.Sequential(
        [
            keras.Input((4,)),
            *(layers.Dense(3, activation="tanh", dtype=dtype) for dtype in dtypes),
            layers.Dense(2, dtype=dtypes[-1]),
        ]
    )


# The relative rounding of the narrowest dtype that computes.
DTYPES: dict[str, tuple[tuple[str, ...], float]] = {
    "mixed_bfloat16": (("mixed_bfloat16",), 2**-8),
    "mixed_float16": (("mixed_float16",), 2**-11),
    "float64": (("float64",), 1e-14),
    "several": (("float64", "float32", "mixed_bfloat16"), 2**-8),
}


@pytest.mark.feature(
    "numbers",
    "`mixed_float16`",
    "yes, with `compile(auto_scale_loss=False)`",
    cases=["mixed_float16"],
)
@pytest.mark.feature("numbers", "`mixed_bfloat16`", "yes", cases=["mixed_bfloat16"])
@pytest.mark.feature(
    "numbers",
    "float64",
    "yes: weights, samples and exponents; tau itself is kept in float32",
    cases=["float64"],
)
@pytest.mark.feature("numbers", "several dtypes in one model", "yes", cases=["several"])
@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str) -> None:
    dtypes, rounding = DTYPES[name]

    def train(model: keras.Model, optimizer: Any) -> None:
        optimizer.build(model.trainable_variables)
        model.compile(optimizer, "mse", auto_scale_loss=False)
        model.fit(X, Y, batch_size=2, shuffle=False, verbose=0)

    build = of_dtypes(*dtypes)
    actual = training(descent(), build, train)
    assert_same(actual, training(sgd(), build, train), tolerance=8 * rounding)
    assert any(a.dtype == np.float64 for a in actual.state) == ("float64" in dtypes)


@pytest.mark.feature(
    "numbers", "several dtypes in one model", cases=["several-kernel0", "several-kernel1"]
)
@pytest.mark.parametrize("kernel", [SGLD(5), ImportanceSampling(5)])
@pytest.mark.parametrize("name", DTYPES)
def test_samplers_take_dtypes(name: str, kernel: Any) -> None:
    keras.utils.set_random_seed(1)
    model = of_dtypes(*DTYPES[name][0])()
    model.compile(LocalEntropy(0.1, kernel, seed=2), "mse", auto_scale_loss=False)
    before = [v.numpy() for v in model.trainable_variables]
    model.train_on_batch(X, Y)
    for variable, then in zip(model.trainable_variables, before, strict=True):
        assert np.isfinite(variable.numpy()).all()
        assert not np.array_equal(variable.numpy(), then)


@pytest.mark.feature(
    "numbers",
    "weights of samples and exponents",
    "always in at least float32",
    cases=["float16", "bfloat16"],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sample_weights_are_in_float32_at_least(dtype: str) -> None:
    tau, samples = 0.125, 40
    variable = keras.Variable(np.ones(3), dtype=dtype)

    def loss() -> tf.Tensor:
        # exp(-f) is below the smallest float16 number.
        return tf.cast(30.0, dtype) + tf.cast(6.0, dtype) * tf.reduce_sum(variable.value)

    noise = PhiloxNoise(3, tf.constant(0, tf.int64), [variable.value])
    (z,) = noise(tf.constant(0, tf.int64), samples)
    positions = 1.0 + tf.cast(tf.sqrt(tau) * z, dtype)
    losses = [30.0 + 6.0 * tf.reduce_sum(p) for p in positions]
    weights = softmax([-float(f) for f in losses])

    optimizer = LocalEntropy(tau, ImportanceSampling(samples), seed=3, subspace=False)
    optimizer.step(loss, [variable])
    size = 1.0 / np.sum(weights**2)
    assert optimizer.diagnostics["effective_sample_size"] == pytest.approx(size, rel=1e-5)
    mean = np.sqrt(tau) * weights @ z.numpy()
    assert optimizer.diagnostics["step_norm"] == pytest.approx(np.linalg.norm(mean), rel=1e-5)


def attention(x: Any) -> Any:
    rows = layers.Reshape((6, 6))(x)
    attended = layers.MultiHeadAttention(1, 2)(rows, rows)
    return layers.GlobalAveragePooling1D()(layers.LayerNormalization()(rows + attended))


IMAGES: dict[str, Callable[[Any], Any]] = {
    "convolution": lambda x: layers.MaxPooling2D()(
        layers.BatchNormalization()(layers.Conv2D(2, 3)(x))
    ),
    "attention": attention,
}


@pytest.mark.feature(
    "models", "convolutions with bias, normalization, attention, however few samples", "yes"
)
@pytest.mark.parametrize(
    ("body", "optimizer"),
    [
        *((body, lambda: LocalEntropy(0.01, SGLD(3), seed=0)) for body in IMAGES),
        ("convolution", lambda: LocalEntropy(0.01, ImportanceSampling(1), seed=0)),
        ("convolution", lambda: HeatRegularization(0.01, RobbinsMonro(2, 1), seed=0)),
    ],
)
def test_networks_of_images_are_trained_with_few_samples(
    body: str, optimizer: Callable[[], Any]
) -> None:
    keras.utils.set_random_seed(0)
    x = keras.Input((6, 6, 1))
    model = keras.Model(x, layers.Dense(1)(layers.Flatten()(IMAGES[body](x))))
    model.compile(optimizer(), "mse")
    before = [v.numpy() for v in model.trainable_variables]
    model.train_on_batch(RNG.standard_normal((4, 6, 6, 1)), Y[:, :1])
    for variable, old in zip(model.trainable_variables, before, strict=True):
        assert np.isfinite(variable.numpy()).all()
        assert not np.array_equal(variable.numpy(), old)
