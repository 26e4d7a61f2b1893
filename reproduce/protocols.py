"""Every hyper-parameter of the paper's experiments, with its place in the paper beside it.

Where the text is silent or ambiguous the choice is a field here, never a silent one; the readings
carry the numbers R1, R2, ... under which the project lists them, and `readings.py` says them in
words. These have one reading each and no field: the first state of Algorithms 3 and 5, called x^0
there, is their x^1, so Algorithm 3 averages J states after J - 1 moves (R3) and Algorithm 5 returns
the last after J moves (R4); a weight update sees one minibatch (R7); pixels are scaled to [0, 1].
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from reproduce import checks

NETWORKS = ("small_dense", "hidden_dense")
INITIALIZATIONS = ("glorot_uniform", "normal")
TEST_DRAWS = ("per_seed", "per_evaluation")
NOISES = ("langevin", "linear")
SUBSPACES: tuple[str | bool, ...] = ("auto", False)

VARIANTS: Mapping[str, Mapping[str, Any]] = {"sgld-linear": {"noise": "linear"}}
"""Rows that are a method under a reading of their own, which no other choice overrides."""

_PUBLISHED_SAMPLES = 1000


@dataclass(frozen=True)
class Training:
    """What every method of a comparison shares.

    Args:
        network: `"small_dense"` (784-10) or `"hidden_dense"` (784-200-10).
        initialization: R8. `"glorot_uniform"`, Keras's default, or `"normal"`, standard
            deviation 0.1; biases start at zero in both.
        batch_size: Images per weight update.
        updates: Weight updates.
        test_images: Held-out images per evaluation, drawn without replacement.
        test_draw: R10. `"per_seed"`: drawn once; `"per_evaluation"`: anew each time.
        evaluate_every: Weight updates between two points of the training curve.
        tabulated: Updates evaluated in any case, for the table's columns.

    Raises:
        ValueError: A value breaks its rule.
    """

    network: str = "hidden_dense"  # Section 6.1, item 2; Section 6.2
    initialization: str = "glorot_uniform"  # not stated (R8)
    batch_size: int = 20  # Section 6.2
    updates: int = 500  # Section 6.2; Table 1
    test_images: int = 1000  # Section 6.2
    test_draw: str = "per_seed"  # ambiguous (R10)
    evaluate_every: int = 10  # not stated
    tabulated: tuple[int, ...] = (100, 200, 300, 400, 500)  # Table 1

    def __post_init__(self) -> None:
        checks.one_of("network", self.network, NETWORKS)
        checks.one_of("initialization", self.initialization, INITIALIZATIONS)
        checks.one_of("test_draw", self.test_draw, TEST_DRAWS)
        for name in ("batch_size", "updates", "test_images", "evaluate_every"):
            checks.positive_integer(name, getattr(self, name))
        checks.distinct("tabulated", self.tabulated)
        for update in self.tabulated:
            checks.positive_integer("tabulated", update)

    @property
    def evaluations(self) -> tuple[int, ...]:
        """The updates after which accuracy is measured, from 0 (the initial weights) on."""
        curve = range(0, self.updates + 1, self.evaluate_every)
        return tuple(sorted({*curve, *self.columns}))

    @property
    def columns(self) -> tuple[int, ...]:
        """The table's columns: those of `tabulated` within reach, and the last update."""
        reached = {update for update in self.tabulated if update <= self.updates}
        return tuple(sorted({*reached, self.updates}))


@dataclass(frozen=True)
class Method:
    """How a weight update is made: the hyper-parameters of one row of a table."""

    def with_samples(self, samples: int) -> Self:
        """Returns this method at another number of samples per weight update."""
        del samples
        return self


@dataclass(frozen=True)
class GradientDescent(Method):
    """Plain stochastic gradient descent, the paper's baseline.

    Args:
        learning_rate: Step size, equal to the other methods' tau.
    """

    learning_rate: float = 0.01  # Section 6.2; caption of Figure 4

    def __post_init__(self) -> None:
        checks.positive_number("learning_rate", self.learning_rate)


@dataclass(frozen=True)
class LocalEntropyByImportanceSampling(Method):
    """Algorithm 1 with Algorithm 4.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        samples: Draws per weight update, the paper's J.
        loss_multiplier: R2. What the minibatch's mean loss is multiplied by inside the weights:
            1 for the mean, the batch size for the sum.
    """

    tau: float = 0.01  # Section 6.2; caption of Figure 4
    samples: int = 1000  # Section 6.2
    loss_multiplier: float = 1.0  # equation (1), Algorithm 4 (R2)

    def __post_init__(self) -> None:
        checks.positive_number("tau", self.tau)
        checks.positive_integer("samples", self.samples)
        checks.positive_number("loss_multiplier", self.loss_multiplier)

    def with_samples(self, samples: int) -> Self:
        """Returns this method at another number of draws."""
        return replace(self, samples=samples)


@dataclass(frozen=True)
class LocalEntropyBySGLD(Method):
    """Algorithm 1 with Algorithm 3.

    Args:
        tau: Variance of the Gaussian, the paper's tau.
        samples: States per weight update, the paper's J; at least 2, for one never moves.
        offset: Temperatures are eps_j = 1 / (offset + j).
        noise: R1. `"langevin"`: the noise has standard deviation sqrt(eps_j); `"linear"`: eps_j.
        persistent: R6. Whether the chain starts at its last state of the previous weight update,
            else at the weights.
        restart: R9. Whether j starts from 1 at each weight update, else it runs on.
    """

    tau: float = 0.01  # Section 6.2; caption of Figure 4
    samples: int = 1000  # Section 6.2
    offset: float = 1000.0  # caption of Figure 4
    noise: str = "langevin"  # Algorithm 3 (R1)
    persistent: bool = True  # Section 5.1.1, against Algorithm 3 (R6)
    restart: bool = True  # Algorithm 3 (R9)

    def __post_init__(self) -> None:
        checks.positive_number("tau", self.tau)
        checks.integer_of_at_least("samples", self.samples, 2)
        checks.positive_number("offset", self.offset)
        checks.one_of("noise", self.noise, NOISES)
        checks.boolean("persistent", self.persistent)
        checks.boolean("restart", self.restart)

    def with_samples(self, samples: int) -> Self:
        """Returns this method at another number of states."""
        return replace(self, samples=samples)


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

    tau: float = 0.01  # Section 6.2; caption of Figure 4
    steps: int = 30  # Section 6.2
    samples: int = 30  # Section 6.2
    c: float = 0.1  # caption of Figure 4
    alpha: float = 0.7  # caption of Figure 4
    growing: bool = False  # against Section 5.2, which Robbins and Monro's theorem excludes (R5)

    def __post_init__(self) -> None:
        checks.positive_number("tau", self.tau)
        checks.positive_integer("steps", self.steps)
        checks.positive_integer("samples", self.samples)
        checks.positive_number("c", self.c)
        checks.robbins_monro_exponent("alpha", self.alpha)
        checks.boolean("growing", self.growing)

    def with_samples(self, samples: int) -> Self:
        """Returns this method at the M = J that are to 30 as sqrt(samples) to sqrt(1000).

        Section 6.2 calls 30 x 30 gradients and 1000 samples computationally equivalent.
        """
        side = max(1, round(30 * math.sqrt(samples / _PUBLISHED_SAMPLES)))
        return replace(self, steps=side, samples=side)


@dataclass(frozen=True)
class Case:
    """One row: a method on a training set-up; with a seed it is a run."""

    training: Training
    method: Method

    def configuration(self) -> dict[str, Any]:
        """Returns every hyper-parameter, resolved, as JSON types."""
        method = {"name": type(self.method).__name__, **dataclasses.asdict(self.method)}
        training = dataclasses.asdict(self.training)
        return {"training": training | {"tabulated": list(self.training.tabulated)}} | {
            "method": method
        }


def _table1_methods() -> dict[str, Method]:
    return {
        "sgd": GradientDescent(),
        "is": LocalEntropyByImportanceSampling(),
        "sgld": LocalEntropyBySGLD(),
        "hr": HeatRegularizationByRobbinsMonro(),
        "sgld-linear": LocalEntropyBySGLD(**VARIANTS["sgld-linear"]),
    }


@dataclass(frozen=True)
class Comparison:
    """Methods side by side from the same weights on the same minibatches: Table 1, Figure 4.

    Args:
        training: What the methods share.
        methods: The rows, by the names the command line knows them by.
    """

    training: Training = field(default_factory=Training)
    methods: Mapping[str, Method] = field(default_factory=_table1_methods)

    def with_budget(self, *, updates: int | None = None, samples: int | None = None) -> Self:
        """Returns this comparison with other numbers of updates or samples; `None` keeps one."""
        training, methods = self.training, self.methods
        if updates is not None:
            training = replace(training, updates=updates)
        if samples is not None:
            checks.positive_integer("samples", samples)
            methods = {name: method.with_samples(samples) for name, method in methods.items()}
        return replace(self, training=training, methods=methods)

    def with_methods(self, names: tuple[str, ...]) -> Self:
        """Returns this comparison with the named rows only, in the order asked for."""
        checks.distinct("methods", names)
        for name in names:
            checks.one_of("methods", name, self.methods)
        return replace(self, methods={name: self.methods[name] for name in names})

    def cases(self) -> dict[str, Case]:
        """Returns the rows as cases."""
        return {name: Case(self.training, method) for name, method in self.methods.items()}

    def differences(self, other: "Comparison") -> list["Difference"]:
        """Returns the fields in which this differs from `other`.

        Methods that only one of the two has are no difference.
        """
        changed: dict[tuple[str, str], list[str]] = {}
        for row in (row for row in self.methods if row in other.methods):
            for change in _changes(self.methods[row], other.methods[row]):
                changed.setdefault(change, []).append(row)
        training = [
            Difference(name, value) for name, value in _changes(self.training, other.training)
        ]
        return training + [
            Difference(name, value, tuple(rows)) for (name, value), rows in changed.items()
        ]


@dataclass(frozen=True)
class Difference:
    """A field in which two comparisons differ: `updates=100`, `samples=50 (is sgld)`.

    Args:
        name: The field.
        value: As the command line spells it.
        methods: The rows it differs in; none for a field of the training set-up.
    """

    name: str
    value: str
    methods: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = f" ({' '.join(self.methods)})" if self.methods else ""
        return f"{self.name}={self.value}{rows}"


def spelled(value: Any) -> str:
    """Returns a setting's value as the command line spells it."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _changes(ours: Any, theirs: Any) -> list[tuple[str, str]]:
    new, old = dataclasses.asdict(ours), dataclasses.asdict(theirs)
    return [(name, spelled(new[name])) for name in new if new[name] != old.get(name)]


TABLE1 = Comparison()
"""Section 6.2's comparison at the paper's budget."""

QUICK_TABLE1 = TABLE1.with_budget(updates=100, samples=50)
"""The same at a budget for a first look; not the paper's."""
