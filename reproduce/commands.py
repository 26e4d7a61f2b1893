"""What the commands do, once their arguments are known to be good."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from reproduce.experiments import gaussians, landscapes, table1, theory
from reproduce.experiments.base import RECORDS
from reproduce.protocols import QUICK_TABLE1, SUBSPACES, TABLE1, Comparison
from reproduce.records import Record, Store
from reproduce.runner import Job, run_missing
from reproduce.theory.protocol import QUICK_THEORY, THEORY, Theory

if TYPE_CHECKING:
    from reproduce.data import Mnist

DONE, FAILED = 0, 1
ILLUSTRATIONS = (*landscapes.FIGURES, gaussians.FIGURE)


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

    @cache
    def data() -> "Mnist":
        from reproduce.data import load_mnist

        return load_mnist(data_dir)

    def jobs(execution: Mapping[str, Any]) -> list[Job]:
        return table1.jobs(comparison, seeds, {**execution, "subspace": subspace}, data)

    # Loaded ahead of the first run, whose clock it would fall under.
    return make_missing(jobs, threads=threads, output=output, console=console, before_first=data)


def make_missing(
    jobs_of: Callable[[Mapping[str, Any]], list[Job]],
    *,
    threads: int,
    output: Path,
    console: Console,
    before_first: Callable[[], Any] = lambda: None,
) -> int:
    """Makes the runs of an experiment that have no record yet.

    Args:
        jobs_of: Takes how this process executes to the experiment's runs.
        threads: Threads per run.
        output: Folder of the records.
        console: Where progress goes.
        before_first: Called if any run is to be made.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
    """
    store = Store(output, warn=console.print)
    store.prepare()
    console.print("loading TensorFlow ...")
    from reproduce import environment
    from reproduce.progress import Display

    jobs = jobs_of(environment.prepare(threads))
    if not all(store.path(job.run).exists() for job in jobs):
        before_first()
    with Display(jobs, console) as display:
        summary = run_missing(jobs, store, environment.describe(), display)
    for job in summary.failed:
        console.print(f"failed, no record: {job.run.label}")
    return FAILED if summary.failed else DONE


def measure_theory(
    measured: Theory, seeds: Sequence[int], *, threads: int, output: Path, console: Console
) -> tuple[int, str]:
    """Makes the missing measurements of the theorems, writes their table and returns it.

    Args:
        measured: Where and how everything is measured.
        seeds: Of the estimators' noise.
        threads: Threads per run.
        output: Folder of the records and the table.
        console: Where progress goes.

    Returns:
        The exit code, and the table.
    """
    code = make_missing(
        lambda execution: theory.jobs(measured, seeds, execution),
        threads=threads,
        output=output,
        console=console,
    )
    records = _records(theory.NAME, output, console)
    text, written = theory.render(records, measured, seeds, output)
    _report(written, console)
    return code, text


def make_illustration(
    name: str, *, threads: int, output: Path, figures_dir: Path, console: Console
) -> int:
    """Computes what Figure 1, 2 or 3 shows and draws it.

    Args:
        name: "figure1", "figure2" or "figure3".
        threads: Threads per run.
        output: Folder of the records.
        figures_dir: Folder of the figure.
        console: Where progress goes.

    Returns:
        The exit code: 0 if the figure was drawn, 1 if not.
    """

    def jobs(execution: Mapping[str, Any]) -> list[Job]:
        if name == gaussians.FIGURE:
            return gaussians.jobs(gaussians.Approximation(), execution)
        return landscapes.jobs({name: landscapes.FIGURES[name]}, execution)

    code = make_missing(jobs, threads=threads, output=output, console=console)
    _report(_draw_illustration(name, output, figures_dir, console), console)
    return code


def _draw_illustration(name: str, output: Path, folder: Path, console: Console) -> list[Path]:
    """Draws Figure 1, 2 or 3 if it has a record."""
    if name == gaussians.FIGURE:
        records = _records(gaussians.NAME, output, console)
        return gaussians.render(records, gaussians.Approximation(), folder)
    records = _records(landscapes.NAME, output, console)
    return landscapes.render(records, name, landscapes.FIGURES, folder)


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
    records = _records(RECORDS, output, console)
    text, written = table1.render(records, comparison, seeds, subspace, output, figures_dir)
    _report(written, console)
    return text


def draw_figures(*, output: Path, figures_dir: Path, console: Console) -> int:
    """Writes every table and figure that has records, the paper's budget and the quick one apart.

    Returns:
        The exit code: 0 if anything was drawn, 1 if there is nothing to draw.
    """
    records = _records(RECORDS, output, console)
    written: list[Path] = []
    for comparison in (TABLE1, QUICK_TABLE1):
        for subspace in SUBSPACES:
            if table1.has_records(records, comparison, subspace):
                written += table1.render(records, comparison, None, subspace, output, figures_dir)[
                    1
                ]
    for name in ILLUSTRATIONS:
        written += _draw_illustration(name, output, figures_dir, console)
    measured = _records(theory.NAME, output, console)
    for protocol in (THEORY, QUICK_THEORY):
        if theory.has_records(measured, protocol):
            written += theory.render(measured, protocol, None, output)[1]
    _report(written, console)
    if not written:
        console.print(f"nothing to draw: no records in {output}; `reproduce table1` makes them")
    return DONE if written else FAILED


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


def _records(experiment: str, output: Path, console: Console) -> list[Record]:
    return Store(output, warn=console.print).scan(experiment)


def _report(written: Sequence[Path], console: Console) -> None:
    for path in written:
        console.print(f"wrote {path}")
