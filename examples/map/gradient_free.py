"""Runs of the methods that take losses alone: on the network of signs, and on the inventory."""

import abc
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from examples.map import data, inventory, measures, networks
from examples.map.data import CLASSES, Mnists
from examples.map.protocol import Protocol, Task
from examples.map.randomness import integer_seed
from examples.map.search import Settings
from examples.map.strategies import Strategy, strategies_of
from examples.map.training import Report, Result, status
from reproduce.sampling import minibatches

Array = npt.NDArray[Any]


class Problem(abc.ABC):
    """A loss of a vector of weights, minibatch by minibatch, and how good the weights are."""

    @abc.abstractmethod
    def start(self) -> Array:
        """Returns the initial weights."""

    @abc.abstractmethod
    def losses(self, update: int, population: Array) -> Array:
        """Returns the population's losses on the minibatch of an update."""

    @abc.abstractmethod
    def validated(self, weights: Array) -> Result:
        """Returns the score on the validation set, `validation`."""

    @abc.abstractmethod
    def tested(self, weights: Array) -> Result:
        """Returns the score on the test set, `test`."""


class Inventory(Problem):
    """The cost that is saved against the base-stock rule, a share of its cost.

    The loss is one less that, of the scenarios of an update.

    Args:
        seed: Of demands and initial weights.
        task: Its `training` are the scenarios per update.
        protocol: The other numbers of scenarios.
    """

    def __init__(self, seed: int, task: Task, protocol: Protocol) -> None:
        self._seed, self._task, self._protocol = seed, task, protocol

    def start(self) -> Array:
        """See `Problem`."""
        return inventory.initial_policy(self._seed)

    def losses(self, update: int, population: Array) -> Array:
        """See `Problem`."""
        demands = inventory.demand("training", self._seed, update, self._task.training)
        return inventory.costs(population, demands) / self._rule

    def validated(self, weights: Array) -> Result:
        """See `Problem`."""
        return {"validation": _saved(weights, self._validation)}

    def tested(self, weights: Array) -> Result:
        """See `Problem`."""
        demands = inventory.demand("test", self._seed, 0, self._protocol.test)
        return {"test": _saved(weights, demands)}

    @cached_property
    def _validation(self) -> Array:
        # A tenth of the images that others validate on: a scenario is a year.
        scenarios = max(1, self._protocol.validation // 10)
        return inventory.demand("validation", self._seed, 0, scenarios)

    @cached_property
    def _rule(self) -> float:
        return float(inventory.base_stock_costs(self._validation).mean())


def _saved(weights: Array, demands: Array) -> float:
    (cost,) = inventory.costs(weights[None], demands)
    return float(1.0 - cost / inventory.base_stock_costs(demands).mean())


class Signs(Problem):
    """The share of errors of the network of signs, as `networks.build` makes it.

    Args:
        seed: Of data, minibatches and initial weights.
        task: Images per update, and what is trained on.
        protocol: How much is validated on.
        mnist: Loads MNIST.
        updates: Weight updates.
    """

    def __init__(
        self, seed: int, task: Task, protocol: Protocol, mnist: Mnists, updates: int
    ) -> None:
        self._seed, self._task, self._mnist = seed, task, mnist
        self._split = data.split(
            task.data, mnist, seed, task.training, protocol.validation, task.wrong_labels
        )
        self._order = minibatches(seed, task.training, task.batch, updates)
        self._shapes: list[tuple[int, ...]] = []

    def start(self) -> Array:
        """See `Problem`."""
        model = networks.build(self._task.network, data.FEATURES[self._task.data], self._seed)
        values = [variable.numpy() for variable in model.trainable_variables]
        self._shapes = [value.shape for value in values]
        return np.concatenate([value.ravel() for value in values])

    def losses(self, update: int, population: Array) -> Array:
        """See `Problem`; half an error where two classes tie."""
        x, y = self._split.training
        rows = self._order[update]
        logits = self._logits(population, x[rows])
        own = np.take_along_axis(logits, y[rows][None, :, None], 2)[..., 0]
        is_label = np.arange(CLASSES) == y[rows][:, None]
        others = np.where(is_label, -np.inf, logits).max(2)
        return ((1.0 - np.sign(own - others)) / 2.0).mean(1)

    def validated(self, weights: Array) -> Result:
        """See `Problem`."""
        chosen = self._logits(weights[None], self._split.validation[0])[0].argmax(1)
        return {
            "validation": float((chosen == self._split.validation[1]).mean()),
            "clean_validation": float((chosen == self._split.clean_labels).mean()),
        }

    def tested(self, weights: Array) -> Result:
        """See `Problem`; calibration is that of the softmax of the logits."""
        inputs, labels = data.test_set(self._task.data, self._mnist)
        found = measures.calibration(self._logits(weights[None], inputs)[0], labels)
        return {"test": found.accuracy, "nll": found.nll, "ece": found.ece}

    def _logits(self, population: Array, inputs: Array) -> Array:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        parts = np.split(population.astype(np.float32), ends, axis=1)
        w1, b1, w2, b2 = (
            part.reshape(-1, *shape) for part, shape in zip(parts, self._shapes, strict=True)
        )
        # All candidates' first layers in one product.
        stacked = w1.transpose(1, 0, 2).reshape(inputs.shape[1], -1)
        hidden = (inputs @ stacked).reshape(len(inputs), len(population), -1).transpose(1, 0, 2)
        return np.sign(hidden + b1[:, None]) @ w2 + b2[:, None]


def problem_of(task: Task, seed: int, protocol: Protocol, mnist: Mnists, updates: int) -> Problem:
    """Returns a run's problem."""
    if task.kind == "control":
        return Inventory(seed, task, protocol)
    return Signs(seed, task, protocol, mnist, updates)


def strategy_of(
    task: Task,
    method: str,
    start: Array,
    settings: Settings,
    updates: int,
    seed: int,
    protocol: Protocol,
) -> Strategy:
    """Returns a run's strategy at the initial weights."""
    strategy = strategies_of(task.kind)[method].strategy
    return strategy(start, settings, protocol.population, integer_seed("noise", seed), updates)


def optimise(
    task: Task,
    method: str,
    settings: Settings,
    updates: int,
    seed: int,
    protocol: Protocol,
    mnist: Mnists,
    is_final: bool,
    report: Report,
) -> Result:
    """Runs a strategy, keeps the weights of the best validation, and measures them.

    The arguments are those of `training.classify`.

    Returns:
        The score on the validation set; of a final run also that on the test set.
    """
    problem = problem_of(task, seed, protocol, mnist, updates)
    strategy = strategy_of(task, method, problem.start(), settings, updates, seed, protocol)
    best, best_weights, curve = problem.validated(strategy.weights), strategy.weights, []
    each, is_finite = updates // protocol.checkpoints, True
    for update in range(updates):
        strategy.update(partial(problem.losses, update))
        if (update + 1) % each == 0:
            is_finite &= bool(np.isfinite(strategy.weights).all())
            found = problem.validated(strategy.weights)
            curve.append(found["validation"])
            if found["validation"] > best["validation"]:
                best, best_weights = found, strategy.weights
            report(len(curve))
    result = {**best, "status": status(is_finite), "validations": curve}
    return result | problem.tested(best_weights) if is_final else result
