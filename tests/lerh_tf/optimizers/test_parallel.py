"""Replicas that share one weight update make the update of one device."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy
from lerh_tf.kernels.base import Estimate, Kernel

ROOT = Path(__file__).resolve().parents[3]
ROUNDING = 1e-5


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `_parallel.py` prints: logical devices are set before TensorFlow starts."""
    command = [sys.executable, "-m", "tests.lerh_tf.optimizers._parallel"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


CASES = [
    *(f"importance, samples, {count}" for count in (2, 3, 4)),
    "importance, batch, 2",
    "control variate, samples, 2",
    "control variate, batch, 2",
    "gradients, samples, 2",
    "gradients, batch, 3",
    "robbins-monro, samples, 2",
    "robbins-monro, batch, 2",
]


@pytest.mark.feature(
    "training",
    '`parallel="samples"` and `"batch"` on several replicas',
    "the update of one device",
)
@pytest.mark.parametrize("case", CASES)
def test_ten_updates_are_those_of_one_process(found: dict[str, Any], case: str) -> None:
    assert found["shared"].keys() == set(CASES)
    assert found["shared"][case]["off"] < ROUNDING
    assert found["shared"][case]["apart"] == 0.0


@pytest.mark.parametrize("case", CASES)
def test_diagnostics_are_those_of_one_process(found: dict[str, Any], case: str) -> None:
    differences = dict(found["shared"][case]["diagnostics"])
    if case.startswith("gradients, batch"):
        # It takes the gradients of all rows at each sample, which no replica has: a bound.
        assert 0.0 < differences.pop("standard_error") < 1.0
    assert all(abs(each) < 1e-4 for each in differences.values())


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


def test_wrong_variants_are_far_off(found: dict[str, Any]) -> None:
    assert set(found["wrong"]) == {
        "noise shifted by replica, samples",
        "noise shifted by replica, batch",
        "local means averaged",
    }
    assert min(found["wrong"].values()) > 0.01


def test_chains_are_independent_go_on_and_are_averaged(found: dict[str, Any]) -> None:
    assert found["chains"]["off"] < ROUNDING
    assert found["chains"]["apart"] > 0.01
    # Of the mean of two the standard error is the root of a half.
    assert found["chains"]["error"] == pytest.approx(0.5**0.5, rel=1e-5)


def test_blocks_are_those_of_the_whole_where_a_forward_pass_limits_them(
    found: dict[str, Any],
) -> None:
    assert found["large"] < ROUNDING


@pytest.mark.parametrize("call", ["graph", "eager", "spanning", "eager samples", "eager moves"])
def test_parts_of_other_sizes_and_eager_calls(found: dict[str, Any], call: str) -> None:
    assert found["loops"][call] < ROUNDING


def test_rows_of_an_embedding_are_those_that_all_parts_pick(found: dict[str, Any]) -> None:
    assert found["embedding"] < ROUNDING


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


class Own(Kernel):
    """Knows of no replicas."""

    def __call__(self, *_: Any) -> Estimate:
        raise NotImplementedError


@pytest.mark.parametrize("parallel", ["batch", "samples"])
def test_a_kernel_is_asked_for_what_it_can_split(parallel: str) -> None:
    with pytest.raises(ValueError, match=r'`parallel` must be "auto" or what `Own` can split'):
        LocalEntropy(0.1, Own(), parallel=parallel)


def test_a_chain_splits_no_minibatch() -> None:
    with pytest.raises(ValueError, match="what `SGLD` can split"):
        LocalEntropy(0.1, SGLD(5), parallel="batch")
    assert LocalEntropy(0.1, SGLD(5), parallel="samples").parallel == "samples"


@pytest.mark.parametrize("parallel", ["sample", None, 2])
def test_parallel_is_one_of_four(parallel: Any) -> None:
    with pytest.raises(ValueError, match="`parallel` must be one of"):
        HeatRegularization(0.1, parallel=parallel)


def test_parallel_is_saved() -> None:
    made = LocalEntropy(0.1, ImportanceSampling(5), parallel="samples")
    assert LocalEntropy.from_config(made.get_config()).parallel == "samples"
    assert LocalEntropy(0.1).parallel == "auto"
