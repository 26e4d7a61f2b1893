"""Where and how the theorems are measured; the paper states none of this."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reproduce import checks

SGLD, SGLD_LINEAR, IMPORTANCE, ROBBINS_MONRO = "sgld", "sgld-linear", "is", "hr"
KERNELS = (SGLD, SGLD_LINEAR, IMPORTANCE, ROBBINS_MONRO)
"""The estimators, as the other experiments name them; `sgld-linear` is R1's second reading."""

Points = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Site:
    """A landscape of the battery and where it is looked at.

    Args:
        function: Its name among `reproduce.landscapes.functions`.
        taus: Variances of the Gaussian, the paper's tau.
        starts: Points that the identities are measured at and the algorithms start from.
        steps: Weight updates of each exact algorithm from each start.
    """

    function: str
    taus: tuple[float, ...]
    starts: Points
    steps: int

    def __post_init__(self) -> None:
        checks.distinct("taus", self.taus)
        checks.distinct("starts", self.starts)
        for tau in self.taus:
            checks.positive_number("taus", tau)
        checks.numbers(self)


@dataclass(frozen=True)
class Estimation:
    """Algorithms 1 and 2 with their means estimated by a kernel.

    Args:
        tau: Variance of the Gaussian.
        samples: Samples per weight update S; Robbins-Monro takes M = J = floor(sqrt S) (R12).
        steps: Weight updates of one repetition.
        repetitions: Repetitions per start and seed.
        starts: Where each function is started from.
    """

    tau: float = 0.01  # Section 6.2
    samples: tuple[int, ...] = (10, 100, 1000)  # Section 6.4, the stability figure's
    steps: int = 20
    repetitions: int = 10
    starts: Mapping[str, Points] = field(
        default_factory=lambda: {
            "quadratic": ((2.0,),),
            "double_well": ((1.6,), (0.1,)),
            "multimodal": ((1.5,), (-2.6,)),
            "plateau": ((1.5,), (3.5,)),
        }
    )

    def __post_init__(self) -> None:
        checks.distinct("samples", self.samples)
        for number in self.samples:
            checks.positive_integer("samples", number)
        checks.numbers(self)


@dataclass(frozen=True)
class Minibatches:
    """A data set small enough to enumerate every minibatch: claim 12 (Section 5.1.2).

    f_i(x) = scale (s(inputs_i x) - targets_i)^2 with the logistic function s, x a number, and f
    the mean of the f_i over the data or over a minibatch.

    Args:
        inputs: One number per data point.
        targets: One in [0, 1] per data point.
        scale: Factor on the losses.
        batch_size: Data points per minibatch.
        tau: Variance of the Gaussian.
        x: The weights x_k.
        samples: Samples of importance sampling.
        repetitions: Noises over which each estimate is averaged.
        step_sizes: Of the Langevin chain, constant ones, falling.
    """

    inputs: tuple[float, ...] = (-3.0, -1.5, -0.5, 1.0, 2.0, 4.0)
    targets: tuple[float, ...] = (0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
    scale: float = 10.0
    batch_size: int = 2
    tau: float = 1.0
    x: float = 0.5
    samples: int = 1000
    repetitions: int = 50
    step_sizes: tuple[float, ...] = (0.08, 0.04, 0.02)

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise ValueError(
                "`targets` must be one for each of the `inputs`. Received: "
                f"{len(self.targets)} targets for {len(self.inputs)} inputs"
            )
        checks.numbers(self, but=("x",))
        if self.batch_size >= len(self.inputs):
            raise ValueError(
                "`batch_size` must be smaller than the data set. Received: "
                f"batch_size={self.batch_size} for {len(self.inputs)} data points"
            )


@dataclass(frozen=True)
class Theory:
    """Everything that the table of the theorems rests on.

    Args:
        sites: The battery: quadratic, double wells, multi-modal, plateau, and two dimensions.
        estimation: The algorithms with estimated means.
        minibatches: Claim 12.
    """

    sites: tuple[Site, ...]
    estimation: Estimation = field(default_factory=Estimation)
    minibatches: Minibatches = field(default_factory=Minibatches)

    def __post_init__(self) -> None:
        checks.distinct("sites", (site.function for site in self.sites))


THEORY = Theory(
    (
        Site("quadratic", (0.05, 0.5), ((2.0,), (-1.0,)), steps=12),
        Site("double_well", (0.05, 0.5), ((1.6,), (0.1,), (-2.0,)), steps=12),
        Site("symmetric_double_well", (0.05, 0.2), ((0.0,), (0.3,), (-1.8,)), steps=12),
        Site("multimodal", (0.05, 0.5), ((1.5,), (0.2,), (-2.6,)), steps=12),
        Site("plateau", (0.05, 0.5), ((1.5,), (4.0,), (7.0,)), steps=12),
        Site("bent_valley", (0.1,), ((-1.0, 0.5),), steps=10),
        Site("egg_box", (0.1,), ((1.5, 0.4),), steps=10),
    )
)
"""The full battery."""

QUICK_THEORY = Theory(
    (
        Site("quadratic", (0.5,), ((2.0,),), steps=5),
        Site("double_well", (0.5,), ((1.6,),), steps=5),
    ),
    Estimation(
        samples=(10, 100),
        steps=5,
        repetitions=4,
        starts={"quadratic": ((2.0,),), "double_well": ((1.6,),)},
    ),
    Minibatches(samples=100, repetitions=4, step_sizes=(0.08, 0.04)),
)
"""The same at a budget for a first look."""
