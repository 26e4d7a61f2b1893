"""What the commands do, once their arguments are known to be good."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from reproduce import claims, verification
from reproduce.cli.options import Drawing, Making, Measuring, Output, Threads, Training
from reproduce.experiments import gaussians, landscapes, table2, theory
from reproduce.experiments.base import RECORDS, Experiment
from reproduce.experiments.registry import TRAINING
from reproduce.making import (
    DONE,
    FAILED,
    ILLUSTRATIONS,
    everything,
    illustration_jobs,
    make,
    mnist,
    nothing,
    reference_jobs,
    timing_jobs,
    training_jobs,
    verified_jobs,
)
from reproduce.protocols import SUBSPACES
from reproduce.records import Record, Store
from reproduce.theory.protocol import QUICK_THEORY, THEORY, Theory


def train(
    experiment: Experiment[Any],
    protocol: Any,
    seeds: Sequence[int],
    options: Training,
    console: Console,
) -> int:
    """Makes an experiment's missing runs.

    Args:
        experiment: What is trained.
        protocol: At which budget, under which readings.
        seeds: The seeds.
        options: How and where.
        console: Where progress goes.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
        DataError: MNIST is damaged or cannot be prepared.
    """
    jobs_of = training_jobs(experiment, protocol, seeds, options.sampled, options.data_dir)
    data = partial(mnist, options.data_dir)
    return make(jobs_of, options.threads, options.jobs, options.output, console, data)


def show(
    experiment: Experiment[Any],
    protocol: Any,
    seeds: Sequence[int],
    options: Training,
    console: Console,
) -> str:
    """Writes an experiment's table and figure from its records and returns the table."""
    records = _records(RECORDS, options.output, console)
    text, written = experiment.render(
        records, protocol, seeds, options.sampled, options.output, options.figures
    )
    _report(written, console)
    return text


def measure_theory(
    measured: Theory, seeds: Sequence[int], options: Measuring, console: Console
) -> tuple[int, str]:
    """Makes the missing measurements of the theorems, writes their table and returns it.

    Args:
        measured: Where and how everything is measured.
        seeds: Of the estimators' noise.
        options: How and where.
        console: Where progress goes.

    Returns:
        The exit code, and the table.
    """
    jobs_of = partial(theory.jobs, measured, seeds)
    code = make(jobs_of, options.threads, options.jobs, options.output, console, nothing)
    records = _records(theory.NAME, options.output, console)
    text, written = theory.render(records, measured, seeds, options.output)
    _report(written, console)
    return code, text


def make_illustration(name: str, threads: Threads, drawing: Drawing, console: Console) -> int:
    """Computes what Figure 1, 2 or 3 shows and draws it.

    Returns:
        The exit code: 0 if the figure was drawn, 1 if not.
    """
    code = make(illustration_jobs(name), threads.threads, 1, drawing.output, console, nothing)
    _report(_draw_illustration(name, drawing, console), console)
    return code


def time_updates(
    timing: table2.Timing, threads: int, output: Path, data_dir: Path | None, console: Console
) -> tuple[int, str]:
    """Times weight updates, one run at a time, writes Table 2 and returns it.

    Args:
        timing: What is timed.
        threads: Threads per run.
        output: Folder of the records and the table.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code, and the table.
    """
    data = partial(mnist, data_dir)
    code = make(timing_jobs(timing, data_dir), threads, 1, output, console, data)
    text, written = table2.render(Store(output, warn=console.print), timing, output)
    _report(written, console)
    return code, text


def make_all(seeds: Sequence[int], quick: bool, options: Making, console: Console) -> int:
    """Makes every run that has no record, times the weight updates alone, draws everything.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.
    """
    jobs_of = partial(everything, seeds, quick, options.data_dir)
    data = partial(mnist, options.data_dir)
    code = make(jobs_of, options.threads, options.jobs, options.output, console, data)
    timing = table2.QUICK if quick else table2.PROTOCOL
    timed, _ = time_updates(timing, options.threads, options.output, options.data_dir, console)
    return max(code, timed, draw_figures(options, console))


def draw_figures(drawing: Drawing, console: Console) -> int:
    """Writes every table and figure that has records, the paper's budget and the quick one apart.

    Returns:
        The exit code: 0 if anything was drawn, 1 if there is nothing to draw.
    """
    records = _records(RECORDS, drawing.output, console)
    written: list[Path] = []
    for experiment in TRAINING:
        for protocol in (experiment.PROTOCOL, experiment.QUICK):
            for subspace in SUBSPACES:
                if experiment.has_records(records, protocol, subspace):
                    written += experiment.render(
                        records, protocol, None, subspace, drawing.output, drawing.figures
                    )[1]
    for name in ILLUSTRATIONS:
        written += _draw_illustration(name, drawing, console)
    measured = _records(theory.NAME, drawing.output, console)
    for protocol in (THEORY, QUICK_THEORY):
        if theory.has_records(measured, protocol):
            written += theory.render(measured, protocol, None, drawing.output)[1]
    store = Store(drawing.output, warn=console.print)
    for timing in (table2.PROTOCOL, table2.QUICK):
        if table2.has_records(store, timing):
            written += table2.render(store, timing, drawing.output)[1]
    if not written:
        console.print(
            f"nothing to draw: no records in {drawing.output}; `reproduce all` makes all of "
            "them, `reproduce table1` those of Table 1 and Figure 4"
        )
        return FAILED
    written += claims.render(store, drawing.output)[1]
    _report(written, console)
    return DONE


def judge_claims(where: Output, console: Console) -> str:
    """Writes what holds, claim by claim, from the records there are, and returns it."""
    text, written = claims.render(Store(where.output, warn=console.print), where.output)
    _report(written, console)
    return text


def verify(
    threads: int, processes: int, data_dir: Path | None, console: Console
) -> tuple[int, str]:
    """Recomputes a part of the reference run and compares.

    Args:
        threads: Threads per run.
        processes: Runs at a time.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code, 0 if every run confirms the reference, and the table.
    """
    with TemporaryDirectory() as folder:
        jobs_of, data = partial(verified_jobs, data_dir), partial(mnist, data_dir)
        code = make(jobs_of, threads, processes, Path(folder), console, data)
        recomputed = Store(Path(folder), warn=console.print).scan()
    reference = Store(verification.REFERENCE, warn=console.print)
    compared = [verification.compare(record, reference) for record in recomputed]
    good = code == DONE and all(one.is_good for one in compared)
    return DONE if good else FAILED, verification.markdown(compared)


def update_reference(seeds: Sequence[int], threads: int, output: Path, console: Console) -> int:
    """Copies the records of everything, at the paper's budget, into the reference run.

    Args:
        seeds: The seeds copied.
        threads: Threads per run of the records copied.
        output: Folder of the records.
        console: Where is said what was copied.

    Returns:
        The exit code: 0 if every record was there, 1 if not.
    """
    from reproduce import environment

    jobs = reference_jobs(seeds, environment.prepare(threads))
    source, target = (
        Store(folder, warn=console.print) for folder in (output, verification.REFERENCE)
    )
    copied, missing = verification.copy(jobs, source, target)
    console.print(f"copied {len(copied)} records from {output} to {verification.REFERENCE}")
    for job in missing:
        console.print(f"no record: {job.run.label}")
    return FAILED if missing else DONE


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

    environment.prepare(threads)
    from reproduce.benchmark import plain

    finished = plain.races(chosen, samples, repetitions, mnist(data_dir), console.print)
    table = plain.frame(finished)
    text = plain.markdown(table, repetitions, threads, environment.describe())
    _report(tables.write(text, table, output / "benchmark"), console)
    return text


def _draw_illustration(name: str, drawing: Drawing, console: Console) -> list[Path]:
    """Draws Figure 1, 2 or 3 if it has a record."""
    if name == gaussians.FIGURE:
        records = _records(gaussians.NAME, drawing.output, console)
        return gaussians.render(records, gaussians.Approximation(), drawing.figures)
    records = _records(landscapes.NAME, drawing.output, console)
    return landscapes.render(records, name, landscapes.FIGURES, drawing.figures)


def _records(experiment: str, output: Path, console: Console) -> list[Record]:
    return Store(output, warn=console.print).scan(experiment)


def _report(written: Sequence[Path], console: Console) -> None:
    for path in written:
        console.print(f"wrote {path}")
