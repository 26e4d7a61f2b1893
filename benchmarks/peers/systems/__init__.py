"""The ways to make a weight update, one file per library; only workers load them."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from benchmarks.peers.problem import Array, Problem
from benchmarks.peers.work import Work


class System(Protocol):
    """One way to make weight updates: x <- m, on one minibatch."""

    def update(self) -> None:
        """Makes one weight update and returns when the new weights are there."""

    def weights(self) -> Sequence[Array]:
        """Returns the current weights."""

    def chain(self) -> Sequence[Array]:
        """Returns the last state of SGLD's chain, a position; nothing for the others."""

    def restart(self) -> None:
        """Goes back to the first weights, without a chain; the noise goes on."""


@dataclass(frozen=True)
class Entry:
    """How to get at a system.

    Args:
        algorithm: what it computes, a key of `work.ALGORITHMS`.
        title: its name for reading.
        module: where it lies, below this package.
        factory: the function that builds it from (problem, work, seed).
        needs: the modules it imports beyond this project's own dependencies.
    """

    algorithm: str
    title: str
    module: str
    factory: str
    needs: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it is this library; `sgd` is Keras's own."""
        return self.factory in ("subspace", "plain")

    @property
    def is_reduced(self) -> bool:
        """Whether it samples in the subspace that the minibatch sees."""
        return self.factory == "subspace"

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules it needs that are not installed."""
        return tuple(name for name in self.needs if find_spec(name) is None)

    def build(self, problem: Problem, work: Work, seed: int) -> System:
        """Returns the system, with its noise."""
        system: System = getattr(import_module(f"{__name__}.{self.module}"), self.factory)(
            problem, work, seed
        )
        return system

    def noiseless(self, problem: Problem, work: Work) -> System:
        """Returns the same system with all noise at zero."""
        factory = getattr(import_module(f"{__name__}.{self.module}"), f"noiseless_{self.factory}")
        system: System = factory(problem, work)
        return system


def _ours(algorithm: str) -> dict[str, Entry]:
    return {
        f"{algorithm}-subspace": Entry(algorithm, "lerh_tf", "library", "subspace"),
        f"{algorithm}-plain": Entry(algorithm, "lerh_tf, subspace=False", "library", "plain"),
    }


SYSTEMS = {
    "sgd-keras": Entry("sgd", "Keras SGD", "library", "gradient_descent"),
    **_ours("sgld"),
    "sgld-tensorflow": Entry("sgld", "TensorFlow, hand-written", "tensorflow_loops", "sgld"),
    "sgld-blackjax": Entry("sgld", "BlackJAX sgld", "blackjax_sgld", "sgld", ("blackjax", "jax")),
    "sgld-torch": Entry("sgld", "PyTorch, hand-written", "torch_loops", "sgld", ("torch",)),
    "sgld-posteriors": Entry(
        "sgld", "posteriors sgld", "posteriors_sgld", "sgld", ("posteriors", "torch")
    ),
    **_ours("is"),
    "is-evosax": Entry(
        "is", "evosax SimpleES", "evosax_simple_es", "importance", ("evosax", "jax", "optax")
    ),
    "is-jax": Entry("is", "JAX, hand-written", "jax_loops", "importance", ("jax",)),
    "is-torch": Entry("is", "PyTorch, hand-written", "torch_loops", "importance", ("torch",)),
    **_ours("hr"),
    "hr-tensorflow": Entry("hr", "TensorFlow, hand-written", "tensorflow_loops", "heat"),
    "hr-jax": Entry("hr", "JAX, hand-written", "jax_loops", "heat", ("jax",)),
    "hr-torch": Entry("hr", "PyTorch, hand-written", "torch_loops", "heat", ("torch",)),
}
"""Every system, by the name the command line knows it by."""
