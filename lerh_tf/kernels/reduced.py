"""Algorithms 3, 4 and 5 on the subspace that the minibatch sees, the same in distribution."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from lerh_tf.exact.reductions import Reduction
from lerh_tf.exact.subspace import Subspace
from lerh_tf.kernels.base import Complement, Estimate
from lerh_tf.noise import COMPLEMENT_BLOCK, Noise, working_dtype

NoiseFor = Callable[[Sequence[tf.Tensor]], Noise]


def estimate_in_subspace(
    kernel: Callable[..., Estimate],
    subspace: Subspace,
    anchor: Sequence[tf.Tensor],
    tau: tf.Tensor,
    noise_for: NoiseFor,
    chain: Sequence[tf.Tensor] = (),
    update: tf.Tensor | int = 0,
) -> Estimate:
    """Runs a kernel on coordinates and draws what it would have done to the complement.

    Args:
        kernel: the estimator of m.
        subspace: the loss in coordinates.
        anchor: the current weights x, one tensor per used variable.
        tau: variance of the Gaussian (paper's tau), scalar tensor.
        noise_for: returns a source of noise of the shapes of the tensors it is given.
        chain: where the Markov chain starts, one position per variable; empty for none.
        update: the raw count of weight updates so far.

    Returns:
        The estimate of m for the whole weights, in law the one that the kernel gives on them.
    """
    starts = chain if chain else anchor
    parts = [
        _Part.of(reduction, x, start)
        for reduction, x, start in zip(subspace.reductions, anchor, starts, strict=True)
    ]
    coordinates = [part.coordinates for part in parts]
    inner = kernel(
        subspace.objective,
        coordinates,
        tau,
        _seen(noise_for(subspace.objective.noise_like(coordinates)), subspace.reductions),
        [part.coordinates + part.reduced(part.y) for part in parts] if chain else [],
        update,
    )
    law = inner.complement
    draws = _draws(parts, law, noise_for, 2 if inner.chain else 1)
    displacement = [
        part.lifted(d) + part.mean(law, n)
        for part, d, n in zip(parts, inner.displacement, draws, strict=True)
    ]
    last = [
        part.x + part.lifted(position - part.coordinates) + part.last(law, n)
        for part, position, n in zip(parts, inner.chain, draws, strict=False)
    ]
    estimate = Estimate(displacement, last, _diagnostics(inner, law, parts), inner.is_valid)
    return estimate.dropped_unless(inner.is_valid, [part.x + part.y for part in parts])


class _Part(NamedTuple):
    """One weight: seen through its reduction, or whole where that is None.

    Attributes:
        reduction: of the weight.
        x: the weight, in at least float32.
        y: where the chain starts, as a displacement from x.
        coordinates: of x.
    """

    reduction: Reduction | None
    x: tf.Tensor
    y: tf.Tensor
    coordinates: tf.Tensor

    @classmethod
    def of(cls, reduction: Reduction | None, x: tf.Tensor, start: tf.Tensor) -> "_Part":
        dtype = working_dtype(x.dtype)
        x = tf.cast(x, dtype)
        coordinates = x if reduction is None else reduction.reduce(x)
        return cls(reduction, x, tf.cast(start, dtype) - x, coordinates)

    def reduced(self, weight: tf.Tensor) -> tf.Tensor:
        return weight if self.reduction is None else self.reduction.reduce(weight)

    def lifted(self, coordinates: tf.Tensor) -> tf.Tensor:
        return coordinates if self.reduction is None else self.reduction.lift(coordinates)

    def mean(self, law: Complement | None, n: tf.Tensor) -> tf.Tensor:
        """Returns the complement of the mean's displacement; n of shape [draws, *shape]."""
        if self.reduction is None or law is None:
            return tf.zeros_like(self.x)
        start, noise = (tf.cast(c, n.dtype) for c in (law.mean_start, law.mean_noise))
        return self.reduction.complement(start * self.y + noise * n[0])

    def last(self, law: Complement | None, n: tf.Tensor) -> tf.Tensor:
        """Returns the complement of the last state's displacement; n of shape [draws, *shape]."""
        if self.reduction is None or law is None:
            return tf.zeros_like(self.x)
        start, shared, own = (tf.cast(c, n.dtype) for c in (law.last_start, *law.last_noise))
        return self.reduction.complement(start * self.y + shared * n[0] + own * n[1])

    @property
    def unseen_size(self) -> tf.Tensor:
        """Number of dimensions that the minibatch does not see, as a float64 tensor."""
        if self.reduction is None:
            return tf.zeros([], tf.float64)
        rows, *columns = self.x.shape
        unseen = tf.cast(rows - self.reduction.rank, tf.float64)
        return unseen * float(tf.TensorShape(columns).num_elements())


def _draws(
    parts: Sequence[_Part], law: Complement | None, noise_for: NoiseFor, count: int
) -> list[tf.Tensor]:
    """Returns `count` draws of the whole of each weight that is reduced, [count, *shape]."""
    if law is None:
        return [tf.zeros([])] * len(parts)
    reduced = [part.x for part in parts if part.reduction is not None]
    draws = iter(noise_for(reduced)(tf.constant(COMPLEMENT_BLOCK, tf.int64), count))
    return [tf.zeros([]) if part.reduction is None else next(draws) for part in parts]


def _seen(noise: Noise, reductions: Sequence[Reduction | None]) -> Noise:
    """Returns the noise without the coordinates that stand for no dimension of a weight."""

    def seen(
        block: tf.Tensor, samples: int | tf.Tensor, *first: int | tf.Tensor
    ) -> list[tf.Tensor]:
        return [
            z if reduction is None else reduction.seen(z)
            for z, reduction in zip(noise(block, samples, *first), reductions, strict=True)
        ]

    return seen


def _diagnostics(
    inner: Estimate, law: Complement | None, parts: Sequence[_Part]
) -> dict[str, tf.Tensor]:
    """Returns the kernel's diagnostics for the whole weights: the complement has an error too."""
    diagnostics = dict(inner.diagnostics)
    if law is not None and "standard_error" in diagnostics:
        unseen = tf.add_n([part.unseen_size for part in parts])
        error = tf.cast(diagnostics["standard_error"], tf.float64)
        deviation = tf.cast(law.mean_noise, tf.float64)
        diagnostics["standard_error"] = tf.sqrt(error**2 + unseen * deviation**2)
    return diagnostics
