"""`python -m benchmarks.plain`; `make benchmark` runs it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError

from reproduce import checks, environment, tables
from reproduce.arguments import UsageError, integers_only, several, single
from reproduce.environment import DEFAULT_THREADS

DONE, FAILED, USAGE = 0, 1, 2
_KERNELS = ("sgld", "is", "hr")

app = App(name="python -m benchmarks.plain", help_format="plaintext", version_flags=[])


@app.default
def benchmark(
    *,
    methods: Annotated[list[str] | None, several] = None,
    samples: Annotated[int, integers_only] = 1000,
    repetitions: Annotated[int, integers_only] = 5,
    threads: Annotated[int, integers_only] = DEFAULT_THREADS,
    output: Annotated[Path, single] = Path("results"),
    data_dir: Annotated[Path | None, single] = None,
) -> None:
    """Time the plain kernels beside loops written by hand, in turns, as ratios.

    Args:
        methods: Any of sgld, is, hr. [default: all]
        samples: Samples per weight update, as in table1. [default: 1000, the paper's]
        repetitions: Turns of each. [default: 5]
        threads: Threads. [default: 1]
        output: Folder of the table. [default: results]
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    chosen = _KERNELS if methods is None else tuple(methods)
    try:
        checks.distinct("methods", chosen)
        for method in chosen:
            checks.one_of("methods", method, _KERNELS)
        checks.integer_of_at_least("samples", samples, 2)
        checks.positive_integer("repetitions", repetitions)
        checks.positive_integer("threads", threads)
    except ValueError as error:
        raise UsageError(str(error)) from error
    _say("loading TensorFlow ...")
    environment.prepare(threads)
    from benchmarks.plain import race
    from reproduce.data import load_mnist

    finished = race.races(chosen, samples, repetitions, load_mnist(data_dir), _say)
    table = race.frame(finished)
    text = race.markdown(table, repetitions, threads, environment.describe())
    for path in tables.write(text, table, output / "benchmark"):
        _say(f"wrote {path}")
    print(text, end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: The words after the program's name; `None`: those it was started with.

    Returns:
        The exit code: 0 done, 1 the data or the storage failed, 2 bad arguments.
    """
    from reproduce.data import DataError
    from reproduce.storage import StorageError

    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except (CycloptsError, UsageError) as error:
        return _complain(error, USAGE)
    except (StorageError, DataError, OSError) as error:
        return _complain(error, FAILED)
    return DONE


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _complain(error: Exception, code: int) -> int:
    _say(f"benchmarks.plain: error: {error}")
    return code


if __name__ == "__main__":
    sys.exit(main())
