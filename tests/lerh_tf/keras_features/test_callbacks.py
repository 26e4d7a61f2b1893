"""Keras's own callbacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import callbacks

from lerh_tf import SGLD, ImportanceSampling, LocalEntropy, Scoping
from tests.lerh_tf.keras_features._descent import TAU, Array, assert_same, descent, sgd, training

pytestmark = [
    pytest.mark.usefixtures("plain_loops", "no_noise"),
    # Keras itself converts its variables in a way that NumPy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)).astype("float32")
Y = RNG.standard_normal((6, 2)).astype("float32")


def network() -> keras.Model:
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])


def compiled(optimizer: keras.optimizers.Optimizer) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = network()
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse")
    return model


def fit(model: keras.Model, *calls: callbacks.Callback, epochs: int = 3) -> list[Array]:
    model.fit(X, Y, batch_size=3, epochs=epochs, shuffle=False, verbose=0, callbacks=[*calls])
    return [np.array(v.numpy()) for v in [*model.variables, *model.optimizer.variables]]


def halving(epoch: int, rate: float) -> float:
    return rate / 2.0


# A plateau at once, and a loss that is best when largest: at the first epoch.
PLATEAU = {"monitor": "loss", "mode": "max", "patience": 0}
CALLBACKS: dict[str, tuple[Callable[[], callbacks.Callback], dict[str, Any]]] = {
    "LearningRateScheduler": (
        lambda: callbacks.LearningRateScheduler(halving),
        {"learning_rate": 0.2},
    ),
    "ReduceLROnPlateau": (
        lambda: callbacks.ReduceLROnPlateau(factor=0.5, **PLATEAU),
        {"learning_rate": 0.2},
    ),
    "EarlyStopping": (lambda: callbacks.EarlyStopping(restore_best_weights=True, **PLATEAU), {}),
    "SwapEMAWeights": (
        lambda: callbacks.SwapEMAWeights(swap_on_epoch=True),
        {"use_ema": True, "ema_momentum": 0.5},
    ),
}


@pytest.mark.feature(
    "callbacks",
    "`LearningRateScheduler`",
    "yes, if a learning rate was given",
    cases=["LearningRateScheduler"],
)
@pytest.mark.feature(
    "callbacks",
    "`ReduceLROnPlateau`",
    "yes, if a learning rate was given",
    cases=["ReduceLROnPlateau"],
)
@pytest.mark.feature(
    "callbacks", "`EarlyStopping(restore_best_weights=True)`", "yes", cases=["EarlyStopping"]
)
@pytest.mark.feature("callbacks", "`SwapEMAWeights`", "yes", cases=["SwapEMAWeights"])
@pytest.mark.parametrize("name", CALLBACKS)
def test_same_as_with_sgd(name: str) -> None:
    make, arguments = CALLBACKS[name]

    def train(model: keras.Model, optimizer: Any) -> None:
        optimizer.build(model.trainable_variables)
        model.compile(optimizer, "mse")
        fit(model, make())

    actual = training(descent(**arguments), network, train)
    assert_same(actual, training(sgd(**arguments), network, train))


@pytest.mark.feature(
    "callbacks",
    "`LearningRateScheduler`, learning rate tied to tau",
    'refused as the first epoch starts: "set `tau`, or construct the optimizer with a '
    '`learning_rate` to set it later"',
    cases=["LearningRateScheduler"],
)
@pytest.mark.feature(
    "callbacks",
    "`ReduceLROnPlateau`, learning rate tied to tau",
    "refused, likewise, but not before it first reduces the rate",
    cases=["ReduceLROnPlateau"],
)
@pytest.mark.parametrize(
    ("callback", "updates"),
    [
        (callbacks.LearningRateScheduler(halving), 0),
        (callbacks.ReduceLROnPlateau(**PLATEAU), 4),
    ],
    ids=["LearningRateScheduler", "ReduceLROnPlateau"],
)
def test_tied_learning_rate_is_refused(callback: callbacks.Callback, updates: int) -> None:
    model = compiled(descent())
    with pytest.raises(TypeError, match=r"tied to `tau`.*set `tau`, or construct the optimizer"):
        fit(model, callback)
    assert int(model.optimizer.iterations) == updates


class HalvesTau(callbacks.Callback):
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model.optimizer.tau = TAU / 2.0 ** (epoch + 1)


@pytest.mark.feature("update", "tau set while `fit` runs", "takes effect")
def test_tau_set_while_fit_runs_takes_effect() -> None:
    # With the learning rate tied to it tau is SGD's learning rate.
    model = compiled(descent())
    fit(model, HalvesTau())
    expected = compiled(sgd())
    fit(expected, callbacks.LearningRateScheduler(halving))
    for actual, value in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(actual, value, rtol=3e-6, atol=3e-6)


@pytest.mark.feature("update", "learning rate set between fits", "takes effect, if one was given")
def test_learning_rate_set_between_fits_takes_effect() -> None:
    weights = []
    for new in (descent, sgd):
        model = compiled(new(learning_rate=0.2))
        fit(model, epochs=1)
        model.optimizer.learning_rate = 0.05
        fit(model, epochs=1)
        weights.append(model.get_weights())
    for actual, value in zip(*weights, strict=True):
        np.testing.assert_allclose(actual, value, rtol=3e-6, atol=3e-6)


@pytest.mark.feature(
    "update",
    "learning rate set to a schedule",
    "takes effect once compiled anew, as with SGD, if one was given; it is saved",
)
def test_schedule_set_between_fits_takes_effect_once_compiled_anew() -> None:
    # Without compiling anew Keras goes on with the step that it has traced.
    def weights(optimizer: Any) -> list[Array]:
        model = compiled(optimizer)
        fit(model, epochs=1)
        optimizer.learning_rate = keras.optimizers.schedules.ExponentialDecay(0.05, 1, 0.5)
        fit(model, epochs=1)
        before = model.get_weights()
        model.compile(optimizer, "mse")
        fit(model, epochs=1)
        return [*before, *model.get_weights()]

    pairs = zip(weights(descent(learning_rate=0.2)), weights(sgd(learning_rate=0.2)), strict=True)
    for actual, value in pairs:
        np.testing.assert_allclose(actual, value, rtol=3e-6, atol=3e-6)


@pytest.mark.feature(
    "update",
    "samples and all else of a kernel set",
    'refused: "Make another one, and another optimizer with it"',
)
def test_samples_can_t_be_set() -> None:
    optimizer: Any = descent()
    kernels: list[Any] = [optimizer.solver, SGLD(), ImportanceSampling()]
    for kernel in kernels:
        text = f"^`samples` of `{type(kernel).__name__}` can't be set: .* another optimizer"
        with pytest.raises(AttributeError, match=f"{text} with it. Received: samples=5$"):
            kernel.samples = 5


def chained() -> LocalEntropy:
    return LocalEntropy(0.1, SGLD(3), seed=2)


@pytest.mark.feature("callbacks", "`ModelCheckpoint`", "yes, the optimizer's state included")
def test_model_checkpoint_holds_the_optimizer(tmp_path: Path) -> None:
    model = compiled(chained())
    state = fit(model, callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras"), epochs=2)
    loaded = keras.models.load_model(tmp_path / "2.keras")
    for actual, value in zip([*loaded.variables, *loaded.optimizer.variables], state, strict=True):
        np.testing.assert_array_equal(actual.numpy(), value)


class Interrupts(callbacks.Callback):
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 2:
            raise KeyboardInterrupt


@pytest.mark.feature(
    "callbacks", "`BackupAndRestore`", "yes, bit-identically from the end of the latest epoch"
)
def test_backup_and_restore_goes_on_bit_identically(tmp_path: Path) -> None:
    expected = fit(compiled(chained()))
    with pytest.raises(KeyboardInterrupt):
        fit(compiled(chained()), callbacks.BackupAndRestore(tmp_path), Interrupts())
    restarted = compiled(chained())
    restarted.set_weights([np.full_like(w, 7.0) for w in restarted.get_weights()])
    actual = fit(restarted, callbacks.BackupAndRestore(tmp_path))
    assert len(restarted.history.history["loss"]) == 1
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


class InterruptsWithin(callbacks.Callback):
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if int(self.model.optimizer.iterations) == 3:
            raise KeyboardInterrupt


@pytest.mark.feature(
    "callbacks",
    "`BackupAndRestore(save_freq=...)`, interrupted within an epoch",
    "that epoch's batches are made once more, as with SGD",
)
def test_backup_within_an_epoch_repeats_its_batches(tmp_path: Path) -> None:
    for name, new in (("ours", chained), ("sgd", sgd)):
        backup = callbacks.BackupAndRestore(tmp_path / name, save_freq=1)
        with pytest.raises(KeyboardInterrupt):
            fit(compiled(new()), backup, InterruptsWithin())
        model = compiled(new())
        fit(model, callbacks.BackupAndRestore(tmp_path / name, save_freq=1))
        # Three epochs of two updates, and the one of the second epoch that was there already.
        assert int(model.optimizer.iterations) == 7


def written_rates(optimizer: LocalEntropy, folder: Path) -> list[float]:
    """The learning rates that the callback writes in one epoch."""
    model = compiled(optimizer)
    fit(model, callbacks.TensorBoard(folder, histogram_freq=1), epochs=1)
    (events,) = (folder / "train").iterdir()
    return [
        tf.make_ndarray(value.tensor).item()
        for raw in tf.data.TFRecordDataset(str(events))
        for value in tf.compat.v1.Event.FromString(raw.numpy()).summary.value
        if value.tag == "epoch_learning_rate"
    ]


@pytest.mark.feature(
    "callbacks", "`TensorBoard`", "yes; tau is its learning rate, unless one was given"
)
def test_tensorboard_writes_tau_as_the_learning_rate(tmp_path: Path) -> None:
    assert written_rates(chained(), tmp_path) == [pytest.approx(0.1)]


@pytest.mark.feature("callbacks", "`TensorBoard`")
@pytest.mark.parametrize(("rate", "written"), [(0.02, 0.02), (Scoping(0.04, 1.0), 0.01)])
def test_tensorboard_writes_a_learning_rate_that_was_given(
    rate: Any, written: float, tmp_path: Path
) -> None:
    # Two updates make the epoch.
    optimizer = LocalEntropy(0.1, SGLD(3), seed=2, learning_rate=rate)
    assert written_rates(optimizer, tmp_path) == [pytest.approx(written)]
