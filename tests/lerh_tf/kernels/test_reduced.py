"""Kernels in coordinates against the same kernels on whole weights, on one noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras.optimizers.schedules import PiecewiseConstantDecay

from lerh_tf import SGLD, ImportanceSampling, LangevinSteps, RobbinsMonro
from lerh_tf.exact.subspace import find_subspace
from lerh_tf.kernels.base import Estimate, Kernel
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.loss.objective import LossFunction, native
from lerh_tf.noise import PhiloxNoise, working_dtype
from tests.lerh_tf._keras_steps import relative_error
from tests.lerh_tf._kernels import flat, replayed
from tests.lerh_tf._subspaces import FOUND, Array, Case, loss_of, signature
from tests.lerh_tf.kernels._pathwise import (
    Blocks,
    injected,
    noise_like,
    responses,
    step_sizes_of,
)

TAU = 0.125
UPDATES = 3
BLOCKS, SIZE = 3, 4

# A block of noise holds four samples here: none of the last blocks is full.
KERNELS: dict[str, Kernel] = {
    "sgld": SGLD(10, step_sizes=LangevinSteps(5.0)),
    "importance-sampling": ImportanceSampling(10, loss_multiplier=5.0),
    "robbins-monro": RobbinsMonro(3, 3),
}
TOLERANCES = {"float32": 1e-5, "float64": 1e-10}
# Weights and losses in numbers of 8 bits, rounded at other places: about 2**-8 in each product.
LOW_PRECISION = {"mixed-bfloat16": 2**-6, "bfloat16": 2**-6}


def batches(case: Case, dtype: str, special: str) -> list[list[Array]]:
    """Three minibatches of other inputs, the last one ragged."""
    rng = np.random.default_rng(3)

    def next_batch(update: int) -> list[Array]:
        rows = [rng.permutation(x.ravel()).reshape(x.shape) for x in case.x]
        rows = [x.astype(dtype) if x.dtype.kind == "f" else x for x in rows]
        if special == "rank-deficient" and update == 0:
            rows = [np.stack([x[0], 2 * x[0], x[0]]) for x in rows]
        if special == "rank-deficient" and update == 1:
            rows = [np.zeros_like(x) for x in rows]
        if special == "wide":
            rows = [np.concatenate([x, x[::-1] + 1, x - 2, x**2, np.sin(x)]) for x in rows]
        return [x[:2] for x in rows] if update == UPDATES - 1 else rows

    return [next_batch(update) for update in range(UPDATES)]


@dataclass
class Pair:
    """What the two kernels returned after each update: displacement, chain, estimate of F_tau."""

    plain: list[tuple[Array, Array, Array]]
    reduced: list[tuple[Array, Array, Array]]

    def errors(self) -> list[float]:
        """Relative errors of the reduced displacements and moves of the chain."""
        found = []
        for plain, reduced in zip(self.plain, self.reduced, strict=True):
            parts = zip(reduced[:2], plain[:2], strict=True)
            found += [relative_error(r, p) for r, p in parts if p.size]
        return found

    def errors_of_local_entropy(self) -> list[float]:
        """Relative errors of the estimates of F_tau."""
        parts = zip(self.reduced, self.plain, strict=True)
        return [relative_error(r[2], p[2]) for r, p in parts if p[2].size]


def run(
    case: Case,
    kernel: Kernel,
    dtype: str,
    special: str = "",
    reduced_kernel: Kernel | None = None,
) -> Pair:
    """Three updates of an algorithm, plain and reduced, each from where it came to."""
    in_coordinates = reduced_kernel or kernel
    model = case.model()
    variables = model.trainable_variables
    loss = loss_of(model)
    z = noise_like(variables, UPDATES, BLOCKS, SIZE, dtype)

    @tf.function(autograph=False)
    def update(states: Any, z: list[tf.Tensor], inputs: list[tf.Tensor]) -> Any:
        objective = replayed(loss(*inputs), variables)
        assert all(objective.is_used)
        subspace = find_subspace(objective, [v.shape for v in variables])
        assert subspace is not None
        tau = tf.constant(TAU, dtype)
        (x, chain), (u, reduced_chain) = states
        noise = injected(kernel, subspace, u, TAU, z)
        return (
            kernel(objective, x, tau, Blocks(z), chain),
            estimate_in_subspace(in_coordinates, subspace, u, tau, noise, reduced_chain),
        )

    spec = signature(case.x, tf.as_dtype(dtype))
    start = [tf.convert_to_tensor(native(v)) for v in variables]
    chain = [tf.cast(v, working_dtype(v.dtype)) for v in start] if kernel.has_chain else []
    states = [(start, chain), (start, chain)]
    found = Pair([], [])
    concrete = update.get_concrete_function(
        states, [tf.TensorSpec(n.shape[1:], dtype) for n in z], spec
    )
    for k, inputs in enumerate(batches(case, dtype, special)):
        estimates = concrete(
            states, [tf.constant(n[k]) for n in z], [tf.constant(x) for x in inputs]
        )
        for record, estimate, (x, _) in zip(
            (found.plain, found.reduced), estimates, states, strict=True
        ):
            record.append(_recorded(estimate, x))
        states = [_moved(x, e) for (x, _), e in zip(states, estimates, strict=True)]
    return found


def _recorded(estimate: Estimate, x: Sequence[tf.Tensor]) -> tuple[Array, Array, Array]:
    chain = [c - tf.cast(w, c.dtype) for c, w in zip(estimate.chain, x, strict=False)]
    arrays = [[t.numpy() for t in tensors] for tensors in (estimate.displacement, chain)]
    told = [float(v) for k, v in estimate.diagnostics.items() if k == "local_entropy"]
    return flat(arrays[0]), flat(arrays[1]) if chain else np.zeros(0), np.array(told)


def _moved(x: Sequence[tf.Tensor], estimate: Estimate) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    moved = [
        tf.cast(tf.cast(w, d.dtype) + d, w.dtype)
        for w, d in zip(x, estimate.displacement, strict=True)
    ]
    return moved, estimate.chain


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lerh_tf.noise._LARGEST_BLOCK", SIZE)


MATRIX = [
    ("dense", "float32", ""),
    ("dense", "float64", "rank-deficient"),
    ("dense", "float64", "wide"),
    ("dense-rank-3", "float32", ""),
    ("dense-rank-3", "float64", ""),
    ("embedding", "float32", ""),
    ("embedding", "float64", ""),
]


@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "dtype", "special"), MATRIX)
def test_reduced_kernel_follows_the_plain_one(
    name: str, dtype: str, special: str, kernel: str
) -> None:
    case = Case(FOUND[name].build, FOUND[name].x, 0, 0, dtype)
    pair = run(case, KERNELS[kernel], dtype, special)
    assert max(pair.errors() + pair.errors_of_local_entropy()) < TOLERANCES[dtype]


@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", LOW_PRECISION)
def test_reduced_kernel_follows_the_plain_one_in_low_precision(name: str, kernel: str) -> None:
    assert max(run(FOUND[name], KERNELS[kernel], "float32").errors()) < LOW_PRECISION[name]


@pytest.mark.parametrize("kernel", KERNELS)
def test_reduced_kernel_follows_the_plain_one_compiled(kernel: str) -> None:
    case = Case(FOUND["embedding"].build, FOUND["embedding"].x, 0, 0, "float64")
    assert max(run(case, KERNELS[kernel], "float64").errors()) < TOLERANCES["float64"]


@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize(
    "kernel",
    [
        SGLD(10, step_sizes=LangevinSteps(5.0), noise="linear"),
        SGLD(10, step_sizes=LangevinSteps(5.0), persistent=False),
    ],
    ids=["linear", "not-persistent"],
)
def test_readings_keep_their_meaning(kernel: SGLD) -> None:
    case = Case(FOUND["dense"].build, FOUND["dense"].x, 0, 0, "float64")
    assert max(run(case, kernel, "float64").errors()) < TOLERANCES["float64"]


@pytest.mark.usefixtures("plain_loops")
def test_control_variate_moves_the_mean_and_leaves_the_end_of_the_chain() -> None:
    case = Case(FOUND["dense"].build, FOUND["dense"].x, 0, 0, "float64")
    plain, averaged = (
        SGLD(10, step_sizes=LangevinSteps(5.0), control_variate=cv) for cv in (False, True)
    )
    pair = run(case, plain, "float64", reduced_kernel=averaged)
    displacement, last = pair.errors()[:2]
    assert displacement > 0.1
    assert last < TOLERANCES["float64"]


@pytest.mark.usefixtures("plain_loops")
def test_without_a_chain_it_starts_at_the_weights() -> None:
    case = Case(FOUND["dense"].build, FOUND["dense"].x, 0, 0, "float64")
    model = case.model()
    variables, loss = model.trainable_variables, loss_of(model)

    @tf.function(autograph=False)
    def both(inputs: list[tf.Tensor]) -> list[Estimate]:
        objective = replayed(loss(*inputs), variables)
        subspace = find_subspace(objective, [v.shape for v in variables])
        assert subspace is not None
        x, tau = [tf.convert_to_tensor(native(v)) for v in variables], tf.constant(TAU, tf.float64)
        noise_for = lambda like: PhiloxNoise(0, tf.constant(0, tf.int64), like)  # noqa: E731
        return [
            estimate_in_subspace(KERNELS["sgld"], subspace, x, tau, noise_for, chain)
            for chain in ((), x)
        ]

    alone, at_weights = both([tf.constant(x) for x in case.x])
    for found, expected in zip(
        tf.nest.flatten(alone[:2]), tf.nest.flatten(at_weights[:2]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


FLAT = LossFunction(lambda weights: 0.0 * tf.reduce_sum(weights[0]), 1)
CONSTANT = PiecewiseConstantDecay([3], [0.5, 0.25])


def complement(kernel: Kernel, taus: Sequence[float], update: int = 0) -> list[Any]:
    """The coefficients that the kernel gives for dimensions where f is flat, per tau."""

    @tf.function(autograph=False)
    def law(tau: tf.Tensor, update: tf.Tensor) -> Any:
        x = [tf.zeros([1], tf.float64)]
        zeros = Blocks([tf.zeros([100, SIZE, 1], tf.float64)])
        return kernel(FLAT, x, tau, noise=zeros, chain=x, update=update)

    k = tf.constant(update, tf.int64)
    return [law(tf.constant(tau, tf.float64), k).complement for tau in taus]


# With the smallest one the factors 1 - eps / (2 tau) are negative.
TAUS = (0.02, 0.1, 10.0)


@pytest.mark.parametrize("noise", ["langevin", "linear"])
@pytest.mark.parametrize("samples", [2, 3, 50])
def test_complement_of_sgld_is_the_recursion_s(samples: int, noise: str) -> None:
    assert_same_law(SGLD(samples, step_sizes=LangevinSteps(10.0), noise=noise))


@pytest.mark.parametrize("restart", [True, False])
def test_complement_of_later_updates(restart: bool) -> None:
    assert_same_law(SGLD(7, step_sizes=LangevinSteps(10.0), restart=restart), update=3)


def test_complement_for_any_step_sizes() -> None:
    assert_same_law(SGLD(7, step_sizes=CONSTANT))


def assert_same_law(kernel: SGLD, update: int = 0) -> None:
    for tau, law in zip(TAUS, complement(kernel, TAUS, update), strict=True):
        mean, last = responses(*step_sizes_of(kernel, update), tau)
        shared, own = (float(c) for c in law.last_noise)
        actual = {
            "mean_start": float(law.mean_start),
            "mean_variance": float(law.mean_noise) ** 2,
            "last_start": float(law.last_start),
            "last_variance": shared**2 + own**2,
            "covariance": float(law.mean_noise) * shared,
        }
        expected = {
            "mean_start": mean[0],
            "mean_variance": mean[1:] @ mean[1:],
            "last_start": last[0],
            "last_variance": last[1:] @ last[1:],
            "covariance": mean[1:] @ last[1:],
        }
        assert actual == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_small_tau_makes_factors_negative() -> None:
    eps, _ = step_sizes_of(SGLD(3, step_sizes=LangevinSteps(10.0)))
    assert (1 - eps / (2 * TAUS[0]) < 0).all()


@pytest.mark.parametrize("samples", [1, 9])
def test_complement_of_importance_sampling_is_tau_over_the_effective_sample_size(
    samples: int,
) -> None:
    (law,) = complement(ImportanceSampling(samples), [0.25])
    np.testing.assert_allclose(law.mean_noise, np.sqrt(0.25 / samples), rtol=1e-12)
    assert float(law.mean_start) == float(law.last_start) == 0.0


def test_complement_of_robbins_monro_does_not_move() -> None:
    assert complement(RobbinsMonro(2, 2), [0.25]) == [None]
