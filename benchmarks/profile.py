"""What a weight update consists of; `make profile` runs it as `python -m benchmarks.profile`.

Each part is what an update takes less without it: Keras's train step around the kernel, the noise,
the evaluations of the loss or its gradients. What then is left is the rest: the loop over blocks or
moves, sums, the basis of the subspace.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated

import pandas as pd
import tensorflow as tf
from cyclopts import App, CycloptsError

from benchmarks.peers.problem import Problem, random_minibatch
from benchmarks.peers.systems import library
from benchmarks.peers.work import ALGORITHMS, PAPER, QUICK, Work
from lerh_tf import PhiloxNoise
from lerh_tf.loss.objective import Objective, Weights
from reproduce import checks, environment
from reproduce.arguments import UsageError, integers_only, single
from reproduce.storage import write

_OUTPUT = Path("results/profile.md")
_BATCH, _HIDDEN = 20, 200
_WARM = 2
PARTS = ("train step", "noise", "evaluations")
"""What is left out, one after the other."""

app = App(name="python -m benchmarks.profile", help_format="plaintext", version_flags=[])


class Nothing(Objective):
    """A loss that is 0 everywhere, with blocks as large as those of another one.

    Args:
        objective: the other one.
    """

    def __init__(self, objective: Objective):
        self.is_used, self.footprint = objective.is_used, objective.footprint
        self.operations, self.jit_compile = (), objective.jit_compile

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        return tf.zeros([], weights[0].dtype)

    def value_and_gradient(self, weights: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """See `Objective`."""
        return self(weights), [tf.zeros_like(w) for w in weights]

    def vectorized(self, stacked: Weights) -> tf.Tensor:
        """See `Objective`."""
        return tf.zeros(tf.shape(stacked[0])[:1], stacked[0].dtype)

    def vectorized_value_and_gradient(self, stacked: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """See `Objective`."""
        return self.vectorized(stacked), [tf.zeros_like(s) for s in stacked]


def updates(problem: Problem, work: Work) -> dict[str, Callable[[], None]]:
    """Returns weight updates: whole, then without one more part each, by that part's name."""

    def noise(like: Sequence[tf.Tensor]) -> PhiloxNoise:
        return PhiloxNoise(0, tf.constant(0, tf.int64), like)

    def kernel(**arguments: object) -> Callable[[], None]:
        return library.Kernelled(problem, work, reduce=True, **arguments).update  # type: ignore[arg-type]

    return {
        "whole": library.subspace(problem, work, 0).update,
        "train step": kernel(noise=noise),
        "noise": kernel(noise=library.silence),
        "evaluations": kernel(noise=library.silence, evaluated=Nothing),
    }


def timed(turns: Mapping[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Returns the median seconds of each, one of each in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for repeat in range(_WARM + repeats):
        for name, turn in turns.items():
            started = time.perf_counter()
            turn()
            if repeat >= _WARM:
                seconds[name].append(time.perf_counter() - started)
    return {name: median(own) for name, own in seconds.items()}


def line(algorithm: str, seconds: Mapping[str, float]) -> dict[str, str]:
    """Returns a row of the table: the whole, and each part's share of it."""
    left = [seconds["whole"], *(seconds[part] for part in PARTS)]
    shares = dict(zip(PARTS, (a - b for a, b in pairwise(left)), strict=True))
    shares["the rest"] = left[-1]
    return {
        "algorithm": algorithm,
        "whole s": f"{left[0]:.4f}",
        **{name: f"{round(100 * share / left[0])} %" for name, share in shares.items()},
    }


@app.default
def profile(
    *,
    quick: Annotated[bool, single] = False,
    threads: Annotated[int, integers_only] = 2,
    repeats: Annotated[int, integers_only] = 15,
    output: Annotated[Path, single] = _OUTPUT,
) -> None:
    """Times a weight update on 784-200-10 with and without its parts.

    Args:
        quick: Take a small budget, to see whether all runs.
        threads: Processors. [default: 2]
        repeats: Timed updates of each. [default: 15]
        output: File of the table, committed as docs/measured/profile.md.
            [default: results/profile.md]
    """
    try:
        checks.positive_integer("threads", threads)
        checks.positive_integer("repeats", repeats)
    except ValueError as error:
        raise UsageError(str(error)) from error
    environment.prepare(threads)
    problem = Problem.of_minibatch(*random_minibatch(_BATCH), _HIDDEN)
    lines = [
        line(f"{ALGORITHMS[name]}, {work.size}", timed(updates(problem, work), repeats))
        for name, work in (QUICK if quick else PAPER).items()
        if name != "sgd"
    ]
    machine = environment.describe()
    text = (
        "# What a weight update consists of\n\n"
        f"{pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True)}\n\n"
        f"784-200-10, a minibatch of {_BATCH}, {threads} threads, {machine['processor']}. Shares "
        "of the whole, each what an update takes less without the part, those before it left out "
        "already, by medians "
        f"of {repeats} updates in turns.{' A quick look.' if quick else ''}\n"
    )
    print(text)
    write(output, text.encode(), output.with_name(f"{output.name}.part"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 for bad arguments.

    Args:
        arguments: the words after the program's name; `None`: those it was started with.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, UsageError) as error:
        print(f"benchmarks.profile: error: {error}", file=sys.stderr, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
