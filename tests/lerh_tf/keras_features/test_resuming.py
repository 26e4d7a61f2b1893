"""Training saved half way and gone on with in a new process is the uninterrupted training."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, LangevinSteps, LocalEntropy, Scoping
from tests.lerh_tf.keras_features._descent import Array

# Keras itself converts its variables in a way that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't:DeprecationWarning"
)

FORMATS = ("keras", "weights", "checkpoint", "checkpoint-before-build")
ROOT = Path(__file__).resolve().parents[3]
RNG = np.random.default_rng(0)
# Batches of 2, accumulated by 2: after the first part a weight update is half way.
FIRST, ROWS = 6, 10
X = RNG.standard_normal((ROWS, 3)).astype("float32")
Y = RNG.standard_normal((ROWS, 1)).astype("float32")


def compiled() -> keras.Model:
    """A model with statistics; an optimizer with schedules, a chain, averages, accumulators."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    sampler = SGLD(3, step_sizes=LangevinSteps(20.0), restart=False)
    arguments: dict[str, Any] = {"use_ema": True, "gradient_accumulation_steps": 2}
    model.compile(LocalEntropy(Scoping(0.1, 0.05), sampler, seed=5, **arguments), "mse")
    return model


def fit(model: keras.Model, x: Array, y: Array) -> None:
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0)


def state(model: keras.Model) -> list[Array]:
    """Weights and statistics; iterations, chain and all else of the optimizer; diagnostics."""
    variables = [*model.variables, *model.optimizer.variables]
    return [*(v.numpy() for v in variables), np.array([*model.optimizer.diagnostics.values()])]


def save(model: keras.Model, folder: Path) -> None:
    model.save(folder / "model.keras")
    model.save_weights(folder / "model.weights.h5")
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(str(folder / "checkpoint"))


def restored(name: str, folder: Path) -> keras.Model:
    if name == "keras":
        return keras.models.load_model(folder / "model.keras")
    model = compiled()
    if name != "checkpoint-before-build":
        model.optimizer.build(model.trainable_variables)
    if name == "weights":
        model.load_weights(folder / "model.weights.h5")
    else:
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        checkpoint.read(str(folder / "checkpoint"))
    return model


def go_on(folder: Path) -> None:
    """What the new process does."""
    for name in FORMATS:
        model = restored(name, folder)
        fit(model, X[FIRST:], Y[FIRST:])
        np.savez(folder / f"{name}.npz", *state(model))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Array], Path]:
    """The uninterrupted training's state, and the folder with those of the others."""
    folder = tmp_path_factory.mktemp("half way")
    model = compiled()
    fit(model, X[:FIRST], Y[:FIRST])
    assert model.optimizer.diagnostics["compiled"] == 1.0
    accumulators = model.optimizer._accumulated_gradients
    assert all(np.any(accumulator.numpy()) for accumulator in accumulators)
    save(model, folder)
    fit(model, X[FIRST:], Y[FIRST:])
    module = "tests.lerh_tf.keras_features.test_resuming"
    script = f"import sys, pathlib, {module} as m; m.go_on(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(folder)], cwd=ROOT, check=True)
    return state(model), folder


@pytest.mark.feature(
    "saving",
    "`.keras` file, new process goes on",
    "yes, bit-identically; `import lerh_tf` before loading",
    cases=["keras"],
)
@pytest.mark.feature(
    "saving", "weights-only file, new process goes on", "yes, bit-identically", cases=["weights"]
)
@pytest.mark.feature(
    "saving",
    "`tf.train.Checkpoint`, new process goes on",
    "yes, bit-identically, also if read before the optimizer is built",
    cases=["checkpoint", "checkpoint-before-build"],
)
@pytest.mark.parametrize("name", FORMATS)
def test_new_process_goes_on_bit_identically(name: str, runs: tuple[list[Array], Path]) -> None:
    expected, folder = runs
    with np.load(folder / f"{name}.npz") as found:
        assert len(found.files) == len(expected)
        for actual, value in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(actual, value)


@pytest.mark.feature(
    "saving",
    "seeds of `Dropout` in any of these files",
    "no, nor with SGD: Keras saves the state of no seed",
)
def test_keras_saves_the_state_of_no_seed(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5, seed=1)])
    model.add(keras.layers.Dense(1))
    model.compile("sgd", "mse")
    model.optimizer.build(model.trainable_variables)
    fit(model, X, Y)
    others = [keras.models.clone_model(model) for _ in range(2)]
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    others[0].load_weights(tmp_path / "model.weights.h5")
    tf.train.Checkpoint(model=others[1]).read(str(tmp_path / "checkpoint"))
    for found in (keras.models.load_model(tmp_path / "model.keras"), *others):
        np.testing.assert_array_equal(found.layers[1].kernel.numpy(), model.layers[1].kernel)
        (seed,) = found.non_trainable_variables
        (trained,) = model.non_trainable_variables
        assert not np.array_equal(seed.numpy(), trained.numpy())
