"""`python -m benchmarks.peers.networks`; `make networks` runs it where the libraries are."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import App, CycloptsError

from benchmarks.peers import gpu as device
from benchmarks.peers.networks.problem import BATCH, SHAPES, TITLES
from benchmarks.peers.networks.race import race
from benchmarks.peers.work import ALGORITHMS
from reproduce import checks
from reproduce.arguments import UsageError, integers_only, several, single
from reproduce.environment import describe
from reproduce.storage import write

_OUTPUT = Path("results/peers/networks.md")
_TITLE = "# Weight updates on other networks, side by side"
_BUDGET = "SGLD and importance sampling: J = 100; heat regularization: J = 10, M = 10; tau = 0.01."
_LIBRARIES = ("tensorflow", "keras", "torch", "jax", "numpy")

app = App(name="python -m benchmarks.peers.networks", help_format="plaintext", version_flags=[])


@app.default
def networks(
    *,
    networks: Annotated[list[str] | None, several] = None,
    threads: Annotated[int, integers_only] = 2,
    repeats: Annotated[int, integers_only] = 7,
    gpu: Annotated[bool, single] = False,
    output: Annotated[Path, single] = _OUTPUT,
) -> None:
    """Times a weight update on networks that are not the paper's, side by side.

    Args:
        networks: Which: wide, convolutional, attention. [default: all]
        threads: Processors that a system may use. [default: 2]
        repeats: Timed updates of each system. [default: 7]
        gpu: Compute on the GPU, which all libraries must be installed for, in full float32.
        output: File of the tables, committed as docs/measured/networks.md.
            [default: results/peers/networks.md]
    """
    chosen = networks or list(SHAPES)
    try:
        checks.distinct("networks", chosen)
        for network in chosen:
            checks.one_of("networks", network, SHAPES)
        checks.positive_integer("threads", threads)
        checks.positive_integer("repeats", repeats)
    except ValueError as error:
        raise UsageError(str(error)) from error
    found = device.required_name() if gpu else None
    parts = [section(network, race(network, threads, repeats, _say, gpu=gpu)) for network in chosen]
    text = "\n\n".join([_TITLE, *parts, notes(threads, repeats, found)]) + "\n"
    print(text)
    write(output, text.encode(), output.with_name(f"{output.name}.part"))
    _say(f"wrote {output}")


def section(network: str, rows: Sequence[dict[str, Any]]) -> str:
    """Returns a network's tables, one per algorithm, the fastest first."""
    tables = [f"## {TITLES[network]}"]
    for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
        own = [row for row in rows if row["algorithm"] == algorithm]
        ours = next(row["seconds"] for row in own if row["system"] == "lerh_tf")
        lines = [
            {
                "system": row["system"],
                "median s": f"{row['seconds']:.4f}",
                "least - most": f"{row['spread'][0]:.4f} - {row['spread'][1]:.4f}",
                "x lerh_tf": f"{row['seconds'] / ours:.2f}",
                "first update s": f"{row['first']:.1f}",
            }
            for row in sorted(own, key=lambda row: row["seconds"])
        ]
        table = pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True)
        tables.append(f"{ALGORITHMS[algorithm]}\n\n{table}")
    return "\n\n".join(tables)


def notes(threads: int, repeats: int, gpu: str | None) -> str:
    """Returns what was measured, and where: on a GPU if that has a name."""
    on = f"{gpu}, float32 without TF32; " if gpu else ""
    machine = describe()
    versions = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    lines = [
        f"{_BUDGET} A minibatch of {BATCH} random inputs; loss and gradient agree to 1e-4.",
        f"Medians of {repeats} updates, one of each system in turn, in an order drawn anew each "
        f"time and after one that is not timed; {threads} threads, a process per library; lerh_tf "
        "through `train_on_batch` with `jit_compile=False`.",
        f"x lerh_tf: over the median of lerh_tf as it is by default. {on}{machine['processor']}, "
        f"{machine['system']}.",
        f"Versions: {versions}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 for bad arguments.

    Args:
        arguments: the words after the program's name; `None`: those it was started with.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, UsageError) as error:
        _say(f"benchmarks.peers.networks: error: {error}")
        return 2
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
