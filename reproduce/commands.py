"""What the commands do, once their arguments are known to be good."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from reproduce.experiments import table1
from reproduce.protocols import QUICK_TABLE1, SUBSPACES, TABLE1, Comparison
from reproduce.records import Record, Store

if TYPE_CHECKING:
    from reproduce.data import Mnist

DONE, FAILED = 0, 1


def train(
    comparison: Comparison,
    seeds: Sequence[int],
    *,
    threads: int,
    subspace: str | bool,
    output: Path,
    data_dir: Path | None,
    console: Console,
) -> int:
    """Makes the comparison's missing runs.

    Args:
        comparison: Training set-up and methods.
        seeds: One run per method and seed.
        threads: Threads per run.
        subspace: "auto" or False, the optimizers' own argument.
        output: Folder of the records.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
        DataError: MNIST is damaged or cannot be prepared.
    """
    store = Store(output, warn=console.print)
    store.prepare()
    console.print("loading TensorFlow ...")
    from reproduce import environment
    from reproduce.progress import Display
    from reproduce.runner import run_missing

    execution = environment.prepare(threads) | {"subspace": subspace}

    @cache
    def data() -> "Mnist":
        from reproduce.data import load_mnist

        return load_mnist(data_dir)

    jobs = table1.jobs(comparison, seeds, execution, data)
    # Loaded ahead of the first run, whose clock it would fall under.
    if not all(store.path(job.run).exists() for job in jobs):
        data()
    with Display(jobs, console) as display:
        summary = run_missing(jobs, store, environment.describe(), display)
    for job in summary.failed:
        console.print(f"failed, no record: {job.run.label}")
    return FAILED if summary.failed else DONE


def show_table1(
    comparison: Comparison,
    seeds: Sequence[int],
    *,
    subspace: str | bool,
    output: Path,
    figures_dir: Path,
    console: Console,
) -> str:
    """Writes a comparison's table and figure from its records and returns the table."""
    records = _records(output, console)
    text, written = table1.render(records, comparison, seeds, subspace, output, figures_dir)
    _report(written, console)
    return text


def draw_figures(*, output: Path, figures_dir: Path, console: Console) -> int:
    """Writes every table and figure that has records, the paper's budget and the quick one apart.

    Returns:
        The exit code: 0 if anything was drawn, 1 if there is nothing to draw.
    """
    records = _records(output, console)
    found = [
        (comparison, subspace)
        for comparison in (TABLE1, QUICK_TABLE1)
        for subspace in SUBSPACES
        if table1.has_records(records, comparison, subspace)
    ]
    for comparison, subspace in found:
        _report(table1.render(records, comparison, None, subspace, output, figures_dir)[1], console)
    if not found:
        console.print(f"nothing to draw: no records in {output}; `reproduce table1` makes them")
    return DONE if found else FAILED


def benchmark(
    chosen: tuple[str, ...],
    samples: int,
    repetitions: int,
    *,
    threads: int,
    output: Path,
    data_dir: Path | None,
    console: Console,
) -> str:
    """Times plain kernels, writes the table and returns it.

    Args:
        chosen: Table 1's names of the methods.
        samples: Samples per weight update.
        repetitions: Turns of each kernel and of its bare loop.
        threads: Threads.
        output: Folder of the table.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Raises:
        DataError: MNIST is damaged or cannot be prepared.
    """
    console.print("loading TensorFlow ...")
    from reproduce import environment, tables
    from reproduce.data import load_mnist

    environment.prepare(threads)
    from reproduce.benchmark import plain

    finished = plain.races(chosen, samples, repetitions, load_mnist(data_dir), console.print)
    table = plain.frame(finished)
    text = plain.markdown(table, repetitions, threads, environment.describe())
    _report(tables.write(text, table, output / "benchmark"), console)
    return text


def _records(output: Path, console: Console) -> list[Record]:
    return Store(output, warn=console.print).scan(table1.NAME)


def _report(written: Sequence[Path], console: Console) -> None:
    for path in written:
        console.print(f"wrote {path}")
