"""`python -m examples`: prints what an example gives on MNIST, as Markdown."""

import sys
from pathlib import Path

from cyclopts import App

from reproduce import environment
from reproduce.environment import DEFAULT_THREADS

app = App(
    name="python -m examples",
    help=(
        "Shows on MNIST what the library can do beyond the paper; prints Markdown, committed as "
        "docs/measured/COMMAND.md."
    ),
    help_format="plaintext",
    version_flags=[],
)


@app.command
def adapt_tau(
    *,
    seed: int = 0,
    updates: int = 500,
    targets: tuple[float, ...] = (0.5, 0.9),
    threads: int = DEFAULT_THREADS,
    data_dir: Path | None = None,
) -> None:
    """Train by Table 1's importance sampling with tau fixed, and with `AdaptTau`.

    Args:
        seed: Of initial weights, minibatches and noise.
        updates: Weight updates.
        targets: Shares of the samples that the ESS is to be.
        threads: Processors to use.
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    environment.prepare(threads)
    from examples.adapt_tau import report
    from reproduce.data import load_mnist

    print(report(load_mnist(data_dir), seed, targets, updates))


@app.command
def sign_network(
    *,
    seed: int = 0,
    updates: int = 500,
    tau: float = 0.01,
    loss_multiplier: float = 50.0,
    threads: int = DEFAULT_THREADS,
    data_dir: Path | None = None,
) -> None:
    """Train sign activations on the 0-1 loss by importance sampling, and by SGD.

    Args:
        seed: Of initial weights, minibatches and noise.
        updates: Weight updates.
        tau: Variance of the Gaussian.
        loss_multiplier: Inverse temperature.
        threads: Processors to use.
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    environment.prepare(threads)
    from examples.sign_network import SignNetwork, report
    from reproduce.data import load_mnist

    settings = SignNetwork(updates=updates, tau=tau, loss_multiplier=loss_multiplier)
    print(report(settings, load_mnist(data_dir), seed))


if __name__ == "__main__":
    sys.exit(app())
