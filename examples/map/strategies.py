"""Methods that take losses alone, on a vector of weights: a population in each update."""

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from examples.map.methods import COMMON
from examples.map.randomness import generator
from examples.map.search import Choice, LogUniform, Settings, Space
from lerh_tf import ImportanceSampling, LocalEntropy, Objective

Array = npt.NDArray[Any]
Losses = Callable[[Array], Array]
"""Takes a population, shape (candidates, dimension), to its losses, shape (candidates,)."""


class Strategy(abc.ABC):
    """Moves a vector of weights by the losses of populations around it.

    Args:
        start: The weights, shape (dimension,).
        settings: Hyper-parameters.
        population: Candidates per update.
        seed: Of the draws; those of update k are a function of the seed and k.
        updates: Of the run, which a schedule spans.
    """

    def __init__(
        self, start: Array, settings: Settings, population: int, seed: int, updates: int
    ) -> None:
        self.weights = np.asarray(start, np.float64)
        self.settings, self.population, self.seed = settings, population, seed
        self._updates = 0

    def update(self, losses: Losses) -> None:
        """Makes one update, by the losses on one minibatch; one that is NaN counts as infinite."""

        def finite(population: Array) -> Array:
            return np.nan_to_num(losses(population), nan=np.inf, posinf=np.inf, neginf=np.inf)

        self._update(finite)
        self._updates += 1

    @abc.abstractmethod
    def _update(self, losses: Losses) -> None:
        """Moves `weights`."""

    def _normal(self, count: int) -> Array:
        draws = generator(type(self).__name__, self.seed, self._updates)
        # Single precision takes half the time, which strategies are given too.
        return draws.standard_normal((count, self.weights.size), np.float32)


class OpenAIES(Strategy):
    """Adam along sum_i u_i z_i / (n sigma), u the centred ranks of the losses at x + sigma z.

    The z come in pairs z, -z.

    References:
        Salimans, Ho, Chen, Sidor and Sutskever (2017), Evolution strategies as a scalable
        alternative to reinforcement learning, Algorithm 1 and Section 2.
    """

    def __init__(
        self, start: Array, settings: Settings, population: int, seed: int, updates: int
    ) -> None:
        super().__init__(start, settings, population, seed, updates)
        self._adam = self._optimizer(updates)
        self._variable = keras.Variable(self.weights, dtype="float64")

    def _update(self, losses: Losses) -> None:
        half = self._normal(self.population // 2)
        z = np.concatenate([half, -half])
        ranks = centred_ranks(losses(self.weights + self.settings["sigma"] * z))
        gradient = ranks @ z / (len(z) * self.settings["sigma"])
        self._adam.apply([tf.constant(gradient)], [self._variable])
        self.weights = self._variable.numpy()

    def _optimizer(self, updates: int) -> keras.optimizers.Optimizer:
        """Returns the outer optimizer of a run."""
        return keras.optimizers.Adam(self.settings["learning_rate"])


class ScheduledOpenAIES(OpenAIES):
    """With decoupled weight decay, and a learning rate that falls to zero along half a cosine."""

    def _optimizer(self, updates: int) -> keras.optimizers.Optimizer:
        rate = keras.optimizers.schedules.CosineDecay(self.settings["learning_rate"], updates)
        return keras.optimizers.AdamW(rate, weight_decay=self.settings["weight_decay"])


class SNES(Strategy):
    """The natural gradient of a Gaussian with independent coordinates, by ranks.

    References:
        Wierstra, Schaul, Glasmachers, Sun, Peters and Schmidhuber (2014), Natural evolution
        strategies, Algorithm 6 and Table 1.
    """

    def __init__(
        self, start: Array, settings: Settings, population: int, seed: int, updates: int
    ) -> None:
        super().__init__(start, settings, population, seed, updates)
        self.deviations = np.full(self.weights.size, settings["sigma"])

    def _update(self, losses: Losses) -> None:
        z = self._normal(self.population)
        utilities = natural_utilities(losses(self.weights + self.deviations * z))
        d = self.weights.size
        rate = self.settings["rate_factor"] * (3.0 + math.log(d)) / (5.0 * math.sqrt(d))
        self.weights = self.weights + self.deviations * (utilities @ z)
        self.deviations = self.deviations * np.exp(rate / 2.0 * (utilities @ (z**2 - 1.0)))


class CMAES(Strategy):
    """CMA-ES, of the package `cma`, whose settings are its defaults but for the population."""

    def __init__(
        self, start: Array, settings: Settings, population: int, seed: int, updates: int
    ) -> None:
        import cma

        super().__init__(start, settings, population, seed, updates)
        draws = generator(type(self).__name__, seed)
        self._es = cma.CMAEvolutionStrategy(
            self.weights,
            settings["sigma"],
            {
                "popsize": population,
                "randn": lambda *shape: draws.standard_normal(shape),
                "verbose": -9,
                # It would otherwise seed NumPy's global generator.
                "seed": np.nan,
            },
        )

    def _update(self, losses: Losses) -> None:
        candidates = self._es.ask()
        found = losses(np.array(candidates))
        # The package takes no infinity.
        self._es.tell(candidates, np.minimum(found, np.finfo(float).max).tolist())
        self.weights = np.array(self._es.mean)


class RandomSearch(Strategy):
    """Moves to the lowest of x and draws of N(x, sigma^2 I), on one minibatch.

    References:
        Rastrigin (1963), The convergence of the random search method in the extremal control of
        a many parameter system.
    """

    def _update(self, losses: Losses) -> None:
        moved = self.weights + self.settings["sigma"] * self._normal(self.population - 1)
        candidates = np.concatenate([self.weights[None], moved])
        self.weights = candidates[np.argmin(losses(candidates))]


class LocalEntropyByLosses(Strategy):
    """This library's local entropy by importance sampling, x = m, with momentum outside."""

    def __init__(
        self, start: Array, settings: Settings, population: int, seed: int, updates: int
    ) -> None:
        super().__init__(start, settings, population, seed, updates)
        tau, momentum = settings["sigma"] ** 2, settings["momentum"]
        sampler = ImportanceSampling(
            population, control_variate=True, loss_multiplier=settings["loss_multiplier"]
        )
        inner = keras.optimizers.SGD(
            settings["learning_rate"] * tau * (1.0 - momentum), momentum=momentum
        )
        self._optimizer = LocalEntropy(tau, sampler, optimizer=inner, seed=seed, on_failure="warn")
        self._variable = tf.Variable(self.weights)
        self._losses: Losses = lambda population: np.zeros(len(population))

    def _update(self, losses: Losses) -> None:
        self._losses = losses
        self._optimizer.step(self._objective, [self._variable])
        self.weights = self._variable.numpy()

    def _objective(self) -> Objective:
        return _PopulationLosses(lambda population: self._losses(population))


class _PopulationLosses(Objective):
    """f that NumPy computes, of one vector of weights."""

    is_used = (True,)
    # So small that all samples are one block, and one call of NumPy.
    footprint = 1

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def __call__(self, weights: Any) -> tf.Tensor:
        """See `Objective`."""
        return self.vectorized([weights[0][None]])[0]

    def vectorized(self, stacked: Any) -> tf.Tensor:
        """See `Objective`."""
        found = tf.numpy_function(self._losses, [stacked[0]], tf.float64)
        return tf.ensure_shape(found, [None])

    def value_and_gradient(self, weights: Any) -> Any:
        """Raises: NumPy gives no gradient."""
        raise ValueError("The loss has no gradient. Received: an objective that NumPy computes")


def centred_ranks(losses: Array) -> Array:
    """Returns ranks from -1/2, the lowest loss, to 1/2."""
    ranks = np.empty(len(losses))
    ranks[np.argsort(losses, kind="stable")] = np.arange(len(losses))
    return ranks / (len(losses) - 1) - 0.5


def natural_utilities(losses: Array) -> Array:
    """Returns the utilities of natural evolution strategies, which sum to 0.

    max(0, log(n / 2 + 1) - log k) for the k-th lowest loss, over their sum, minus 1 / n.
    """
    n = len(losses)
    k = np.empty(n)
    k[np.argsort(losses, kind="stable")] = np.arange(1, n + 1)
    raw = np.maximum(0.0, math.log(n / 2 + 1) - np.log(k))
    return raw / raw.sum() - 1.0 / n


@dataclass(frozen=True)
class Gradientless:
    """A method without gradients.

    Args:
        title: What the page calls it.
        space: Where its hyper-parameters are searched.
        strategy: What carries it out.
        is_ours: Whether it is of this library.
    """

    title: str
    space: Space
    strategy: type[Strategy]
    is_ours: bool = False


_SIGMA: Space = {"sigma": LogUniform(0.01, 0.3)}

STRATEGIES: Mapping[str, Gradientless] = {
    "openai_es": Gradientless(
        "OpenAI's evolution strategy", {**_SIGMA, "learning_rate": LogUniform(1e-3, 1e-1)}, OpenAIES
    ),
    "snes": Gradientless("SNES", {**_SIGMA, "rate_factor": LogUniform(0.3, 3.0)}, SNES),
    "cma_es": Gradientless("CMA-ES", _SIGMA, CMAES),
    "random_search": Gradientless("random search", _SIGMA, RandomSearch),
    "local_entropy": Gradientless(
        "local entropy without gradients",
        {
            **_SIGMA,
            "momentum": Choice((0.0, 0.9)),
            "learning_rate": LogUniform(0.1, 10.0),
            "loss_multiplier": LogUniform(3.0, 300.0),
        },
        LocalEntropyByLosses,
        is_ours=True,
    ),
}
"""For a loss without gradients, all at constant rates."""

_OPENAI_ES = STRATEGIES["openai_es"]
SIGN_STRATEGIES: Mapping[str, Gradientless] = {
    **STRATEGIES,
    "openai_es": replace(
        _OPENAI_ES,
        space={**_OPENAI_ES.space, **{name: COMMON[name] for name in ("weight_decay", "length")}},
        strategy=ScheduledOpenAIES,
    ),
}
"""For the sign network, whose local entropy has a schedule and decay as well."""


def strategies_of(kind: str) -> Mapping[str, Gradientless]:
    """Returns the strategies of a kind of tasks, by name."""
    return SIGN_STRATEGIES if kind == "sign" else STRATEGIES
