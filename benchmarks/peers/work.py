"""What one weight update is: algorithm and hyper-parameters, the same for every system."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.problem import Array

ALGORITHMS = {
    "sgld": "SGLD (Algorithm 3)",
    "is": "importance sampling (Algorithm 4)",
    "hr": "heat regularization (Algorithm 5)",
    "sgd": "SGD",
}
"""Names for reading, by the keys of the paper's tables."""


@dataclass(frozen=True)
class Work:
    """One weight update from the current weights x to m.

    Args:
        algorithm: one of `ALGORITHMS`.
        samples: of SGLD and importance sampling, the paper's J; of heat regularization, its M.
        steps: of heat regularization, the paper's J.
        tau: variance of the Gaussian (paper's tau); SGD's learning rate.
        offset: of SGLD's step sizes eps_j = 1 / (offset + j).
        c: of heat regularization's step sizes a_j = c j^(-alpha).
        alpha: of the same.
        loss_multiplier: factor on f in importance sampling's weights.
    """

    algorithm: str
    samples: int = 1000
    steps: int = 30
    tau: float = 0.01
    offset: float = 1000.0
    c: float = 0.1
    alpha: float = 0.7
    loss_multiplier: float = 1.0

    @property
    def langevin_steps(self) -> Array:
        """eps_1, ..., eps_J of SGLD."""
        return 1.0 / (self.offset + np.arange(1, self.samples + 1))

    @property
    def step_sizes(self) -> Array:
        """a_1, ..., a_J of heat regularization."""
        return self.c * np.arange(1.0, self.steps + 1) ** -self.alpha

    @property
    def size(self) -> str:
        """How much work it is, for reading."""
        match self.algorithm:
            case "hr":
                return f"J = {self.steps}, M = {self.samples}"
            case "sgd":
                return "one gradient"
            case _:
                return f"J = {self.samples}"


PAPER: Mapping[str, Work] = {
    "sgld": Work("sgld"),
    "is": Work("is"),
    "hr": Work("hr", samples=30),
    "sgd": Work("sgd"),
}
"""The paper's protocols (Section 6.2)."""

QUICK: Mapping[str, Work] = {
    "sgld": Work("sgld", samples=20),
    "is": Work("is", samples=20),
    "hr": Work("hr", samples=4, steps=4),
    "sgd": Work("sgd"),
}
"""The same for a look whether all runs; nobody's budget."""

SMALL: Mapping[str, Work] = {
    "sgld": Work("sgld", samples=40, tau=0.3, offset=20.0),
    "is": Work("is", samples=40, tau=0.3, loss_multiplier=5.0),
    "hr": Work("hr", samples=4, steps=5, tau=0.3, c=0.5),
    "sgd": Work("sgd", tau=0.3),
}
"""Updates that move far on a small network, to compare laws on."""
