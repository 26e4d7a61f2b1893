"""Replicas that share one weight update make the update of one device."""

from typing import Any

import pytest

from lerh_tf import SGLD, HeatRegularization, ImportanceSampling, LocalEntropy
from lerh_tf.kernels.base import Estimate, Kernel
from tests.processes import printed_by

ROUNDING = 1e-5


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `_parallel.py` prints."""
    return printed_by("tests.lerh_tf.optimizers._parallel")


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


def test_samples_of_large_hidden_layers_are_those_of_one_process(found: dict[str, Any]) -> None:
    assert found["hidden"]["off"] < ROUNDING
    # Of 400 x 400 weights a sample draws what 12 rows see.
    assert found["hidden"]["drawn"] < 0.2


@pytest.mark.parametrize("call", ["graph", "eager", "spanning", "eager samples", "eager moves"])
def test_parts_of_other_sizes_and_eager_calls(found: dict[str, Any], call: str) -> None:
    assert found["loops"][call] < ROUNDING


def test_rows_of_an_embedding_are_those_that_all_parts_pick(found: dict[str, Any]) -> None:
    assert found["embedding"] < ROUNDING


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
