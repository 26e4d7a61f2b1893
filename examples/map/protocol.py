"""What the map measures, stated before any result: tasks, methods, budgets, bounds, contrasts.

**Budgets.** What a weight update costs is measured once per network and method (`costs.json`, by
`make map`), and a run gets at most as many updates as fit into its task's seconds, rounded: time
decides the budgets, no run looks at a clock.

**Length.** How much of the budget a run makes is searched like any hyper-parameter, `length`, and
its learning rates and checkpoints stretch over that: whose updates are cheap need not train for
longer than is good. Of methods whose updates are so dear that fewer than 2,000 fit, the shortest
are not tried. Not where rates are constant: the learning rates' task, whose updates are fixed, and
the strategies without a schedule, all of the inventory's among them. A shorter run of theirs is the
beginning of a longer one, which keeps its best checkpoint anyway.

**Tuning.** Sixteen trials per method and task by `search.trials`, on one seed of their own; the
trial with the best score on the validation set is chosen. Eight were planned; with its length
searched a trial takes 0.28 of the budget on average, so that sixteen cost less than eight whole
ones, and those without a length get sixteen as well. Validation labels are as wrong as training
labels. In every run, tuning or not, the weights that are kept are those of the best of ten
validations along the training (early stopping), for all methods alike.

**Amendments**, made when all trials and some results of the first task were there, and no test
score had been read: what is said of lengths where fewer than 2,000 updates fit, the rounding of the
learning rates' task, and Entropy-SGD's noise, which is drawn where the minibatch sees the weights,
as ours is. **Added** when four tasks were known, outside all contrasts: ours with Adam inside, on
two of them, wrong labels and 1,000 images, at most the updates of ours with SGD inside.

**Result.** The chosen settings on ten fresh seeds: other training images (of MNIST-1D from the same
6,000 signals), wrong labels, initial weights and minibatches. The test set is read once per run, at
its end, and by no tuning run. A run that diverges counts with the score that it has.

**Contrast.** One per task: ours against the rival, each the one with the best mean validation score
over the ten seeds of the result; one run of one seed would choose by luck. Of ten paired
differences of test scores: the t interval, Holm's correction of the t tests over all six primary
tasks at 5 %, and two one-sided t tests against the task's bound, Holm's correction likewise. A
task that is not finished counts with p = 1 in both, so that no verdict turns back when it is. The
same tasks on the second data set are secondary, and have no test.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from examples.map.search import LogUniform

LEVEL = 0.05
"""Of the tests, and one minus that of the intervals."""

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Three decades of learning rates, SGD's; Adam's are a hundredth of them."""

DEAR_UPDATES = 2000
DEAR_LENGTHS = LogUniform(0.3, 1.0)
"""Where `length` is searched if fewer updates fit into a task's seconds."""

GRADIENT_METHODS = (
    "sgd",
    "adam",
    "average",
    "sam",
    "weight_noise",
    "entropy_sgd",
    "local_entropy",
    "heat",
)
RATES_METHODS = tuple(name for name in GRADIENT_METHODS if name != "entropy_sgd")
"""Without Entropy-SGD, which has two learning rates."""
SIGN_METHODS = ("straight_through", "openai_es", "snes", "random_search", "local_entropy")
"""Without CMA-ES: the matrix of 25,450 weights does not fit into its update."""
CONTROL_METHODS = ("openai_es", "snes", "cma_es", "random_search", "local_entropy")

ADDED: Mapping[str, str] = {"local_entropy_adam": "local_entropy", "heat_adam": "heat"}
"""Methods that are shown beside the compared ones, and whose number of updates they get."""


@dataclass(frozen=True)
class Task:
    """What is asked of every method.

    Args:
        name: The task's, in records.
        title: What the page calls it.
        kind: "classification"; "rates", the mean over `RATES` of it at constant learning rates;
            "sign", a network of signs on the 0-1 loss; "control", the inventory.
        network: Of `networks.build`; "policy" for the inventory.
        data: "mnist", "mnist1d" or "inventory".
        methods: What is compared.
        seconds: Of training, at most; all of a run's.
        bound: Scores that differ by less are equal for practice.
        training: Training examples; scenarios per update for the inventory.
        wrong_labels: Share of wrong labels.
        batch: Examples per weight update.
        primary: Whether its contrast is among those that are tested.
        added: Methods that are shown beside them and have no part in the contrast.
    """

    name: str
    title: str
    kind: str
    network: str
    data: str
    methods: tuple[str, ...]
    seconds: float
    bound: float
    training: int
    wrong_labels: float = 0.0
    batch: int = 20
    primary: bool = True
    added: tuple[str, ...] = ()


TASKS = (
    Task(
        name="wrong-labels",
        title="40 % wrong labels",
        kind="classification",
        network="dense",
        data="mnist",
        methods=GRADIENT_METHODS,
        seconds=15.0,
        bound=0.01,
        training=5000,
        wrong_labels=0.4,
        added=tuple(ADDED),
    ),
    Task(
        name="small-data",
        title="1,000 images",
        kind="classification",
        network="dense",
        data="mnist",
        methods=GRADIENT_METHODS,
        seconds=15.0,
        bound=0.01,
        training=1000,
        added=tuple(ADDED),
    ),
    Task(
        name="learning-rates",
        title="learning rates over three decades",
        kind="rates",
        network="dense",
        data="mnist",
        methods=RATES_METHODS,
        seconds=14.0,
        bound=0.02,
        training=5000,
    ),
    Task(
        name="convolution",
        title="a convolutional network",
        kind="classification",
        network="convolution",
        data="mnist",
        methods=GRADIENT_METHODS,
        seconds=15.0,
        bound=0.005,
        training=5000,
    ),
    Task(
        name="sign-network",
        title="a network of signs, 0-1 loss",
        kind="sign",
        network="sign",
        data="mnist",
        methods=SIGN_METHODS,
        seconds=30.0,
        bound=0.01,
        training=5000,
        batch=200,
    ),
    Task(
        name="inventory",
        title="an inventory's cost, simulated",
        kind="control",
        network="policy",
        data="inventory",
        methods=CONTROL_METHODS,
        seconds=12.0,
        bound=0.01,
        training=8,
    ),
    Task(
        name="wrong-labels-1d",
        title="40 % wrong labels, MNIST-1D",
        kind="classification",
        network="small_dense",
        data="mnist1d",
        methods=GRADIENT_METHODS,
        seconds=8.0,
        bound=0.01,
        training=4000,
        wrong_labels=0.4,
        primary=False,
    ),
    Task(
        name="small-data-1d",
        title="1,000 signals, MNIST-1D",
        kind="classification",
        network="small_dense",
        data="mnist1d",
        methods=GRADIENT_METHODS,
        seconds=8.0,
        bound=0.01,
        training=1000,
        primary=False,
    ),
)
"""The tasks."""


@dataclass(frozen=True)
class Protocol:
    """How much is made of the tasks.

    Args:
        tasks: The tasks.
        trials: Of the random search, per method and task.
        tuning_seed: Theirs.
        seeds: Of the result.
        checkpoints: Validations along a training.
        rounding: Updates between two checkpoints are a multiple of it.
        rates_rounding: The same where a run is seven, one at each of `RATES`.
        validation: Examples to validate on; scenarios for the inventory.
        test: Scenarios of the inventory's test; other test sets are whole.
        population: Candidates per update of strategies that take losses alone.
        flatness_examples: Training examples that flatness is measured on.
        flatness_tau: Variance of the Gaussian of F_tau - f.
        flatness_samples: Draws of it.
        probes: Of the Hessian's trace.
        updates: Of every method, at most; None: by the measured costs.
    """

    tasks: tuple[Task, ...] = TASKS
    trials: int = 16
    tuning_seed: int = 1000
    seeds: tuple[int, ...] = tuple(range(10))
    checkpoints: int = 10
    rounding: int = 10
    rates_rounding: int = 5
    validation: int = 2000
    test: int = 1000
    population: int = 64
    flatness_examples: int = 1000
    flatness_tau: float = 1e-3
    flatness_samples: int = 30
    probes: int = 20
    updates: int | None = None

    def task(self, name: str) -> Task:
        """Returns the task of a name."""
        return next(task for task in self.tasks if task.name == name)

    def settings(self) -> Mapping[str, Any]:
        """Returns what decides a run's numbers, beside task, method, seed and updates."""
        decided = (
            "tasks",
            "trials",
            "tuning_seed",
            "seeds",
            "rounding",
            "rates_rounding",
            "updates",
        )
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in decided}


PROTOCOL = Protocol()
"""The whole map."""

QUICK = Protocol(
    trials=2,
    seeds=(0, 1),
    checkpoints=2,
    rounding=1,
    rates_rounding=1,
    validation=100,
    test=20,
    population=8,
    flatness_examples=50,
    flatness_samples=4,
    probes=2,
    updates=4,
)
"""The same code at a budget that shows nothing but that it runs."""
