"""The minibatch loss of Table 1's network at given weights, and kernels on it, compiled once."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from benchmarks.estimators.other_noise import MakesNoise
from lerh_tf import ImportanceSampling, Kernel, LocalEntropy, PhiloxNoise
from lerh_tf.exact.subspace import find_subspace
from lerh_tf.kernels.base import Estimate
from lerh_tf.kernels.reduced import estimate_in_subspace
from lerh_tf.loss.compilation import compiled
from lerh_tf.loss.objective import Objective, displaced, scaled
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.noise import Noise
from reproduce import networks
from reproduce.data import Mnist
from reproduce.protocols import TABLE1
from reproduce.sampling import minibatches

Array = npt.NDArray[np.float64]
Batch = tuple[tf.Tensor, tf.Tensor]

_SETUP = TABLE1.training
_SHAPES = (
    (networks.PIXELS, networks.HIDDEN),
    (networks.HIDDEN,),
    (networks.HIDDEN, networks.CLASSES),
    (networks.CLASSES,),
)
_INTEGERS = tf.TensorSpec([_SETUP.batch_size], tf.int32)
_STARTS = 1000
"""Added to the seed of a chain's noise for that of its start."""
_LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def batches(data: Mnist, seed: int, first: int, count: int) -> list[Batch]:
    """Returns minibatches of Table 1's order, `count` from position `first` on."""
    order = minibatches(seed, len(data.train_images), _SETUP.batch_size, first + count)[first:]
    return [
        (
            tf.constant(data.train_images[rows].reshape(-1, networks.PIXELS) / 255.0, tf.float32),
            tf.constant(data.train_labels[rows], tf.int32),
        )
        for rows in order
    ]


def weights_after(data: Mnist, seed: int, updates: int, samples: int) -> list[tf.Tensor]:
    """Returns Table 1's network after some weight updates by gradients at tau = 0.01."""
    keras.utils.set_random_seed(seed)
    model = networks.build(_SETUP.network, _SETUP.initialization, seed)
    if updates:
        sampler = ImportanceSampling(samples, estimator="gradients")
        model.compile(LocalEntropy(0.01, sampler, seed=seed), _LOSS, jit_compile=False)
        x, y = (tf.concat(part, 0) for part in zip(*batches(data, seed, 0, updates), strict=True))
        model.fit(x, y, batch_size=_SETUP.batch_size, shuffle=False, verbose=0)
    return [tf.constant(variable.numpy()) for variable in model.trainable_variables]


def loss(weights: Sequence[tf.Tensor], batch: Batch) -> tf.Tensor:
    """Returns the mean cross-entropy of the network with one hidden layer."""
    kernel, bias, last_kernel, last_bias = weights
    x, y = batch
    logits = tf.nn.relu(x @ kernel + bias) @ last_kernel + last_bias
    return _LOSS(y, logits)


Estimated = tuple[Array, dict[str, float]]
Estimator = Callable[[Sequence[tf.Tensor], Batch, float, int], Estimated]


@functools.cache
def estimator(kernel: Kernel, seed: int, noise_of: MakesNoise = PhiloxNoise) -> Estimator:
    """Returns what takes (weights, minibatch, tau, position of the noise) to m - x, flattened.

    A chain that goes on from where it was starts at a draw of N(x, tau I), and what that start
    itself has in the mean is taken off.
    """

    @tf.function(autograph=False)
    def run(weights: Any, batch: Any, tau: tf.Tensor, position: tf.Tensor) -> Any:
        objective = ReplayedLoss.of_function(lambda w: loss(w, batch), weights)
        subspace = find_subspace(objective, [w.shape for w in weights])
        assert subspace is not None
        noise = functools.partial(noise_of, seed, position)
        if not kernel.has_chain:
            found = estimate_in_subspace(kernel, subspace, weights, tau, noise)
            return found.displacement, found.diagnostics
        draws = PhiloxNoise(seed + _STARTS, position, weights)(tf.constant(0, tf.int64), 1)
        y = [z[0] for z in scaled(tau, draws)]
        chain = displaced(weights, y)
        found = estimate_in_subspace(kernel, subspace, weights, tau, noise, chain)
        share = tf.cast(found.diagnostics["mean_start"], tf.float32)
        own = [d - share * y_v for d, y_v in zip(found.displacement, y, strict=True)]
        return own, found.diagnostics

    # A concrete function: of many `tf.function`s TensorFlow warns.
    traced = run.get_concrete_function(
        [tf.TensorSpec(shape) for shape in _SHAPES],
        (tf.TensorSpec([_SETUP.batch_size, networks.PIXELS]), _INTEGERS),
        tf.TensorSpec([]),
        tf.TensorSpec([], tf.int64),
    )

    def estimated(weights: Any, batch: Batch, tau: float, position: int) -> Estimated:
        displacement, diagnostics = traced(
            weights, batch, tf.constant(tau, tf.float32), tf.constant(position, tf.int64)
        )
        flat = np.concatenate([d.numpy().ravel() for d in displacement]).astype(np.float64)
        return flat, {name: float(value) for name, value in diagnostics.items()}

    return estimated


@dataclasses.dataclass(frozen=True)
class FromElsewhere(Kernel):
    """Algorithm 5 from a draw of N(x, tau I), which the first moves forget.

    Args:
        steps: Moves.
        samples: Gradients averaged per move.
    """

    steps: int
    samples: int

    reducible: ClassVar[bool] = True

    def __call__(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        chain: Sequence[tf.Tensor] = (),
        update: tf.Tensor | int = 0,
    ) -> Estimate:
        """See `Kernel`."""

        def mean_gradient(y: list[tf.Tensor], z: list[tf.Tensor]) -> list[tf.Tensor]:
            moved = [y_v + d for y_v, d in zip(y, scaled(tau, z), strict=True)]
            gradients = objective.vectorized_gradient(displaced(anchor, moved))
            return [tf.reduce_mean(g, 0) for g in gradients]

        gradient_of = compiled(mean_gradient, objective)

        def move(j: tf.Tensor, y: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
            # Halves the distance from the start until it is gone, then averages.
            averaged = tf.maximum(j - _FORGETTING, 1)
            a = tf.minimum(0.5, 1.0 / tf.cast(averaged, tf.float32))
            pairs = zip(y, gradient_of(y, noise(j, self.samples)), strict=True)
            return j + 1, [y_v - a * (y_v + tau * g) for y_v, g in pairs]

        start = [z[0] for z in scaled(tau, noise(tf.constant(0, tf.int64), 1))]
        _, y = tf.while_loop(
            lambda j, _: j <= self.steps,
            move,
            (tf.constant(1, tf.int64), start),
            parallel_iterations=1,
        )
        return Estimate(y, [], {}, tf.constant(True))


_FORGETTING = 40
"""Moves of size 1/2; where f is nearly linear 1e-12 of the start is left after them."""
