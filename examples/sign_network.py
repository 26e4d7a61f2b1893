"""A network of sign activations trained on the 0-1 loss itself, which has no useful gradient."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from examples.measured import Measured, train
from lerh_tf import ImportanceSampling, LocalEntropy
from reproduce.networks import CLASSES, PIXELS

if TYPE_CHECKING:
    from reproduce.data import Mnist


@dataclass(frozen=True)
class SignNetwork:
    """Settings of the training.

    Args:
        hidden: Sign units.
        batch_size: Images per weight update.
        updates: Weight updates.
        tau: Variance of the Gaussian.
        samples: Draws per weight update.
        loss_multiplier: Inverse temperature: what the share of errors is multiplied by.
    """

    hidden: int = 32
    batch_size: int = 200
    updates: int = 500
    tau: float = 0.01
    samples: int = 1000
    loss_multiplier: float = 50.0


def network(hidden: int, seed: int) -> keras.Model:
    """Builds 784-hidden-10 with signs between."""
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((PIXELS,)),
            keras.layers.Dense(hidden),
            keras.layers.Activation(tf.sign),
            keras.layers.Dense(CLASSES),
        ]
    )


def zero_one(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Returns 1 per image where another class has a higher logit than the label, 1/2 for ties."""
    is_label = tf.one_hot(tf.cast(tf.reshape(labels, [-1]), tf.int32), CLASSES) > 0.0
    own = tf.reduce_max(tf.where(is_label, logits, logits.dtype.min), 1)
    others = tf.reduce_max(tf.where(is_label, logits.dtype.min, logits), 1)
    # With signs the loss has a gradient for backpropagation to find: it is zero everywhere.
    return (1.0 - tf.sign(own - others)) / 2.0


def run(
    settings: SignNetwork, data: "Mnist", seed: int, optimizer: keras.optimizers.Optimizer
) -> Measured:
    """Trains with an optimizer and measures the accuracy on all test images."""
    model = network(settings.hidden, seed)
    model.compile(optimizer, zero_one, jit_compile=False)
    at = measured_at(settings)
    return train(model, data, seed, settings.batch_size, at, len(data.test_labels))


def measured_at(settings: SignNetwork) -> list[int]:
    """Returns the updates to measure after."""
    return sorted({1, *range(100, settings.updates, 100), settings.updates})


def gradient_free(settings: SignNetwork, seed: int) -> LocalEntropy:
    """Returns the optimizer that needs no gradient."""
    sampler = ImportanceSampling(
        settings.samples, loss_multiplier=settings.loss_multiplier, control_variate=True
    )
    return LocalEntropy(settings.tau, sampler, seed=seed)


def report(settings: SignNetwork, data: "Mnist", seed: int) -> str:
    """Returns a Markdown page: the settings and a table of test accuracies."""
    at = measured_at(settings)
    ours = run(settings, data, seed, gradient_free(settings, seed))
    sgd = run(settings, data, seed, keras.optimizers.SGD(settings.tau))
    ess = [f"{update['effective_sample_size']:.0f}" for update in ours.diagnostics]
    lines = [
        "# A network of signs, trained on the 0-1 loss",
        "",
        ", ".join(f"{name} {value:g}" for name, value in asdict(settings).items())
        + f", seed {seed}",
        "",
        "| | " + " | ".join(map(str, at)) + " |",
        "|---|" + "---|" * len(at),
        "| `ImportanceSampling` | " + " | ".join(f"{a:.3f}" for a in ours.accuracy) + " |",
        "| its ESS | " + " | ".join(ess) + " |",
        "| SGD | " + " | ".join(f"{a:.3f}" for a in sgd.accuracy) + " |",
    ]
    return "\n".join(lines)
