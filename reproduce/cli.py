"""The command line: `reproduce table1`, `reproduce figures`."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, Token
from rich.console import Console

from reproduce import checks
from reproduce.environment import DEFAULT_THREADS
from reproduce.protocols import QUICK_TABLE1, TABLE1, Comparison

FAILED, USAGE = 1, 2
_SIGNALLED = 128

_OUTPUT = Path("results")
_FIGURES = Path("figures")
_SEEDS = (0, 1, 2)
_QUICK_SEEDS = (0,)


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
    quick: Annotated[bool, _single] = False,
    threads: Annotated[int, _integers_only] = DEFAULT_THREADS,
    output: Path = _OUTPUT,
    figures_dir: Annotated[Path | None, _single] = None,
    data_dir: Annotated[Path | None, _single] = None,
) -> int:
    """Train by each method, print Table 1 beside the paper's, draw Figure 4.

    Args:
        seeds: Seeds; each gives one run per method. [default: 0 1 2; with --quick: 0]
        methods: Rows to run, in this order: any of sgd, is. [default: all]
        samples: Samples per weight update. [default: 1000, the paper's; with --quick: 50]
        updates: Weight updates. [default: 500, the paper's; with --quick: 100]
        quick: Take a small budget for a first look, marked everywhere as not the paper's.
        threads: Threads per run; other numbers round differently, recorded apart. [default: 2]
        output: Folder of the records and the table.
        figures_dir: Folder of the figure. [default: figures; with --output: its figures/]
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    with _usage_errors():
        checks.positive_integer("threads", threads)
        comparison = _comparison(quick, methods, updates, samples)
        chosen = tuple(seeds) if seeds is not None else _QUICK_SEEDS if quick else _SEEDS
        checks.seeds(chosen)
    from reproduce import commands

    console = _console()
    code = commands.train(
        comparison, chosen, threads=threads, output=output, data_dir=data_dir, console=console
    )
    folder = _figures_folder(output, figures_dir)
    print(
        commands.show_table1(
            comparison, chosen, output=output, figures_dir=folder, console=console
        ),
        end="",
    )
    return code


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
    from reproduce.records import StorageError

    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, UsageError) as error:
        return _complain(error, USAGE)
    except (StorageError, DataError, OSError) as error:
        return _complain(error, FAILED)
    return code if isinstance(code, int) else 0


def _comparison(
    quick: bool, methods: Sequence[str] | None, updates: int | None, samples: int | None
) -> Comparison:
    comparison = (QUICK_TABLE1 if quick else TABLE1).with_budget(updates=updates, samples=samples)
    return comparison if methods is None else comparison.with_methods(tuple(methods))


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
