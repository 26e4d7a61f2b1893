"""Replicas that share one weight update, in `fit`: refusals, checkpoints, whole batches, memory."""

from typing import Any

import pytest

from tests.processes import printed_by

ROUNDING = 1e-5


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `_parallel_fit.py` prints."""
    return printed_by("tests.lerh_tf.optimizers._parallel_fit")


@pytest.mark.feature(
    "training",
    '`parallel="batch"` with unequal parts, weighted means, `BatchNormalization`, `Dropout`',
    "not the update of one device, nor is SGD's",
)
@pytest.mark.parametrize(
    "case", ["unequal parts", "weighted mean", "normalization", "dropout", "none of them"]
)
def test_where_parts_are_not_the_whole_they_are_not_for_sgd(
    found: dict[str, Any], case: str
) -> None:
    off = found["exceptions"][case]
    assert off.keys() == {"ours", "sgd"}
    for each in off.values():
        assert each < ROUNDING if case == "none of them" else each > 0.01


@pytest.mark.feature(
    "training",
    '`parallel="samples"` where replicas hold different rows, or the loss is a sum',
    'refused: "all replicas must hold the same minibatch", "A sum is not divided"',
)
@pytest.mark.feature(
    "training",
    "`jit_compile=True` on several replicas",
    'refused, as it fails for SGD: "`jit_compile` must be False where several replicas"',
)
@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("rows", "all replicas must hold the same minibatch"),
        ("rows in another order", "all replicas must hold the same minibatch"),
        ("rows of one loss", "all replicas must hold the same minibatch"),
        ("NaN on one", "all replicas must hold the same minibatch"),
        ("diverging", "`tau` must be so large that SGLD's chain stays near x"),
        ("sum", "A sum is not divided"),
        ("compiled", "`jit_compile` must be False where several replicas"),
        ("short", "`samples` must be more than the number of replicas"),
    ],
)
def test_what_can_t_be_shared_is_refused(found: dict[str, Any], case: str, text: str) -> None:
    assert text in found["refusals"][case]
    assert found["refusals"]["same rows"] == ""


@pytest.mark.feature(
    "training",
    "`BackupAndRestore` and `tf.train.Checkpoint` on two replicas, and from one to two",
    "go on as if uninterrupted",
)
@pytest.mark.parametrize("case", ["one to two", "two to one", "backup"])
def test_training_goes_on_on_other_replicas(found: dict[str, Any], case: str) -> None:
    assert found["resumed"][case] < ROUNDING


def test_chains_go_on_from_the_first_one_of_a_checkpoint(found: dict[str, Any]) -> None:
    assert found["resumed chains"]["before"] > 0.01
    assert found["resumed chains"]["after"] == 0.0
    assert found["resumed chains"]["later"] > 0.01


@pytest.mark.feature(
    "training", '`Dropout` with `parallel="samples"`', "yes: all replicas have the same masks"
)
@pytest.mark.parametrize("case", ["dropout", "smaller last batch"])
def test_whole_batches_make_the_updates_of_one_device(found: dict[str, Any], case: str) -> None:
    assert found["whole"][case] < ROUNDING


def test_shuffled_batches_are_the_same_on_all_replicas(found: dict[str, Any]) -> None:
    # `fit` has looked at a batch before. One that differs would move nothing, and raise.
    assert len(found["shuffled"]) == 6
    assert min(found["shuffled"]) > 0.0


@pytest.mark.feature("memory", "many new models on several replicas", "no graph is kept")
@pytest.mark.parametrize("parallel", ["samples", "batch", "means"])
def test_no_graph_outlives_its_training(found: dict[str, Any], parallel: str) -> None:
    # TensorFlow's own all-reduce keeps a graph per gradient function that it registers.
    assert found["kept"][parallel] <= 0


def test_whole_batches_reach_all_replicas(found: dict[str, Any]) -> None:
    batches = found["pipeline"]
    assert all(first == second for first, second in batches)
    assert [len(first) for first, _ in batches] == [2, 2, 1] * 2
    epochs = [[row for first, _ in batches[at : at + 3] for row in first] for at in (0, 3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(5))] * 2
    assert epochs[0] != epochs[1]
