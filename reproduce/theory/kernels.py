"""Algorithms 1 and 2 with their means estimated by Algorithms 3-5: how often does the loss fall?"""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from lerh_tf import (
    SGLD,
    ImportanceSampling,
    Kernel,
    LossFunction,
    PhiloxNoise,
    RobbinsMonro,
    RobbinsMonroSteps,
)
from lerh_tf.oracles import Landscape, heat_step
from reproduce.landscapes.convolution import Convolution
from reproduce.landscapes.functions import FUNCTIONS, Array, Function
from reproduce.theory import protocol
from reproduce.theory.protocol import Estimation

Step = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

_BITS_OF_STEP = 20
"""Weight updates of a repetition that a noise counter has room for, as a power of two."""


def measure(setup: Estimation, function: str, kernel: str, seed: int) -> dict[str, list[list[int]]]:
    """Runs a kernel from every start, at every number of samples.

    Args:
        setup: Budget, tau and starts.
        function: The landscape's name.
        kernel: One of `protocol.KERNELS`; Robbins-Monro is judged by F^H_tau, the others by F_tau.
        seed: Of the noise.

    Returns:
        Per number of samples (as text), for each repetition and each of its weight updates, 1
        where the regularized loss did not rise and 0 where it did.
    """
    falls: dict[str, list[list[int]]] = {}
    for samples in setup.samples:
        paths = _paths(setup, FUNCTIONS[function], _kernel(kernel, samples), seed)
        values = _regularized(FUNCTIONS[function], setup.tau, kernel, paths)
        falls[str(samples)] = (np.diff(values, axis=1) <= 0).astype(int).tolist()
    return falls


def growing_steps(steps: int) -> dict[str, list[float]]:
    """Robbins-Monro's distance from its fixed point, relative to the start's, by step schedule.

    Args:
        steps: J.

    Returns:
        `decaying`: c j^-alpha; `growing`: c j^alpha, as printed in Section 5.2.
    """
    return {
        name: [_remaining(RobbinsMonro(steps, 30, step_sizes=RobbinsMonroSteps(growing=growing)))]
        for name, growing in (("decaying", False), ("growing", True))
    }


def _remaining(solver: RobbinsMonro) -> float:
    x, tau, function = 2.0, 0.01, FUNCTIONS["quadratic"]
    m = float(heat_step(Landscape(function, tau), x).value[0])
    start = tf.constant([x], tf.float64)
    found, _ = _compiled(function, solver, tau, seed=0)(start, start, tf.constant(0, tf.int64))
    return abs((float(found[0]) - m) / (x - m))


def _kernel(name: str, samples: int) -> Kernel:
    root = math.isqrt(samples)
    kernels: dict[str, Callable[[], Kernel]] = {
        protocol.SGLD: lambda: SGLD(samples),
        protocol.SGLD_LINEAR: lambda: SGLD(samples, noise="linear"),
        protocol.IMPORTANCE: lambda: ImportanceSampling(samples),
        protocol.ROBBINS_MONRO: lambda: RobbinsMonro(root, root),
    }
    return kernels[name]()


def _paths(setup: Estimation, function: Function, kernel: Kernel, seed: int) -> Array:
    """The iterates of all repetitions from all starts, shape (runs, steps + 1, d)."""
    step = _compiled(function, kernel, setup.tau, seed)
    starts = [start for start in setup.starts[function.name] for _ in range(setup.repetitions)]
    return np.stack([_path(step, start, run, setup.steps) for run, start in enumerate(starts)])


def _path(step: Step, start: tuple[float, ...], run: int, steps: int) -> Array:
    x = chain = tf.constant(start, tf.float64)
    path = [x.numpy()]
    for k in range(steps):
        # No two draws share a counter: (run, update).
        x, chain = step(x, chain, tf.constant((run << _BITS_OF_STEP) + k, tf.int64))
        path.append(x.numpy())
    return np.stack(path)


def _compiled(function: Function, kernel: Kernel, tau: float, seed: int) -> Step:
    """One weight update: (x, chain, update) to the next x and the chain's last state."""
    objective = LossFunction(lambda weights: function.loss(weights[0], tf), 1)

    # Called as a concrete function, it is traced here and now.
    point = tf.TensorSpec([function.dimension], tf.float64)

    @tf.function(autograph=False)
    def step(x: tf.Tensor, chain: tf.Tensor, update: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        noise = PhiloxNoise(seed, update, [x])
        found = kernel(objective, [x], tf.constant(tau, tf.float64), noise, [chain], update)
        return x + found.displacement[0], found.chain[0] if found.chain else x

    return step.get_concrete_function(point, point, tf.TensorSpec([], tf.int64))


def _regularized(function: Function, tau: float, kernel: str, paths: Array) -> Array:
    """The loss that the kernel's algorithm minimises, along the paths, shape (runs, steps + 1)."""
    flat = paths.reshape(-1, function.dimension)
    convolution = Convolution(function, tau, flat.min(axis=0), flat.max(axis=0))
    values = convolution.heat if kernel == protocol.ROBBINS_MONRO else convolution.local_entropy
    return values(paths)
