"""The methods with gradients: where each is searched, and the optimizer of its settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import keras

from examples.map.entropy_sgd import EntropySGD
from examples.map.sam import SAM
from examples.map.search import Choice, LogUniform, Settings, Space
from lerh_tf import (
    HeatRegularization,
    ImportanceSampling,
    Kernel,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
)

GRADIENTS = 10
"""Of a weight update of local entropy and of heat regularization."""
SIGN_SAMPLES = 1000
"""Losses of a weight update of local entropy without gradients."""
ADAM_PER_SGD = 0.01
"""Adam's learning rates are searched at this fraction of SGD's."""

Rate: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule


@dataclass(frozen=True)
class Method:
    """A method.

    Args:
        title: What the page calls it.
        space: Where its hyper-parameters are searched.
        optimizer: Takes settings, learning rate (a number or schedule) and seed to an optimizer.
        rate_factor: Its learning rate is this times the setting `learning_rate`.
        is_ours: Whether it is of this library.
    """

    title: str
    space: Space
    optimizer: Callable[[Settings, Rate, int], keras.optimizers.Optimizer]
    rate_factor: float = 1.0
    is_ours: bool = False

    def scheduled(self, settings: Settings, updates: int, seed: int) -> keras.optimizers.Optimizer:
        """Returns an optimizer whose learning rate falls to zero along half a cosine.

        Args:
            settings: The hyper-parameters.
            updates: Weight updates of the training.
            seed: Of the noise.
        """
        peak = self.rate_factor * settings["learning_rate"]
        rate = keras.optimizers.schedules.CosineDecay(peak, updates)
        return self.optimizer(settings, rate, seed)


def _sgd(settings: Settings, rate: Rate, **further: Any) -> keras.optimizers.SGD:
    """SGD whose `rate` and decay are those of its long run, whatever the momentum.

    With momentum p a gradient counts 1 / (1 - p) times in the end.
    """
    left = 1.0 - settings["momentum"]
    return keras.optimizers.SGD(
        _times(left, rate),
        momentum=settings["momentum"],
        nesterov=settings["momentum"] > 0.0,
        weight_decay=settings["weight_decay"] / left,
        **further,
    )


def _times(factor: float, rate: Rate) -> Rate:
    if isinstance(rate, float):
        return factor * rate
    config = rate.get_config()
    return type(rate).from_config(
        {**config, "initial_learning_rate": factor * config["initial_learning_rate"]}
    )


def _adam(settings: Settings, rate: Rate, seed: int) -> keras.optimizers.Optimizer:
    # Keras multiplies the decay by the learning rate, which is smaller than SGD's.
    decay = settings["weight_decay"] / ADAM_PER_SGD
    return keras.optimizers.AdamW(_times(ADAM_PER_SGD, rate), weight_decay=decay)


def _momentum(settings: Settings, rate: Rate, seed: int) -> keras.optimizers.Optimizer:
    return _sgd(settings, rate)


def _gradients(settings: Settings) -> Kernel:
    return ImportanceSampling(GRADIENTS, estimator="gradients")


def _average(settings: Settings, rate: Rate, seed: int) -> keras.optimizers.Optimizer:
    return _sgd(settings, rate, use_ema=True, ema_momentum=1.0 - settings["forgetting"])


def _local_entropy(
    kernel: Callable[[Settings], Kernel], tau: str | float = "tau", inside: Any = _momentum
) -> Any:
    """Returns what makes momentum SGD, or Adam, along g = (x - m) / tau of a kernel's m."""

    def make(settings: Settings, rate: Rate, seed: int) -> keras.optimizers.Optimizer:
        variance = settings[tau] if isinstance(tau, str) else tau
        inner = inside(settings, rate, seed)
        return LocalEntropy(
            variance, kernel(settings), optimizer=inner, seed=seed, on_failure="warn"
        )

    return make


def _heat(inside: Any = _momentum) -> Any:
    def make(settings: Settings, rate: Rate, seed: int) -> keras.optimizers.Optimizer:
        steps = RobbinsMonroSteps(1.0, 1.0, largest=0.5)
        solver = RobbinsMonro(GRADIENTS // 2, 2, step_sizes=steps)
        inner = inside(settings, rate, seed)
        return HeatRegularization(
            settings["tau"], solver, optimizer=inner, seed=seed, on_failure="warn"
        )

    return make


def _entropy_sgd(settings: Settings) -> EntropySGD:
    momentum = settings["momentum"]
    step_size = (1.0 - momentum) * settings["step_size"]
    return EntropySGD(settings["gamma"], step_size, momentum)


def _zero_one(settings: Settings, rate: Rate, seed: int) -> keras.optimizers.Optimizer:
    sampler = ImportanceSampling(
        SIGN_SAMPLES, control_variate=True, loss_multiplier=settings["loss_multiplier"]
    )
    # The paper's update moves to m, a learning rate of tau.
    tau = settings["sigma"] ** 2
    inner = _sgd(settings, _times(tau, rate))
    return LocalEntropy(tau, sampler, optimizer=inner, seed=seed, on_failure="warn")


_TAU = {"tau": LogUniform(1e-5, 1e-1)}
COMMON: Space = {
    "learning_rate": LogUniform(0.01, 1.0),
    "momentum": Choice((0.0, 0.9)),
    "weight_decay": LogUniform(1e-5, 1e-1),
    "length": LogUniform(0.03, 1.0),
}
"""What every method with gradients has, Adam but for the momentum.

`length` is the share of its budget that a run makes.
"""

_OF_ADAM: Space = {name: values for name, values in COMMON.items() if name != "momentum"}

METHODS: Mapping[str, Method] = {
    "sgd": Method("SGD", COMMON, _momentum),
    "adam": Method(
        "Adam with decoupled decay",
        _OF_ADAM,
        _adam,
    ),
    "average": Method(
        "SGD with averaged weights", {**COMMON, "forgetting": LogUniform(1e-4, 1e-1)}, _average
    ),
    "sam": Method(
        "SAM",
        {**COMMON, "rho": LogUniform(0.01, 1.0)},
        _local_entropy(lambda s: SAM(s["rho"]), tau=1.0),
    ),
    "weight_noise": Method(
        "Gaussian weight noise",
        {**COMMON, **_TAU},
        _local_entropy(lambda s: ImportanceSampling(1, estimator="gradients")),
    ),
    "entropy_sgd": Method(
        "Entropy-SGD",
        {
            **COMMON,
            "gamma": LogUniform(1e-3, 1.0),
            "step_size": LogUniform(0.01, 1.0),
        },
        _local_entropy(_entropy_sgd, tau=1.0),
    ),
    "local_entropy": Method(
        "local entropy",
        {**COMMON, **_TAU},
        _local_entropy(_gradients),
        is_ours=True,
    ),
    "heat": Method("heat regularization", {**COMMON, **_TAU}, _heat(), is_ours=True),
    "local_entropy_adam": Method(
        "local entropy, Adam inside",
        {**_OF_ADAM, **_TAU},
        _local_entropy(_gradients, inside=_adam),
        is_ours=True,
    ),
    "heat_adam": Method(
        "heat regularization, Adam inside", {**_OF_ADAM, **_TAU}, _heat(_adam), is_ours=True
    ),
}
"""For a loss with gradients."""

SIGN_METHODS: Mapping[str, Method] = {
    "straight_through": Method("straight-through estimator", COMMON, _momentum),
    "local_entropy": Method(
        "local entropy without gradients",
        {
            **COMMON,
            "learning_rate": LogUniform(0.1, 10.0),
            "sigma": LogUniform(0.01, 0.3),
            "loss_multiplier": LogUniform(3.0, 300.0),
        },
        _zero_one,
        is_ours=True,
    ),
}
"""Those that train the sign network by `fit`; the others are `strategies.STRATEGIES`."""
