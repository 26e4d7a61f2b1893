"""How a weight update is made, method by method."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from reproduce import checks

NOISES = ("langevin", "linear")

VARIANTS: Mapping[str, Mapping[str, Any]] = {"sgld-linear": {"noise": "linear"}}
"""Rows that are a method under a reading of their own, which no other choice overrides."""

_PUBLISHED_SAMPLES = 1000


@dataclass(frozen=True)
class Method:
    """How a weight update is made: the hyper-parameters of one row of a table."""

    NAME: ClassVar[str]
    """Table 1's name of the method."""

    def __post_init__(self) -> None:
        checks.numbers(self)

    @property
    def row(self) -> str:
        """Table 1's name of the row: the method's, or that of the variant whose reading it has."""
        fields = dataclasses.asdict(self)
        for variant, reading in VARIANTS.items():
            if variant.startswith(f"{self.NAME}-") and reading.items() <= fields.items():
                return variant
        return self.NAME

    def with_samples(self, samples: int) -> Self:
        """Returns this method at another number of samples per weight update, if it has one."""
        changes: dict[str, Any] = {"samples": samples} if hasattr(self, "samples") else {}
        return replace(self, **changes)


@dataclass(frozen=True)
class GradientDescent(Method):
    """Plain stochastic gradient descent, the paper's baseline.

    Args:
        learning_rate: Step size, equal to the other methods' tau.
    """

    NAME: ClassVar[str] = "sgd"

    learning_rate: float = 0.01  # Section 6.2; caption of Figure 4


@dataclass(frozen=True)
class LocalEntropyByImportanceSampling(Method):
    """Algorithm 1 with Algorithm 4.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        samples: Draws per weight update, the paper's J.
        loss_multiplier: R2. What the minibatch's mean loss is multiplied by inside the weights:
            1 for the mean, the batch size for the sum.
    """

    NAME: ClassVar[str] = "is"

    tau: float = 0.01  # Section 6.2; caption of Figure 4
    samples: int = 1000  # Section 6.2
    loss_multiplier: float = 1.0  # equation (1), Algorithm 4 (R2)


@dataclass(frozen=True)
class LocalEntropyBySGLD(Method):
    """Algorithm 1 with Algorithm 3.

    Args:
        tau: Variance of the Gaussian, the paper's tau; tau_0 where it is scoped.
        samples: States per weight update, the paper's J; at least 2, for one never moves.
        offset: Step sizes, the paper's temperatures, are eps_j = 1 / (offset + j).
        noise: R1. `"langevin"`: the noise has standard deviation sqrt(eps_j); `"linear"`: eps_j.
        persistent: R6. Whether the chain starts at its last state of the previous weight update,
            else at the weights.
        restart: R9. Whether j starts from 1 at each weight update, else it runs on.
        tau1: Scoping of tau, above -1: tau / (1 + tau1)^k at weight update k = 0, 1, ...; 0 keeps
            it, negative values let it grow.
    """

    NAME: ClassVar[str] = "sgld"

    tau: float = 0.01  # Section 6.2; caption of Figure 4
    samples: int = 1000  # Section 6.2
    offset: float = 1000.0  # caption of Figure 4
    noise: str = "langevin"  # Algorithm 3 (R1)
    persistent: bool = True  # Section 5.1.1, against Algorithm 3 (R6)
    restart: bool = True  # Algorithm 3 (R9)
    tau1: float = 0.0  # Section 6.2: constant; scoped in Section 6.5.1

    def __post_init__(self) -> None:
        checks.numbers(self, but=("tau1",))
        is_decay = -1.0 < self.tau1 < math.inf
        checks.must(is_decay, "tau1", self.tau1, "finite and above -1")
        checks.integer_of_at_least("samples", self.samples, 2)
        checks.one_of("noise", self.noise, NOISES)


@dataclass(frozen=True)
class HeatRegularizationByRobbinsMonro(Method):
    """Algorithm 2 with Algorithm 5.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        steps: Moves per weight update, the paper's J.
        samples: Gradients averaged per move, the paper's M.
        c: The first step size; step sizes are c j^(-alpha).
        alpha: Their exponent, in (1/2, 1].
        growing: R5. Whether step sizes are c j^alpha instead, as printed.
    """

    NAME: ClassVar[str] = "hr"

    tau: float = 0.01  # Section 6.2; caption of Figure 4
    steps: int = 30  # Section 6.2
    samples: int = 30  # Section 6.2
    c: float = 0.1  # caption of Figure 4
    alpha: float = 0.7  # caption of Figure 4
    growing: bool = False  # against Section 5.2, which Robbins and Monro's theorem excludes (R5)

    def __post_init__(self) -> None:
        checks.numbers(self)
        checks.must(0.5 < self.alpha <= 1.0, "alpha", self.alpha, "in (1/2, 1]")

    def with_samples(self, samples: int) -> Self:
        """Returns this method at the M = J that are to 30 as sqrt(samples) to sqrt(1000).

        Section 6.2 calls 30 x 30 gradients and 1000 samples computationally equivalent.
        """
        side = max(1, round(30 * math.sqrt(samples / _PUBLISHED_SAMPLES)))
        return replace(self, steps=side, samples=side)


@dataclass(frozen=True)
class LocalEntropyByGradients(Method):
    """Algorithm 1 with its mean from gradients at Algorithm 4's sample.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        samples: Gradients per weight update.
        learning_rate: What grad F_tau is multiplied by; `None`: tau, which moves to the mean.
    """

    NAME: ClassVar[str] = "le-gradients"

    tau: float = 0.01
    samples: int = 100
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        checks.numbers(self)
        if self.learning_rate is not None:
            checks.positive_number("learning_rate", self.learning_rate)


@dataclass(frozen=True)
class LocalEntropyByControlledSGLD(Method):
    """Algorithm 1 with Algorithm 3 from the weights, a control variate and even step sizes.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        samples: States per weight update.
        step: The step size over tau.
    """

    NAME: ClassVar[str] = "le-sgld"

    tau: float = 0.01
    samples: int = 300
    step: float = 0.2


@dataclass(frozen=True)
class HeatRegularizationSolved(Method):
    """Algorithm 2 with Algorithm 5 until the root is found to a relative error.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        steps: Moves per weight update, at most.
        samples: Gradients averaged per move.
        tolerance: The relative error.
    """

    NAME: ClassVar[str] = "hr-solved"

    tau: float = 0.01
    steps: int = 100
    samples: int = 100
    tolerance: float = 0.1
