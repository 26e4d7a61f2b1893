"""`tf.distribute`: each replica takes its own part's mean, and the weights move to their mean."""

from typing import Any

import pytest

from tests.processes import printed_by

KERNELS = ("sgld", "importance", "robbins-monro", "control-variate", "gradients")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `_replicas.py` prints."""
    return printed_by("tests.lerh_tf.optimizers._replicas")


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_stay_equal_across_replicas(found: dict[str, Any], kernel: str) -> None:
    assert found[kernel]["replicas"] == 2
    assert found[kernel]["apart"] == 0.0


@pytest.mark.feature(
    "training",
    "`tf.distribute.MirroredStrategy`",
    "yes; accumulation in `fit` fails in Keras itself",
)
@pytest.mark.feature(
    "training",
    "`strategy.run` on several replicas, in a graph and eagerly",
    "yes",
    cases=["sgld-loop", "sgld-eager-loop"],
)
@pytest.mark.parametrize(
    ("kernel", "entry"),
    [*((kernel, "fit") for kernel in KERNELS), ("sgld", "loop"), ("sgld", "eager-loop")],
)
def test_weights_move_to_the_mean_of_the_parts_means(
    found: dict[str, Any], kernel: str, entry: str
) -> None:
    # A loss left divided by the replicas, or displacements summed, is off by as much as it moves.
    assert found[kernel]["off"][entry] < 1e-6 < found[kernel]["moved"] / 100


@pytest.mark.parametrize("kernel", KERNELS)
def test_logged_loss_is_the_whole_minibatch_s(found: dict[str, Any], kernel: str) -> None:
    fit, *loops = found[kernel]["losses"]
    for loop in loops:
        assert fit == pytest.approx(loop, rel=1e-6)


@pytest.mark.feature(
    "training",
    "one device, `OneDeviceStrategy`, `MirroredStrategy`, `CentralStorageStrategy`",
    "as without a strategy",
)
def test_one_device_is_no_strategy(found: dict[str, Any]) -> None:
    assert len(found["one"]) == 5
    assert set(found["one"].values()) == {0.0}


@pytest.mark.feature(
    "training",
    "`optimizer.step` on several replicas, optimizer not built yet",
    'refused: "call `optimizer.build(variables)` in the strategy\'s scope first"',
)
def test_replicas_need_a_built_optimizer(found: dict[str, Any]) -> None:
    assert "call `optimizer.build(variables)` in the strategy's scope first" in found["not built"]


@pytest.mark.feature(
    "training",
    "`TrainStep` on several replicas, also with `run_eagerly=True`",
    "yes",
    cases=["false", "true"],
)
@pytest.mark.parametrize("run_eagerly", ["false", "true"])
def test_train_step_is_the_stock_one(found: dict[str, Any], run_eagerly: str) -> None:
    assert found["train-step"][run_eagerly] < 1e-6


def test_failure_on_one_replica_moves_none_and_is_told(found: dict[str, Any]) -> None:
    failing = found["failing"]
    assert failing["finite"]
    assert failing["equal"]
    assert failing["moved"] == failing["chain"] == 0.0
    (warned,) = failing["warned"]
    assert "(In 1 weight update.)" in warned


def test_eager_failure_is_told_and_training_goes_on(found: dict[str, Any]) -> None:
    failing = found["failing eagerly"]
    assert "SGLD: the chain reached infinite" in failing["told"]
    assert failing["stays"]
    assert failing["goes on"]


@pytest.mark.feature("training", "tau that is not positive, on several replicas", "nothing moves")
@pytest.mark.parametrize("bad", ["nan", "-0.5"])
def test_bad_tau_moves_nothing(found: dict[str, Any], bad: str) -> None:
    assert found["bad tau"][bad]


@pytest.mark.feature("training", "`tf.distribute.MirroredStrategy`")
def test_accumulation_in_fit_fails_with_keras_s_own_optimizers_too(found: dict[str, Any]) -> None:
    sgd, ours = found["accumulation"]
    assert sgd == ours == "RuntimeError"
