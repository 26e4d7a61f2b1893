"""A loss that can't be replayed is refused, with its cause; never a silent plain gradient step."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy, ReplayError
from lerh_tf.loss.replayed import CapturedLoss, ReplayedLoss
from tests.lerh_tf._cases import dense, sequential
from tests.lerh_tf._keras_steps import Probe, elsewhere, state_of
from tests.lerh_tf._kernels import replayed

NESTED = "stands a nested function: operation"
ADVICE = r"`lerh_tf\.TrainStep`"

Function = Callable[[tf.Tensor], tf.Tensor]

pytestmark = pytest.mark.usefixtures("plain_loops")


def conditional(h: tf.Tensor) -> tf.Tensor:
    return tf.cond(tf.reduce_sum(h) > 0.0, lambda: h, lambda: 2.0 * h)


def mapped(h: tf.Tensor) -> tf.Tensor:
    return tf.map_fn(lambda row: 2.0 * row, h)


def looped(h: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(lambda i, _: i < 3, lambda i, g: (i + 1, 2.0 * g), (0, h))[1]


@tf.function
def called(h: tf.Tensor) -> tf.Tensor:
    return 2.0 * h


@tf.custom_gradient
def clipped(h: tf.Tensor) -> Any:
    return tf.clip_by_value(h, -0.1, 0.1), lambda upstream: upstream


class Apply(layers.Layer):
    """Applies a TensorFlow function to its input."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(self._function(inputs), inputs.shape)


def network(function: Function) -> keras.Model:
    return sequential((3,), dense(2), lambda: Apply(function), dense(1))()


def recurrent(layer: type[layers.Layer]) -> keras.Model:
    return sequential((4, 2), lambda: layer(2), dense(1))()


def sampler(**arguments: Any) -> LocalEntropy:
    return LocalEntropy(tau=0.1, sampler=ImportanceSampling(samples=20), seed=0, **arguments)


def batch(*shape: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((6, *shape)), rng.standard_normal((6, 1))
    return x.astype("float32"), y.astype("float32")


MODELS: dict[str, tuple[Callable[[], keras.Model], tuple[int, ...]]] = {
    "lstm": (lambda: recurrent(layers.LSTM), (4, 2)),
    "gru": (lambda: recurrent(layers.GRU), (4, 2)),
    "cond": (lambda: network(conditional), (3,)),
    "map_fn": (lambda: network(mapped), (3,)),
    "while_loop": (lambda: network(looped), (3,)),
    "tf.function": (lambda: network(called), (3,)),
}


@pytest.mark.feature(
    "models",
    "LSTM, GRU, control flow, stock model",
    'refused: "Let the model subclass `lerh_tf.TrainStep`"',
)
@pytest.mark.parametrize("name", MODELS)
def test_nested_function_is_refused(name: str) -> None:
    build, shape = MODELS[name]
    model = build()
    before = state_of(model.trainable_variables)
    model.compile(optimizer=sampler(), loss="mse")
    with pytest.raises(ReplayError, match=NESTED) as refusal:
        model.train_on_batch(*batch(*shape))
    assert refusal.match(ADVICE)
    for a, b in zip(before, state_of(model.trainable_variables), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nested_function_that_no_weight_enters_is_replayed() -> None:
    model = sequential((3,), lambda: Apply(mapped), dense(1))()
    v = elsewhere(model.trainable_variables)
    probe = Probe(model.trainable_variables, v)
    model.compile(optimizer=probe, loss="mse")
    x, y = batch(3)
    model.train_on_batch(x, y)
    expected = np.mean((2.0 * x @ v[0] + v[1] - y) ** 2)
    np.testing.assert_allclose(probe.probed_losses(), [expected], rtol=1e-6)


CUSTOM_GRADIENTS: dict[str, Function] = {"silu": tf.nn.silu, "custom_gradient": clipped}


@pytest.mark.parametrize("name", CUSTOM_GRADIENTS)
def test_custom_gradient_is_refused_where_a_gradient_is_needed(name: str) -> None:
    model = network(CUSTOM_GRADIENTS[name])
    probe = Probe(model.trainable_variables, state_of(model.trainable_variables))
    model.compile(optimizer=probe, loss="mse")
    with pytest.raises(ReplayError, match="has a custom gradient") as refusal:
        model.train_on_batch(*batch(3))
    assert refusal.match(ADVICE)


def absolute(y: Any, p: Any) -> Any:
    return np.mean(abs(y - p), dtype="float32")


CALLS: dict[str, Callable[..., tf.Tensor]] = {
    "numpy_function": lambda y, p: tf.numpy_function(absolute, [y, p], tf.float32),
    "py_function": lambda y, p: tf.py_function(
        lambda y, p: tf.reduce_mean(abs(y - p)), [y, p], tf.float32
    ),
}
CALL_REFUSALS = {
    "numpy_function": (ValueError, "no gradient with respect to any weight"),
    "py_function": (ReplayError, r"^Operation '.*' is a `tf\.py_function`, whose gradient"),
}


def calling(name: str) -> Callable[..., tf.Tensor]:
    def loss(y: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        found = CALLS[name](y, p)
        found.set_shape([])
        return found

    return loss


@pytest.mark.parametrize("name", CALLS)
def test_python_function_is_refused_where_a_gradient_is_needed(name: str) -> None:
    model, (kind, text) = sequential((3,), dense(1))(), CALL_REFUSALS[name]
    model.compile(LocalEntropy(0.1, ImportanceSampling(2, estimator="gradients")), calling(name))
    with pytest.raises(kind, match=text) as refusal:
        model.train_on_batch(*batch(3))
    assert refusal.match(r"ImportanceSampling\(1000, control_variate=True, loss_multiplier=50\.0\)")


@pytest.mark.feature(
    "models",
    "a loss behind `tf.numpy_function` or `tf.py_function`",
    "by losses alone (`ImportanceSampling()`) as the same loss in TensorFlow, one sample after the "
    "other; refused where the kernel needs gradients, as the default does",
)
@pytest.mark.parametrize("name", CALLS)
def test_python_function_is_as_good_as_the_loss_without_a_gradient(name: str) -> None:
    trained = []
    for loss in (calling(name), lambda y, p: tf.reduce_mean(abs(y - p))):
        keras.utils.set_random_seed(0)
        model = sequential((3,), dense(1))()
        model.compile(sampler(), loss)
        model.train_on_batch(*batch(3))
        trained.append(state_of(model.trainable_variables))
    for actual, expected in zip(*trained, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.feature(
    "models",
    "custom gradients (`silu` and `swish` are such), stock model",
    "refused where the kernel needs gradients, as the default does; by losses alone "
    "(`ImportanceSampling()`) yes",
)
@pytest.mark.parametrize("name", CUSTOM_GRADIENTS)
def test_custom_gradient_is_refused_by_a_kernel_with_gradients(name: str) -> None:
    model = network(CUSTOM_GRADIENTS[name])
    model.compile(optimizer=LocalEntropy(0.1, SGLD(samples=3), seed=0), loss="mse")
    with pytest.raises(ReplayError, match="has a custom gradient"):
        model.train_on_batch(*batch(3))


@pytest.mark.parametrize("name", CUSTOM_GRADIENTS)
def test_custom_gradient_s_loss_is_right(name: str) -> None:
    function = CUSTOM_GRADIENTS[name]
    model = network(function)
    v = elsewhere(model.trainable_variables)
    probe = Probe(model.trainable_variables, v, with_gradient=False)
    model.compile(optimizer=probe, loss="mse")
    x, y = batch(3)
    model.train_on_batch(x, y)
    expected = np.mean((function(x @ v[0] + v[1]).numpy() @ v[2] + v[3] - y) ** 2)
    np.testing.assert_allclose(probe.probed_losses(), [expected], rtol=1e-6)
    assert abs(probe.losses()[0] - expected) > 0.01


@pytest.mark.feature("models", "custom gradients (`silu` and `swish` are such), stock model")
@pytest.mark.parametrize("name", CUSTOM_GRADIENTS)
def test_importance_sampling_trains_through_a_custom_gradient(name: str) -> None:
    model = network(CUSTOM_GRADIENTS[name])
    before = state_of(model.trainable_variables)
    model.compile(optimizer=sampler(), loss="mse")
    model.train_on_batch(*batch(3))
    after = state_of(model.trainable_variables)
    assert all(np.any(a != b) for a, b in zip(before, after, strict=True))


@pytest.mark.feature(
    "training",
    "`run_eagerly=True`, stock model",
    'refused: "Let the model subclass `lerh_tf.TrainStep`"',
)
def test_eager_run_is_refused() -> None:
    model = network(tf.nn.tanh)
    model.compile(optimizer=sampler(), loss="mse", run_eagerly=True)
    with pytest.raises(ReplayError, match=r"`compile\(run_eagerly=True\)` or") as refusal:
        model.train_on_batch(*batch(3))
    assert refusal.match(ADVICE)


def test_loss_must_be_a_scalar() -> None:
    a = tf.Variable([1.0, 2.0])
    with pytest.raises(
        ValueError,
        match=r"must be a scalar: take the mean .*`tf\.reduce_mean\(loss\)`\. Received: loss=",
    ):
        tf.function(lambda: CapturedLoss(2.0 * a)).get_concrete_function()


@pytest.fixture
def mixed_float16() -> Any:
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.feature(
    "numbers",
    "`mixed_float16`, loss scaled by a wrapping `LossScaleOptimizer`",
    'refused: "compile the model with `auto_scale_loss=False`"',
)
@pytest.mark.usefixtures("mixed_float16")
def test_loss_scale_optimizer_is_refused() -> None:
    model = network(tf.nn.tanh)
    model.compile(optimizer=sampler(), loss="mse")
    remedy = r"`apply` received gradients but no loss\. Under the mixed_float16 policy compile "
    with pytest.raises(ValueError, match=f"{remedy}the model with `auto_scale_loss=False`"):
        model.train_on_batch(*batch(3))


@pytest.mark.feature("numbers", "`mixed_float16`")
@pytest.mark.usefixtures("mixed_float16")
def test_mixed_float16_trains_without_loss_scaling() -> None:
    model = network(tf.nn.tanh)
    before = state_of(model.trainable_variables)
    model.compile(optimizer=sampler(), loss="mse", auto_scale_loss=False)
    model.train_on_batch(*batch(3))
    for a, b in zip(before, state_of(model.trainable_variables), strict=True):
        assert np.any(a != b)
        assert np.all(np.isfinite(b))


@pytest.mark.feature(
    "training", "bare gradients", 'refused: "call `optimizer.step(closure, variables)`"'
)
def test_bare_gradients_are_refused() -> None:
    a, optimizer = keras.Variable([1.0, 2.0]), sampler()
    with pytest.raises(ValueError, match="`apply` received gradients but no loss"):
        optimizer.apply([tf.constant([0.1, 0.1])], [a])
    with pytest.raises(ValueError, match=r"Train with `model\.fit` and Keras's own"):
        optimizer.apply_gradients([(tf.constant([0.1, 0.1]), a)])
    np.testing.assert_array_equal(a, [1.0, 2.0])


def test_gradients_after_a_refused_step_are_refused() -> None:
    optimizer = sampler()
    model = network(conditional)
    model.compile(optimizer=optimizer, loss="mse")
    with pytest.raises(ReplayError, match=NESTED):
        model.train_on_batch(*batch(3))
    variables = model.trainable_variables
    with pytest.raises(ValueError, match="no loss"):
        optimizer.apply([tf.zeros(v.shape) for v in variables], variables)


def test_loss_of_another_graph_is_refused() -> None:
    a, optimizer = keras.Variable(2.0), sampler()
    tf.function(lambda: optimizer.scale_loss(a * a)).get_concrete_function()
    with pytest.raises(ReplayError, match="belongs to another graph") as refusal:
        tf.function(lambda: optimizer.apply([None], [a])).get_concrete_function()
    assert refusal.match("Call both in the same `tf.function`")


def test_loss_of_another_graph_is_refused_outside_graphs() -> None:
    a, optimizer = keras.Variable(2.0), sampler()
    tf.function(lambda: optimizer.scale_loss(a * a)).get_concrete_function()
    with pytest.raises(ReplayError, match="belongs to another graph"):
        optimizer.apply([None], [a])


def test_loss_without_weights_is_refused() -> None:
    a = tf.Variable(2.0, name="lonely")

    @tf.function
    def step() -> None:
        replayed(tf.constant(1.0), [a])

    with pytest.raises(ReplayError, match="does not depend on any of the weights") as refusal:
        step()
    assert refusal.match("lonely")


def test_weight_read_by_its_handle_is_refused() -> None:
    a = tf.Variable([[1.0, 2.0]], name="table")

    @tf.function
    def step() -> None:
        loss = tf.reduce_sum(tf.gather_nd(a, [[0, 1]]))
        replayed(loss, [a])

    with pytest.raises(ReplayError, match="by its handle") as refusal:
        step()
    assert refusal.match("'table")
    assert refusal.match(ADVICE)


class Normalized(layers.Layer):
    """Keeps its weight at norm one by assigning it in the forward pass."""

    def build(self, input_shape: Any) -> None:
        self.direction = self.add_weight(shape=(3,), name="direction")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        self.direction.assign(self.direction / tf.norm(self.direction))
        return inputs * self.direction


def test_weight_assigned_in_the_forward_pass_is_refused() -> None:
    model = sequential((3,), Normalized, dense(1))()
    model.compile(optimizer=sampler(), loss="mse")
    with pytest.raises(ReplayError, match="assigned") as refusal:
        model.train_on_batch(*batch(3))
    assert refusal.match("direction")
    assert refusal.match(ADVICE)


class Wasteful(layers.Dense):
    """A layer that does not use all that it holds."""

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.unused = self.add_weight(shape=(2,), initializer="ones")


@pytest.mark.feature(
    "models", "weights that the loss does not use", "stay; Keras warns, as with SGD"
)
def test_unused_weight_stays_and_keras_warns() -> None:
    x = keras.Input((3,))
    layer = Wasteful(1)
    model = keras.Model(x, layer(x))
    for optimizer in (keras.optimizers.SGD(), sampler()):
        model.compile(optimizer=optimizer, loss="mse")
        before = state_of(model.trainable_variables)
        with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
            model.train_on_batch(*batch(3))
        after = state_of(model.trainable_variables)
        assert sum(bool(np.any(a != b)) for a, b in zip(before, after, strict=True)) == 2
        np.testing.assert_array_equal(layer.unused.numpy(), np.ones(2))


def test_random_draw_that_depends_on_the_weights_is_refused() -> None:
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step() -> None:
        loss = tf.reduce_sum(tf.random.poisson([], tf.exp(w)))
        ReplayedLoss.of_variables(CapturedLoss(loss), [w])

    with pytest.raises(ReplayError, match=r"RandomPoissonV2\), which has a state"):
        step()
