"""`python -m benchmarks.peers`; its environment is what `make peers` makes."""

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError

from benchmarks.peers import gpu as device
from benchmarks.peers.processes import WorkerError
from benchmarks.peers.results import Results
from benchmarks.peers.session import RacePlan, Session
from benchmarks.peers.systems import SYSTEMS
from reproduce import checks
from reproduce.arguments import UsageError, integers_only, several, single

if TYPE_CHECKING:
    from reproduce.data import Mnist

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_OUTPUT, _QUICK_OUTPUT, _FIGURES = Path("results/peers"), Path("results/peers-quick"), "figures"
_REPEATS, _QUICK_REPEATS = 9, 2
_THREADS = 2

app = App(
    name="python -m benchmarks.peers",
    help=(
        "Times a weight update of lerh_tf and of other libraries' samplers side by side, checks "
        "that all compute the same, and writes tables and figures. Every measurement is made "
        "once; an interrupted command, given again, goes on where it was."
    ),
    help_format="plaintext",
    version_flags=[],
    suppress_keyboard_interrupt=False,
)


@app.default
def peers(
    *,
    systems: Annotated[list[str] | None, several] = None,
    curves: bool = True,
    quick: Annotated[bool, single] = False,
    synthetic: Annotated[bool, single] = False,
    threads: Annotated[int, integers_only] = _THREADS,
    repeats: Annotated[int | None, integers_only] = None,
    gpu: Annotated[bool, single] = False,
    output: Annotated[Path | None, single] = None,
    figures_dir: Annotated[Path | None, single] = None,
    data_dir: Annotated[Path | None, single] = None,
) -> int:
    """Check, race and measure.

    Args:
        systems: Which to take, by their names as in results/peers/race.csv. [default: all]
        curves: Measure time and memory against samples, batch size, hidden width and threads too.
        quick: Take a small budget, to see whether all runs; marked everywhere as such.
        synthetic: Take random images, not MNIST.
        threads: Processors that a system may use. [default: 2]
        repeats: Timed updates of each system in the race. [default: 9; with --quick: 2]
        gpu: Compute on the GPU, which all libraries must be installed for, in full float32.
        output: Folder of measurements and tables; race.md is committed in docs/measured.
            [default: results/peers; --quick: its own]
        figures_dir: Folder of the figures. [default: figures; with --output or --quick: in it]
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    chosen = tuple(systems or SYSTEMS)
    repeats = repeats if repeats is not None else _QUICK_REPEATS if quick else _REPEATS
    _check(chosen, threads, repeats)
    found = device.required_name() if gpu else None
    folder = output or (_QUICK_OUTPUT if quick else _OUTPUT)
    figures = figures_dir or (Path(_FIGURES) if folder == _OUTPUT else folder / _FIGURES)
    plan = RacePlan(chosen, quick, synthetic, threads, repeats, found)
    session = Session(plan, Results(folder, _say), cache(lambda: _mnist(data_dir)), _say)
    return _run(session, folder, figures, curves=curves)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: the words after the program's name; `None`: those it was started with.

    Returns:
        The exit code: 0 done, 1 a system failed or computes something else, 2 bad arguments, 130
        interrupted.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, UsageError) as error:
        return _complain(error, USAGE)
    except (WorkerError, OSError) as error:
        return _complain(error, FAILED)
    except KeyboardInterrupt:
        _say("interrupted; what was measured is kept, the same command goes on from there")
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _run(session: Session, folder: Path, figures: Path, *, curves: bool) -> int:
    for show in (session.show_race, session.show_curves) if curves else (session.show_race,):
        text, written = show(folder, figures)
        print(text)
        for path in written:
            _say(f"wrote {path}")
    wrong = [system for system, found in session.agreements.items() if not found["agrees"]]
    for system in wrong:
        _say(f"{system} does NOT compute what it should: {session.agreements[system]}")
    if not wrong:
        _say(f"all {len(session.agreements)} systems compute the same")
    return FAILED if wrong else DONE


def _check(systems: Sequence[str], threads: int, repeats: int) -> None:
    try:
        checks.distinct("systems", systems)
        checks.positive_integer("threads", threads)
        checks.positive_integer("repeats", repeats)
        for system in systems:
            checks.one_of("systems", system, SYSTEMS)
    except ValueError as error:
        raise UsageError(str(error)) from error
    missing = sorted({name for system in systems for name in SYSTEMS[system].missing})
    if missing:
        raise UsageError(
            f"`systems` must be installed. Missing: {', '.join(missing)}. `make peers` runs this "
            "command where they are; --systems chooses fewer."
        )


def _mnist(data_dir: Path | None) -> "Mnist":
    # Prepared in a process of its own: a worker's peak memory counts from its parent's.
    script = "import sys; from reproduce.data import load_mnist; load_mnist(sys.argv[1] or None)"
    subprocess.run([sys.executable, "-c", script, str(data_dir or "")], check=True)
    from reproduce.data import load_mnist

    return load_mnist(data_dir)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _complain(error: Exception, code: int) -> int:
    _say(f"benchmarks.peers: error: {error}")
    return code


if __name__ == "__main__":
    sys.exit(main())
