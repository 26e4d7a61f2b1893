"""What samplers hand out: positions and weights whose mean is the kernel's."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import SGLD, ImportanceSampling, LangevinSteps
from lerh_tf.kernels.base import Samples
from lerh_tf.loss.objective import LossFunction
from tests.lerh_tf.kernels._network import (
    ANCHOR,
    ELSEWHERE,
    SHAPES,
    TOLERANCES,
    SeededNoise,
    flat,
    loss,
    relative_error,
    tensors,
)

TAU, NOISE = tf.constant(0.3, tf.float64), SeededNoise(4, *SHAPES)
NETWORK = LossFunction(loss, len(SHAPES))
KERNELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "importance": (ImportanceSampling(11, loss_multiplier=3.0), ()),
    "one sample": (ImportanceSampling(1), ()),
    "sgld": (SGLD(11, step_sizes=LangevinSteps(10.0)), ()),
    "sgld, one move": (SGLD(2, step_sizes=LangevinSteps(10.0)), ()),
    "sgld, going on": (
        SGLD(7, step_sizes=LangevinSteps(10.0), noise="linear", restart=False),
        (tensors(ELSEWHERE, "float64"), 2),
    ),
    "sgld, at the anchor": (
        SGLD(7, step_sizes=LangevinSteps(10.0), persistent=False, relative_to_tau=True),
        (tensors(ELSEWHERE, "float64"),),
    ),
}


def moved(samples: Samples, weights: Any) -> Any:
    means = [np.tensordot(weights, p, 1) for p in samples.positions]
    return flat(means) - ANCHOR


# One block, and several with a part of one.
@pytest.mark.parametrize("largest", [1024, 4])
@pytest.mark.parametrize("name", KERNELS)
def test_their_weighted_mean_is_the_kernel_s(
    name: str, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lerh_tf.noise._LARGEST_BLOCK", largest)
    kernel, start = KERNELS[name]
    anchor = tensors(ANCHOR, "float64")

    @tf.function(autograph=False)
    def both() -> Any:
        samples = kernel.sample(NETWORK, anchor, TAU, NOISE, *start)
        return samples, kernel(NETWORK, anchor, TAU, NOISE, *start)

    samples, estimate = both()
    shapes = [(kernel.samples, *shape) for shape in SHAPES]
    assert [p.shape.as_list() for p in samples.positions] == [list(shape) for shape in shapes]
    assert float(tf.reduce_sum(samples.weights)) == pytest.approx(1.0)
    expected = flat(estimate.displacement)
    assert relative_error([moved(samples, samples.weights)], expected) < TOLERANCES["float64"]
    if estimate.chain:
        last = [p[-1] for p in samples.positions]
        assert relative_error(last, flat(estimate.chain)) < TOLERANCES["float64"]
    if kernel.samples > 1:
        equal = np.full(kernel.samples, 1 / kernel.samples)
        assert relative_error([moved(samples, equal)], expected) > 1e-3


def test_samples_without_a_finite_loss_weigh_nothing() -> None:
    objective = LossFunction(
        lambda v: tf.where(v[0][0] > 0.0, tf.constant(np.inf, tf.float64), 0.0), 1
    )
    anchor = [tf.zeros(2, tf.float64)]
    samples = ImportanceSampling(9).sample(objective, anchor, TAU, SeededNoise(4, (2,)))
    left = samples.positions[0].numpy()[:, 0] <= 0.0
    assert 0 < left.sum() < 9
    np.testing.assert_allclose(samples.weights, left / left.sum())
