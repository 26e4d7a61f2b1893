"""The command line: `reproduce table1`, `reproduce figures` and the others."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, Token
from rich.console import Console

from reproduce import checks, readings
from reproduce.environment import DEFAULT_THREADS
from reproduce.protocols import QUICK_TABLE1, SUBSPACES, TABLE1, Comparison, spelled

FAILED, USAGE = 1, 2
_SIGNALLED = 128

_OUTPUT = Path("results")
_FIGURES = Path("figures")
_SEEDS = (0, 1, 2)
_QUICK_SEEDS = (0,)
_KERNELS = ("sgld", "is", "hr")
_BENCHMARK_SAMPLES = 1000
_REPETITIONS = 5
_SUBSPACES = {spelled(value): value for value in SUBSPACES}
_READING = (
    "Other readings of the text, NAME=VALUE each; the default is the first. "
    "R3, R4 and R7 have one reading each."
)


class UsageError(Exception):
    """An argument's value breaks its rule."""


def _integers(kind: object, tokens: Sequence[Token]) -> int | list[int]:
    # Cyclopts itself would round 1.5.
    values = [_integer(token) for token in tokens]
    return values if kind == list[int] else values[0]


def _integer(token: Token) -> int:
    try:
        return int(token.value)
    except ValueError:
        name = (token.keyword or "").removeprefix("--")
        raise UsageError(f"`{name}` must be an integer. Received: {token.value}") from None


_several = Parameter(consume_multiple=True, negative=(), show_default=False)
_explained = Parameter(help=f"{_READING}\n{readings.explained()}")
_single = Parameter(negative=(), show_default=False)
_integers_only = Parameter(negative=(), show_default=False, converter=_integers)

app = App(
    name="reproduce",
    help=(
        "Regenerates the tables and figures of Garcia Trillos, Kaplan and Sanz-Alonso, "
        "arXiv 1901.10082, on the real MNIST. Every run is recorded once; an interrupted command, "
        "given again, goes on where it was."
    ),
    help_format="plaintext",
    version_flags=[],
    suppress_keyboard_interrupt=False,
)


class TerminatedError(BaseException):
    """SIGTERM arrived; like KeyboardInterrupt, no handler of errors catches it."""


@app.command
def table1(
    *,
    seeds: Annotated[list[int] | None, _several, _integers_only] = None,
    methods: Annotated[list[str] | None, _several] = None,
    samples: Annotated[int | None, _integers_only] = None,
    updates: Annotated[int | None, _integers_only] = None,
    reading: Annotated[list[str] | None, _several, _explained] = None,
    quick: Annotated[bool, _single] = False,
    subspace: Annotated[str, _single] = "auto",
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
    figures_dir: Annotated[Path | None, _single] = None,
    data_dir: Annotated[Path | None, _single] = None,
) -> int:
    """Train by each method, print Table 1 beside the paper's, draw Figure 4.

    Args:
        seeds: Seeds; each gives one run per method. [default: 0 1 2; with --quick: 0]
        methods: Rows to run, in order: any of sgd, is, sgld, hr, sgld-linear. [default: all]
        samples: Samples per weight update. hr takes M = J = 30 sqrt(samples / 1000), rounded.
            [default: 1000, the paper's; with --quick: 50]
        updates: Weight updates. [default: 500, the paper's; with --quick: 100]
        reading: See `readings.explained`.
        quick: Take a small budget for a first look, marked everywhere as not the paper's.
        subspace: auto, or false to draw noise in all weights; equal in law. [default: auto]
        threads: Threads per run; other numbers round differently, recorded apart. [default: 2]
        output: Folder of the records and the table.
        figures_dir: Folder of the figure. [default: figures; with --output: its figures/]
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    with _usage_errors():
        checks.positive_integer("threads", threads)
        checks.one_of("subspace", subspace, _SUBSPACES)
        comparison = _comparison(quick, methods, updates, samples, reading)
        chosen = tuple(seeds) if seeds is not None else _QUICK_SEEDS if quick else _SEEDS
        checks.seeds(chosen)
    from reproduce import commands

    console = _console()
    code = commands.train(
        comparison,
        chosen,
        threads=threads,
        subspace=_SUBSPACES[subspace],
        output=output,
        data_dir=data_dir,
        console=console,
    )
    folder = _figures_folder(output, figures_dir)
    print(
        commands.show_table1(
            comparison,
            chosen,
            subspace=_SUBSPACES[subspace],
            output=output,
            figures_dir=folder,
            console=console,
        ),
        end="",
    )
    return code


@app.command
def theory(
    *,
    seeds: Annotated[list[int] | None, _several, _integers_only] = None,
    quick: Annotated[bool, _single] = False,
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
) -> int:
    """Measure the theorems, statement by statement, and print what holds.

    Args:
        seeds: Seeds of the estimators' noise; what is exact needs none. [default: 0]
        quick: Take a small budget for a first look, marked as such.
        threads: Threads per run. [default: 2]
        output: Folder of the records and the table.
    """
    with _usage_errors():
        checks.positive_integer("threads", threads)
        chosen = _QUICK_SEEDS if seeds is None else tuple(seeds)
        checks.seeds(chosen)
    from reproduce import commands
    from reproduce.theory.protocol import QUICK_THEORY, THEORY

    measured = QUICK_THEORY if quick else THEORY
    code, text = commands.measure_theory(
        measured, chosen, threads=threads, output=output, console=_console()
    )
    print(text, end="")
    return code


def _illustrate(name: str, threads: int, output: Path, figures_dir: Path | None) -> int:
    with _usage_errors():
        checks.positive_integer("threads", threads)
    from reproduce import commands

    folder = _figures_folder(output, figures_dir)
    return commands.make_illustration(
        name, threads=threads, output=output, figures_dir=folder, console=_console()
    )


@app.command
def figure1(
    *,
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
    figures_dir: Annotated[Path | None, _single] = None,
) -> int:
    """Draw Figure 1: local entropy of a toy landscape.

    Args:
        threads: Threads. [default: 2]
        output: Folder of the record.
        figures_dir: Folder of the figure. [default: figures; with --output: its figures/]
    """
    return _illustrate("figure1", threads, output, figures_dir)


@app.command
def figure2(
    *,
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
    figures_dir: Annotated[Path | None, _single] = None,
) -> int:
    """Draw Figure 2: heat regularization of a toy landscape.

    Args:
        threads: Threads. [default: 2]
        output: Folder of the record.
        figures_dir: Folder of the figure. [default: figures; with --output: its figures/]
    """
    return _illustrate("figure2", threads, output, figures_dir)


@app.command
def figure3(
    *,
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
    figures_dir: Annotated[Path | None, _single] = None,
) -> int:
    """Draw Figure 3: the mean-seeking and the mode-seeking Gaussian.

    Args:
        threads: Threads. [default: 2]
        output: Folder of the record.
        figures_dir: Folder of the figure. [default: figures; with --output: its figures/]
    """
    return _illustrate("figure3", threads, output, figures_dir)


@app.command
def figures(*, output: Path = _OUTPUT, figures_dir: Annotated[Path | None, _single] = None) -> int:
    """Draw every table and figure that has records; trains nothing.

    Args:
        output: Folder of the records and the tables.
        figures_dir: Folder of the figures. [default: figures; with --output: its figures/]
    """
    from reproduce import commands

    folder = _figures_folder(output, figures_dir)
    return commands.draw_figures(output=output, figures_dir=folder, console=_console())


@app.command
def benchmark(
    *,
    methods: Annotated[list[str] | None, _several] = None,
    samples: Annotated[int, _integers_only] = _BENCHMARK_SAMPLES,
    repetitions: Annotated[int, _integers_only] = _REPETITIONS,
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
    data_dir: Annotated[Path | None, _single] = None,
) -> int:
    """Time the plain kernels beside loops written by hand, in turns, as ratios.

    Args:
        methods: Any of sgld, is, hr. [default: all]
        samples: Samples per weight update, as in table1. [default: 1000, the paper's]
        repetitions: Turns of each. [default: 5]
        threads: Threads. [default: 2]
        output: Folder of the table.
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    with _usage_errors():
        chosen = _KERNELS if methods is None else tuple(methods)
        checks.distinct("methods", chosen)
        for method in chosen:
            checks.one_of("methods", method, _KERNELS)
        checks.integer_of_at_least("samples", samples, 2)
        checks.positive_integer("repetitions", repetitions)
        checks.positive_integer("threads", threads)
    from reproduce import commands

    text = commands.benchmark(
        chosen,
        samples,
        repetitions,
        threads=threads,
        output=output,
        data_dir=data_dir,
        console=_console(),
    )
    print(text, end="")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: The words after the program's name; `None`: those it was started with.

    Returns:
        The exit code: 0 done, 1 a run or the storage failed, 2 bad arguments, 130 interrupted,
        143 terminated.
    """
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return _dispatch(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return _stopped("interrupted", signal.SIGINT)
    except TerminatedError:
        return _stopped("terminated", signal.SIGTERM)


def _dispatch(arguments: list[str]) -> int:
    from reproduce.data import DataError
    from reproduce.storage import StorageError

    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, UsageError) as error:
        return _complain(error, USAGE)
    except (StorageError, DataError, OSError) as error:
        return _complain(error, FAILED)
    return code if isinstance(code, int) else 0


def _comparison(
    quick: bool,
    methods: Sequence[str] | None,
    updates: int | None,
    samples: int | None,
    reading: Sequence[str] | None,
) -> Comparison:
    comparison = (QUICK_TABLE1 if quick else TABLE1).with_budget(updates=updates, samples=samples)
    if methods is not None:
        comparison = comparison.with_methods(tuple(methods))
    return comparison if reading is None else readings.choose(comparison, readings.parse(reading))


def _figures_folder(output: Path, chosen: Path | None) -> Path:
    if chosen is not None:
        return chosen
    return _FIGURES if output == _OUTPUT else output / _FIGURES


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def _console() -> Console:
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def _complain(error: Exception, code: int) -> int:
    print(f"reproduce: error: {error}", file=sys.stderr)
    return code


def _terminate(number: int, frame: FrameType | None) -> None:
    raise TerminatedError


def _stopped(how: str, number: signal.Signals) -> int:
    print(
        f"\nreproduce: {how}; finished runs are recorded, the same command goes on from there",
        file=sys.stderr,
    )
    return _SIGNALLED + number
