"""Times each plain kernel of the library against a loop written by hand, interleaved."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

from benchmarks.plain import bare
from reproduce import methods, networks
from reproduce.protocols import (
    TABLE1,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)
from reproduce.sampling import minibatches

if TYPE_CHECKING:
    from reproduce.data import Mnist

GOAL = 1.3
"""How many times the bare loop's time a plain kernel may take."""

# The bare loop's time hardly depends on it, from 2 to 200.
_CHUNK = 50
_SEED = 0

Update = Callable[[], object]
"""Makes one weight update and waits for it."""


@dataclass(frozen=True)
class Race:
    """Seconds per weight update of a kernel and of the bare loop, measured in turns.

    Args:
        kernel: Its name, with its size.
        ours: Of the library, without the first, which compiles.
        bare: Of the loop written by hand, likewise.
    """

    kernel: str
    ours: tuple[float, ...]
    bare: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Ours over bare, turn by turn."""
        return [ours / bare for ours, bare in zip(self.ours, self.bare, strict=True)]


def races(
    chosen: tuple[str, ...],
    samples: int,
    repetitions: int,
    data: "Mnist",
    report: Callable[[str], None],
) -> list[Race]:
    """Races kernels on the first minibatch and weights of Table 1's seed 0.

    Args:
        chosen: Table 1's names of the methods, in this order.
        samples: Samples per weight update, as in Table 1.
        repetitions: Turns of each.
        data: MNIST.
        report: Called with the name of every kernel that begins.
    """
    comparison = TABLE1.with_budget(samples=samples).with_methods(chosen)
    batch = _minibatch(data)
    finished = []
    for method in comparison.methods.values():
        name = _name(method)
        report(f"{name}: {repetitions} turns each")
        finished.append(_race(name, _ours(method, batch), _bare(method, batch), repetitions))
    return finished


def frame(finished: list[Race]) -> pd.DataFrame:
    """Returns the table, times in seconds per weight update."""
    return pd.DataFrame(
        {
            "kernel": race.kernel,
            "ours": median(race.ours),
            "bare": median(race.bare),
            "ratio": median(race.ratios),
            "smallest": min(race.ratios),
            "largest": max(race.ratios),
        }
        for race in finished
    )


def markdown(
    table: pd.DataFrame, repetitions: int, threads: int, environment: Mapping[str, str]
) -> str:
    """Returns the table for reading, with what it was measured on."""
    shown = table.to_markdown(index=False, floatfmt=".3f")
    notes = [
        "784-200-10, minibatch of 20, all 159,010 weights sampled (subspace=False).",
        f"Seconds per weight update, medians of {repetitions} turns after one that compiles; "
        "ratios of each turn: median, smallest, largest.",
        f"The goal is a ratio of at most {GOAL}.",
        f"{threads} threads on {environment['processor']}, "
        f"TensorFlow {environment['tensorflow']}, Keras {environment['keras']}, "
        f"NumPy {environment['numpy']}, Python {environment['python']}.",
    ]
    listed = "\n".join(f"- {note}" for note in notes)
    return f"# Plain kernels beside loops written by hand\n\n{shown}\n\n{listed}\n"


def _race(name: str, ours: Update, bare_loop: Update, repetitions: int) -> Race:
    updates = (ours, bare_loop)
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(-1, repetitions):
        # Who goes first changes from turn to turn; the turn before the first compiles.
        for which in (0, 1) if turn % 2 else (1, 0):
            started = time.perf_counter()
            updates[which]()
            if turn >= 0:
                seconds[which].append(time.perf_counter() - started)
    return Race(name, tuple(seconds[0]), tuple(seconds[1]))


def _name(method: Method) -> str:
    match method:
        case LocalEntropyBySGLD():
            return f"SGLD, J = {method.samples}"
        case LocalEntropyByImportanceSampling():
            return f"importance sampling, J = {method.samples}"
        case HeatRegularizationByRobbinsMonro():
            return f"Robbins-Monro, J = {method.steps}, M = {method.samples}"
    raise TypeError(f"`method` must have a bare loop. Received: method={method!r}")


def _minibatch(data: "Mnist") -> bare.Batch:
    size = TABLE1.training.batch_size
    chosen = minibatches(_SEED, len(data.train_labels), size, 1)[0]
    images = np.asarray(data.train_images)[chosen].reshape(size, -1) / np.float32(255)
    return tf.constant(images), tf.constant(np.asarray(data.train_labels)[chosen], tf.int64)


def _ours(method: Method, batch: bare.Batch) -> Update:
    model = _model()
    optimizer = methods.optimizer(method, _SEED, subspace=False)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def loss(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return cross_entropy(labels, model(images, training=True))

    return lambda: optimizer.step(loss, model.trainable_variables, *batch).numpy()


def _bare(method: Method, batch: bare.Batch) -> Update:
    variables = [tf.Variable(v) for v in _model().trainable_variables]
    states = [tf.Variable(tf.zeros_like(v)) for v in variables]
    counter = tf.Variable(0)

    @tf.function(autograph=False)
    def update() -> tf.Tensor:
        x = [tf.convert_to_tensor(v) for v in variables]
        draw = bare.stateless([v.shape for v in variables], counter.assign_add(1))
        for v, d in zip(variables, _displacement(x, states, batch, draw, method), strict=True):
            v.assign_add(d)
        return tf.identity(counter)

    return lambda: update().numpy()


def _displacement(
    x: bare.Weights,
    states: list[tf.Variable],
    batch: bare.Batch,
    draw: bare.Draw,
    method: Method,
) -> bare.Weights:
    match method:
        case LocalEntropyBySGLD():
            # The chain goes on where it was, and is kept as a displacement from the new weights.
            mean, last = bare.sgld(
                x, [tf.convert_to_tensor(s) for s in states], batch, draw, method
            )
            for state, y, m in zip(states, last, mean, strict=True):
                state.assign(y - m)
            return mean
        case LocalEntropyByImportanceSampling():
            return bare.importance(x, batch, draw, method, _chunk(method.samples))
        case HeatRegularizationByRobbinsMonro():
            return bare.robbins_monro(x, batch, draw, method)
    raise TypeError(f"`method` must have a bare loop. Received: method={method!r}")


def _chunk(samples: int) -> int:
    return max(size for size in range(1, _CHUNK + 1) if samples % size == 0)


def _model() -> keras.Model:
    return networks.build("hidden_dense", TABLE1.training.initialization, _SEED)
