"""Table 1's importance sampling with tau fixed, and with tau that follows the ESS."""

from typing import TYPE_CHECKING

import keras

from examples.measured import Measured, train
from lerh_tf import AdaptTau
from reproduce import methods, networks
from reproduce.protocols import TABLE1, LocalEntropyByImportanceSampling

if TYPE_CHECKING:
    from reproduce.data import Mnist

METHOD = LocalEntropyByImportanceSampling()


def report(data: "Mnist", seed: int, targets: tuple[float, ...], updates: int) -> str:
    """Returns a Markdown page: accuracy, tau and ESS with tau fixed and for each target.

    Args:
        data: MNIST.
        seed: The run's seed.
        targets: Shares of the samples that the ESS is to be.
        updates: Weight updates.
    """
    at = [u for u in TABLE1.training.tabulated if u < updates] + [updates]
    lines = [
        f"# Table 1's importance sampling with tau fixed and by `AdaptTau`, seed {seed}",
        "",
        "| tau | | " + " | ".join(map(str, at)) + " |",
        "|---|---|" + "---|" * len(at),
    ]
    for target in (None, *targets):
        found = run(data, seed, target, at)
        name = "fixed" if target is None else f"`AdaptTau({target:g})`"
        rows = {
            "accuracy": [f"{value:.3f}" for value in found.accuracy],
            "tau": [f"{update['tau']:.3g}" for update in found.diagnostics],
            "ESS / J": [
                f"{update['effective_sample_size'] / METHOD.samples:.2f}"
                for update in found.diagnostics
            ],
        }
        for label, cells in rows.items():
            lines.append(f"| {name} | {label} | " + " | ".join(cells) + " |")
            name = ""
    return "\n".join(lines)


def run(data: "Mnist", seed: int, target: float | None, at: list[int]) -> Measured:
    """Trains by Table 1's protocol; `target` None leaves tau as it is."""
    setup = TABLE1.training
    model = networks.build(setup.network, setup.initialization, seed)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = methods.optimizer(METHOD, seed)
    model.compile(optimizer, loss, jit_compile=False)
    callbacks = [] if target is None else [AdaptTau(target)]
    return train(model, data, seed, setup.batch_size, at, setup.test_images, callbacks)
