"""`python -m benchmarks.scaling`; `make scaling` runs it."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App

from benchmarks.scaling.cases import CASES, QUICK
from reproduce import checks, environment, storage
from reproduce.arguments import UsageError, integers_only, single
from reproduce.cli.entry import main

_SAMPLES = (100, 1000, 10_000, 100_000, 1_000_000)
_QUICK_SAMPLES = (10, 100)
_THREADS = 2
_TITLES = {
    "scaling": "Seconds of a weight update on L replicas",
    "model": "Modelled efficiency on L processors",
    "errors": "Error of one update's mean over its step, J samples of all processors together",
}

app = App(
    name="python -m benchmarks.scaling",
    help_format="plaintext",
    version_flags=[],
    suppress_keyboard_interrupt=False,
)


@app.default
def scaling(
    *,
    rounds: Annotated[int, integers_only] = 5,
    quick: bool = False,
    bandwidth: float = 1.25e9,
    latency: float = 5e-5,
    output: Annotated[Path, single] = Path("results/scaling"),
    figures_dir: Annotated[Path, single] = Path("figures"),
    data_dir: Annotated[Path | None, single] = None,
) -> None:
    """Time weight updates on one and two replicas, a thread each, and model more of them.

    Args:
        rounds: Timed updates of each.
        quick: Take small updates and few samples, for a first look.
        bandwidth: Of the model, bytes per second between two processors.
        latency: Of the model, seconds per step of an exchange.
        output: Folder of the tables.
        figures_dir: Folder of the figure.
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    try:
        checks.positive_integer("rounds", rounds)
        checks.positive_number("bandwidth", bandwidth)
        checks.positive_number("latency", latency)
    except ValueError as error:
        raise UsageError(str(error)) from error
    from benchmarks.scaling import report
    from benchmarks.scaling.measured import measure

    found = measure(QUICK if quick else CASES, rounds, _say)
    environment.prepare(_THREADS)
    from benchmarks.scaling.error import errors
    from reproduce.data import load_mnist

    samples = _QUICK_SAMPLES if quick else _SAMPLES
    _say(f"error of the mean, J to {samples[-1]}")
    relative_errors = errors(load_mnist(data_dir), samples)
    tables = {
        "scaling": report.measurements(found),
        "model": report.model(found, bandwidth, latency),
        "errors": report.errors(relative_errors, samples),
    }
    machine = environment.describe()
    notes = (
        "L replicas of one process, `MirroredStrategy` on logical devices, a thread each; medians "
        f"of {rounds} updates (least - most) of importance sampling at tau = 0.01, in turns. "
        f"{machine['processor']}, {machine['system']}, TensorFlow {machine['tensorflow']}.\n\n"
        f"The model of L > 1: {bandwidth:g} bytes per second, {latency:g} seconds per step of a "
        "ring. What is shared and repeated is measured on one replica, which does half of the "
        "samples or, with half of the rows, all that one of two does; the model's seconds on two "
        "are without exchange, which is a copy within this process."
    )
    parts = [
        f"## {_TITLES[name]}\n\n{table.to_markdown(index=False, disable_numparse=True)}"
        for name, table in tables.items()
    ]
    text = "\n\n".join(["# Replicas", *parts, notes]) + "\n"
    for name, content in {
        "scaling.md": text,
        **{f"{name}.csv": table.to_csv(index=False) for name, table in tables.items()},
    }.items():
        storage.write(output / name, content.encode())
        _say(f"wrote {output / name}")
    for path in report.draw(
        found, relative_errors, samples, (bandwidth, latency), figures_dir / "scaling"
    ):
        _say(f"wrote {path}")
    print(text, end="")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(app=app))
