"""This library through Keras's stock `fit`, and Keras's own SGD."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.work import Work
from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    Kernel,
    LangevinSteps,
    LocalEntropy,
    Noise,
    RobbinsMonro,
    RobbinsMonroSteps,
)
from lerh_tf.exact.subspace import find_subspace
from lerh_tf.kernels.reduced import NoiseFor, estimate_in_subspace
from lerh_tf.loss.objective import Objective
from lerh_tf.loss.replayed import ReplayedLoss


def subspace(problem: Problem, work: Work, seed: int) -> "Trained":
    """Returns the library as it is used."""
    return Trained(problem, _optimizer(work, seed, "auto"))


def plain(problem: Problem, work: Work, seed: int) -> "Trained":
    """Returns the library with all weights sampled."""
    return Trained(problem, _optimizer(work, seed, False))


def gradient_descent(problem: Problem, work: Work, seed: int) -> "Trained":
    """Returns Keras's SGD."""
    return Trained(problem, keras.optimizers.SGD(work.tau))


def noiseless_subspace(problem: Problem, work: Work) -> "Kernelled":
    """Returns the library's kernel on the subspace, without noise."""
    return Kernelled(problem, work, reduce=True, noise=silence)


def noiseless_plain(problem: Problem, work: Work) -> "Kernelled":
    """Returns the library's kernel on all weights, without noise."""
    return Kernelled(problem, work, reduce=False, noise=silence)


def noiseless_gradient_descent(problem: Problem, work: Work) -> "Trained":
    """Returns Keras's SGD, which has no noise."""
    return gradient_descent(problem, work, 0)


class Trained:
    """A Keras model and its optimizer; an update is one `train_on_batch`."""

    def __init__(self, problem: Problem, optimizer: keras.optimizers.Optimizer):
        self._first = problem.weights
        self._batch = tf.constant(problem.images), tf.constant(problem.labels)
        self._model = _network(problem)
        self._model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        self.restart()

    def update(self) -> None:
        """See `System`."""
        self._model.train_on_batch(*self._batch)

    def weights(self) -> Sequence[Array]:
        """See `System`."""
        return self._model.get_weights()

    def chain(self) -> Sequence[Array]:
        """See `System`."""
        variables = self._model.optimizer.variables
        return [variable.numpy() for variable in variables if variable.name.endswith("_chain")]

    def restart(self) -> None:
        """See `System`."""
        self._model.set_weights(self._first)
        for variable in self._model.optimizer.variables:
            if variable.name == "chain_started":
                variable.assign(tf.zeros(variable.shape))


class Kernelled:
    """A kernel of the library on a given source of noise.

    Args:
        problem: weights and minibatch.
        work: the update.
        reduce: whether to sample in the subspace that the minibatch sees.
        noise: takes the tensors whose shapes are wanted to a source of noise.
        evaluated: takes the loss to what the kernel evaluates in its place; None: itself.
    """

    _x: list[tf.Tensor]
    _chain: list[tf.Tensor]

    def __init__(
        self,
        problem: Problem,
        work: Work,
        *,
        reduce: bool,
        noise: NoiseFor,
        evaluated: Callable[[Objective], Objective] | None = None,
    ):
        self._problem, self._work, self._reduce, self._noise = problem, work, reduce, noise
        self._evaluated = evaluated or (lambda objective: objective)
        self._step = tf.function(self._estimate, autograph=False)
        self.restart()

    def update(self) -> None:
        """See `System`."""
        displacement, self._chain = self._step(self._x, self._chain)
        self._x = [x + d for x, d in zip(self._x, displacement, strict=True)]

    def weights(self) -> Sequence[Array]:
        """See `System`."""
        return [x.numpy() for x in self._x]

    def chain(self) -> Sequence[Array]:
        """See `System`."""
        return [y.numpy() for y in self._chain]

    def restart(self) -> None:
        """See `System`."""
        self._x = [tf.constant(w) for w in self._problem.weights]
        self._chain = self._x if self._work.algorithm == "sgld" else []

    def _estimate(
        self, x: list[tf.Tensor], chain: list[tf.Tensor]
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        objective = ReplayedLoss.of_function(self._loss, x)
        kernel, tau = _kernel(self._work), tf.constant(self._work.tau)
        if self._reduce:
            found = find_subspace(objective, [x_v.shape for x_v in x])
            if found is None:
                raise ValueError("the minibatch must see a subspace only; it sees all weights")
            found = found._replace(objective=self._evaluated(found.objective))
            estimate = estimate_in_subspace(kernel, found, x, tau, self._noise, chain)
        else:
            estimate = kernel(self._evaluated(objective), x, tau, self._noise(x), chain)
        return estimate.displacement, estimate.chain

    def _loss(self, weights: Sequence[tf.Tensor]) -> tf.Tensor:
        hidden = tf.nn.relu(self._problem.images @ weights[0] + weights[1])
        logits = hidden @ weights[2] + weights[3]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(self._problem.labels, logits)
        return tf.reduce_mean(losses)


def displacement_on(problem: Problem, work: Work, z: Array) -> list[Array]:
    """Returns what the plain kernel makes of the samples' noise, m - x.

    Args:
        problem: weights and minibatch.
        work: importance sampling.
        z: standard normal noise of shape (samples, size), in the order of the weights.
    """
    sizes = np.cumsum([w.size for w in problem.weights])[:-1]
    parts = [
        part.reshape(-1, *w.shape).astype(w.dtype)
        for part, w in zip(np.split(z, sizes, axis=1), problem.weights, strict=True)
    ]

    def noise(like: Sequence[tf.Tensor]) -> Noise:
        def draw(block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
            chosen = tf.cast(block, tf.int32) * samples + tf.range(samples)
            # The last block may reach beyond the samples; what it finds there does not count.
            return [tf.gather(part, tf.minimum(chosen, len(z) - 1)) for part in parts]

        return draw

    system = Kernelled(problem, work, reduce=False, noise=noise)
    system.update()
    return [new - old for new, old in zip(system.weights(), problem.weights, strict=True)]


def silence(like: Sequence[tf.Tensor]) -> Noise:
    """Returns a source of zeros in the place of noise."""

    def draw(block: tf.Tensor, samples: int | tf.Tensor) -> list[tf.Tensor]:
        return [tf.zeros(tf.concat([[samples], tf.shape(x)], 0), x.dtype) for x in like]

    return draw


def _optimizer(work: Work, seed: int, reduce: str | bool) -> keras.optimizers.Optimizer:
    kernel = _kernel(work)
    if isinstance(kernel, RobbinsMonro):
        return HeatRegularization(work.tau, kernel, seed=seed, subspace=reduce)
    return LocalEntropy(work.tau, kernel, seed=seed, subspace=reduce)


def _kernel(work: Work) -> Kernel:
    match work.algorithm:
        case "sgld":
            return SGLD(work.samples, step_sizes=LangevinSteps(work.offset))
        case "is":
            return ImportanceSampling(work.samples, loss_multiplier=work.loss_multiplier)
        case _:
            return RobbinsMonro(
                work.steps, work.samples, step_sizes=RobbinsMonroSteps(work.c, work.alpha)
            )


def _network(problem: Problem) -> keras.Model:
    pixels, hidden = problem.weights[0].shape
    return keras.Sequential(
        [
            keras.Input((pixels,)),
            keras.layers.Dense(hidden, activation="relu"),
            keras.layers.Dense(problem.weights[-1].size),
        ]
    )
