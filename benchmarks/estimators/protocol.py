"""Which estimators are compared, where, and at which budgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lerh_tf import SGLD, ImportanceSampling, Kernel, RobbinsMonro, RobbinsMonroSteps
from reproduce import checks
from reproduce.methods import AVERAGING, controlled_sgld
from reproduce.protocols import (
    Comparison,
    GradientDescent,
    HeatRegularizationSolved,
    LocalEntropyByControlledSGLD,
    LocalEntropyByGradients,
    Method,
    Panels,
    Training,
)

ALGORITHMS = ("Algorithm 1", "Algorithm 2")

NET = 64
"""Samples of a net of points, a power of two; no more than fit into a block."""


@dataclass(frozen=True)
class Estimator:
    """A way to the mean, at one budget.

    Args:
        name: Of the way.
        algorithm: Whose mean it estimates, one of `ALGORITHMS`.
        evaluations: Losses or gradients per weight update.
        kernel: What estimates.
        noise: Which noise it draws, one of `other_noise.NOISES`.
    """

    name: str
    algorithm: str
    evaluations: int
    kernel: Kernel
    noise: str = "independent"

    @property
    def label(self) -> str:
        """What records know it by."""
        noise = "" if self.noise == "independent" else f", {self.noise}"
        return f"{self.name}, {self.evaluations}{noise}"


def _local_entropy(name: str, samples: tuple[int, ...], make: Any) -> list[Estimator]:
    return [Estimator(name, ALGORITHMS[0], each, make(each)) for each in samples]


def _heat(name: str, sides: tuple[tuple[int, int], ...], steps: Any) -> list[Estimator]:
    return [
        Estimator(
            name, ALGORITHMS[1], moves * samples, RobbinsMonro(moves, samples, step_sizes=steps)
        )
        for moves, samples in sides
    ]


def _printed(samples: int, control_variate: bool) -> SGLD:
    return SGLD(samples, persistent=False, control_variate=control_variate)


ESTIMATORS: tuple[Estimator, ...] = (
    *_local_entropy("importance sampling", (10, 100, 1000), ImportanceSampling),
    *_local_entropy(
        "importance sampling, control variate",
        (10, NET, 100, 1000),
        lambda J: ImportanceSampling(J, control_variate=True),
    ),
    *_local_entropy(
        "importance sampling, gradients",
        (10, 30, NET, 100, 300, 1000),
        lambda J: ImportanceSampling(J, estimator="gradients"),
    ),
    *_local_entropy("SGLD as printed, from x", (100, 1000), lambda J: _printed(J, False)),
    *_local_entropy("SGLD as printed, control variate", (100, 1000), lambda J: _printed(J, True)),
    *_local_entropy(
        "SGLD, step sizes tau / 5, control variate",
        (10, 30, 100, 300, 1000),
        lambda J: controlled_sgld(J, 0.2),
    ),
    *_heat("Robbins-Monro as in the paper", ((10, 10), (30, 30)), RobbinsMonroSteps()),
    *_heat("Robbins-Monro, averaging", ((10, 10), (30, 30), (60, 60)), AVERAGING),
)
"""Every estimator at every budget."""

OTHER_NOISE: tuple[Estimator, ...] = (
    *(
        Estimator(f"importance sampling, {name}", ALGORITHMS[0], NET, kernel, noise)
        for name, kernel in (
            ("gradients", ImportanceSampling(NET, estimator="gradients")),
            ("control variate", ImportanceSampling(NET, control_variate=True)),
        )
        for noise in ("antithetic pairs", "scrambled Sobol points")
    ),
    *(
        Estimator(
            "Robbins-Monro, averaging",
            ALGORITHMS[1],
            900,
            RobbinsMonro(30, 30, step_sizes=AVERAGING),
            noise,
        )
        for noise in ("antithetic pairs", "common random numbers")
    ),
)
"""What was tried to take more of the noise off."""

QUICK_ESTIMATORS = (ESTIMATORS[0], ESTIMATORS[3], ESTIMATORS[7], ESTIMATORS[-5])


@dataclass(frozen=True)
class Accuracy:
    """Where errors are measured on Table 1's network: at weights, tau and minibatches.

    Args:
        updates: Weight updates before, each a place; by gradients of `trained_with` samples at
            tau = 0.01.
        taus: Variances of the Gaussian.
        minibatches: How many, those that come next in Table 1's order.
        repetitions: Of the noise.
        reference: Gradients of each of the references.
        trained_with: Samples of the training before.
        quick: Whether only the first estimators are compared.
    """

    updates: tuple[int, ...] = (0, 100, 500)
    taus: tuple[float, ...] = (0.01, 0.03, 0.1, 1.5)
    minibatches: int = 3
    repetitions: int = 3
    reference: int = 40_000
    trained_with: int = 100
    quick: bool = False

    def __post_init__(self) -> None:
        for tau in self.taus:
            checks.positive_number("taus", tau)
        for name in ("minibatches", "repetitions", "reference", "trained_with"):
            checks.positive_integer(name, getattr(self, name))

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """What is compared."""
        return (*QUICK_ESTIMATORS, OTHER_NOISE[1]) if self.quick else (*ESTIMATORS, *OTHER_NOISE)


@dataclass(frozen=True)
class Bias:
    """Where bias and variance are measured apart: on landscapes of one dimension.

    Args:
        sites: By the function's name, x and tau.
        repetitions: Of the noise.
        quick: Whether only the first estimators are compared.
    """

    sites: tuple[tuple[str, float, float], ...] = (
        ("double_well", 1.6, 0.5),
        ("multimodal", 1.5, 0.5),
    )
    repetitions: int = 1000
    quick: bool = False

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """What is compared."""
        return QUICK_ESTIMATORS if self.quick else ESTIMATORS


def solved(training: Training, large: bool = True) -> Panels:
    """Returns the trainings: the algorithms with accurate means, beside SGD.

    Args:
        training: What they share.
        large: Whether the large taus and the other learning rates too.
    """
    sgd: dict[str, Method] = {
        f"SGD, learning rate {rate:g}": GradientDescent(rate)
        for rate in ((0.01, 0.03, 0.1, 0.3, 1.0, 1.5) if large else (0.01,))
    }
    first: dict[str, Method] = {
        f"Algorithm 1, tau 0.01, {samples} gradients": LocalEntropyByGradients(0.01, samples)
        for samples in ((30, 100, 1000) if large else (30,))
    }
    second: dict[str, Method] = {
        "Algorithm 2, tau 0.01, relative error 0.1": HeatRegularizationSolved(0.01)
    }
    apart: dict[str, Method] = {}
    if large:
        first |= {
            "Algorithm 1, tau 0.03, 2000 gradients": LocalEntropyByGradients(0.03, 2000),
            "Algorithm 1, tau 0.1, 30 gradients": LocalEntropyByGradients(0.1, 30),
            "Algorithm 1, tau 0.1, SGLD with 300 gradients": LocalEntropyByControlledSGLD(0.1),
            "Algorithm 1, tau 1.5, SGLD with 300 gradients": LocalEntropyByControlledSGLD(1.5),
        }
        second |= {
            "Algorithm 2, tau 0.03, relative error 0.1": HeatRegularizationSolved(0.03),
            "Algorithm 2, tau 0.1, 900 gradients": HeatRegularizationSolved(0.1, 30, 30, 0.1),
            "Algorithm 2, tau 1.5, 900 gradients": HeatRegularizationSolved(1.5, 30, 30, 0.1),
        }
        apart = {
            f"grad F_tau, tau {tau:g}, learning rate {rate:g}": LocalEntropyByGradients(
                tau, 100, rate
            )
            for tau in (0.001, 0.01, 0.1)
            for rate in (0.1, 0.3)
        }
    panels = {"SGD": sgd, "Algorithm 1": first, "Algorithm 2": second, "learning rate apart": apart}
    return Panels(
        {title: Comparison(training, methods) for title, methods in panels.items() if methods}
    )


@dataclass(frozen=True)
class Protocol:
    """Everything that `make estimators` makes.

    Args:
        accuracy: Errors on the network.
        bias: Bias and variance in one dimension.
        training: The trainings.
        turns: Of every method, as updates are timed.
    """

    accuracy: Accuracy
    bias: Bias
    training: Panels
    turns: int = 5


PROTOCOL = Protocol(Accuracy(), Bias(), solved(Training()))
"""The whole comparison."""

QUICK = Protocol(
    Accuracy((0,), (0.01,), 1, 1, 200, 10, quick=True),
    Bias((("double_well", 1.6, 0.5),), 20, quick=True),
    solved(Training(updates=4, test_images=100, evaluate_every=2, tabulated=(4,)), large=False),
    turns=1,
)
"""The same at a budget for a first look."""


def settings(part: Accuracy | Bias, **place: Any) -> Mapping[str, Any]:
    """Returns what decides the numbers of one place, as JSON types."""
    kernels = {each.label: repr(each.kernel.get_config()) for each in part.estimators}
    return {**place, "repetitions": part.repetitions, "estimators": kernels}
