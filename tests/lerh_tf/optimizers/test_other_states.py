"""Files of other optimizers, and of one's own before `build`: what is taken and what is skipped."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LocalEntropy,
    RobbinsMonro,
    Scoping,
)
from tests.lerh_tf._regression import assert_equal, fit, network

pytestmark = [
    pytest.mark.usefixtures("plain_loops"),
    # Keras itself converts its variables in a way that NumPy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning"),
]


def ours(tau: Any = 0.01, **arguments: Any) -> LocalEntropy:
    return LocalEntropy(tau, SGLD(3), seed=1, **arguments)


OTHERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(1.0),
    "adam": keras.optimizers.Adam,
    "importance": lambda: LocalEntropy(0.2, ImportanceSampling(3), seed=1),
    "robbins-monro": lambda: HeatRegularization(0.2, RobbinsMonro(2, 2), seed=1),
    "learning rate": lambda: ours(0.2, learning_rate=0.1),
    "schedule": lambda: ours(Scoping(0.2, 0.1)),
}


def weights_of(make: Callable[[], Any], folder: Path) -> Path:
    """The weights-only file of a model that the optimizer has trained."""
    model = network()
    model.compile(make(), "mse")
    fit(model, 1)
    model.save_weights(folder / "model.weights.h5")
    return folder / "model.weights.h5"


@pytest.mark.feature(
    "saving",
    "weights-only file of another optimizer, or of ours with another kernel",
    "weights are loaded; its state is skipped with Keras's warning, \"Skipping "
    'variable loading for optimizer"',
    cases=["sgd-False", "importance-True"],
)
@pytest.mark.parametrize(
    ("other", "built"), [*((other, False) for other in OTHERS), ("importance", True)]
)
def test_another_optimizer_s_state_is_skipped(other: str, built: bool, tmp_path: Path) -> None:
    path, model, fresh = weights_of(OTHERS[other], tmp_path), network(), network()
    for each in (model, fresh):
        each.compile(ours(), "mse")
        each.optimizer.build(each.trainable_variables) if built else None
    with pytest.warns(UserWarning, match="^Skipping variable loading for optimizer 'local_entr"):
        model.load_weights(path)
    assert float(model.optimizer.tau.numpy()) == np.float32(0.01)
    assert int(model.optimizer.iterations.numpy()) == 0
    # The weights are loaded all the same, and training begins as with a new optimizer.
    fresh.set_weights(model.get_weights())
    assert_equal(fit(model, 1), fit(fresh, 1))


@pytest.mark.feature("saving", "weights-only file, read before the optimizer is built", "yes")
def test_own_state_waits_for_the_build(tmp_path: Path) -> None:
    path, model, other = weights_of(ours, tmp_path), network(), network()
    model.compile(ours(0.5), "mse")
    other.compile(ours(0.5), "mse")
    other.optimizer.build(other.trainable_variables)
    for each in (model, other):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            each.load_weights(path)
        assert float(each.optimizer.tau.numpy()) == np.float32(0.01)
    assert_equal(fit(model, 1), fit(other, 1))
    chains = [o.state["chain_3"].numpy() for o in (model.optimizer, other.optimizer)]
    np.testing.assert_array_equal(*chains)


@pytest.mark.feature("saving", "`.h5` files written, `get_state_tree`", "yes")
@pytest.mark.parametrize(
    ("saved", "read"),
    [
        (keras.optimizers.SGD(use_ema=True), keras.optimizers.SGD(momentum=0.9)),
        (keras.optimizers.Adam(), keras.optimizers.Adam(amsgrad=True)),
    ],
    ids=["averages-for-momentum", "a-slot-more"],
)
def test_slots_of_other_settings_are_not_taken(saved: Any, read: Any, tmp_path: Path) -> None:
    path, model = weights_of(lambda: ours(optimizer=saved), tmp_path), network()
    model.compile(ours(optimizer=read), "mse")
    model.load_weights(path)
    with pytest.raises(ValueError, match="built for other weights or with other settings"):
        model.optimizer.build(model.trainable_variables)


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file:UserWarning")
def test_no_two_variables_have_one_name(tmp_path: Path) -> None:
    model = network()
    model.compile(ours(), "mse")
    fit(model, 1)
    paths = [v.path for v in model.optimizer.variables]
    assert len(set(paths)) == len(paths)
    assert any(path.endswith("kernel_chain") for path in paths)
    assert "optimizer_variables" in model.get_state_tree()
    model.save(tmp_path / "model.h5")
