"""Noise that is not independent, tried in the estimators: the same law for each sample alone."""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from scipy.special import ndtri
from scipy.stats import qmc

from lerh_tf import PhiloxNoise
from lerh_tf.noise import Noise

MakesNoise = Callable[[int, tf.Tensor, Sequence[tf.Tensor]], Noise]
"""Takes a seed, a position and tensors of the shapes to draw."""


class Antithetic:
    """Pairs z, -z."""

    def __init__(self, seed: int, position: tf.Tensor, like: Sequence[tf.Tensor]):
        self._noise = PhiloxNoise(seed, position, like)

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        """See `lerh_tf.noise.Noise`."""
        halves = self._noise(block, (samples + 1) // 2)
        return [tf.concat([z, -z], 0)[:samples] for z in halves]


class Common:
    """The same numbers in every block: common random numbers of Algorithm 5's moves."""

    def __init__(self, seed: int, position: tf.Tensor, like: Sequence[tf.Tensor]):
        self._noise = PhiloxNoise(seed, position, like)

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        """See `lerh_tf.noise.Noise`."""
        return self._noise(tf.zeros_like(block), samples)


class Sobol:
    """Normal quantiles of scrambled Sobol points, one net for all samples: they fill one block."""

    def __init__(self, seed: int, position: tf.Tensor, like: Sequence[tf.Tensor]):
        self._like = list(like)
        self._seed, self._position = seed, position

    def __call__(self, block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        """See `lerh_tf.noise.Noise`."""
        sizes = [int(x.shape.num_elements()) for x in self._like]
        points = tf.numpy_function(
            functools.partial(_points, sum(sizes), self._seed),
            [self._position, samples],
            tf.float64,
        )
        drawn = tf.split(tf.reshape(points, [-1, sum(sizes)]), sizes, 1)
        return [
            tf.cast(tf.reshape(z, [-1, *x.shape]), x.dtype)
            for z, x in zip(drawn, self._like, strict=True)
        ]


def _points(dimensions: int, seed: int, position: int, samples: int) -> np.ndarray:
    net = qmc.Sobol(dimensions, rng=np.random.default_rng([seed, int(position)]))
    return ndtri(net.random(int(samples)))


NOISES: dict[str, MakesNoise] = {
    "independent": PhiloxNoise,
    "antithetic pairs": Antithetic,
    "common random numbers": Common,
    "scrambled Sobol points": Sobol,
}
"""By name."""
