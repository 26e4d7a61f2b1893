"""What the commands do, once their arguments are known to be good."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from reproduce import drawing, tables, tidy, verification
from reproduce.drawing import Drawn, RecordSource
from reproduce.experiments import table2, theory
from reproduce.experiments.base import RECORDS, Experiment, P
from reproduce.making import (
    DONE,
    FAILED,
    everything,
    illustration_jobs,
    make,
    mnist,
    nothing,
    reference_jobs,
    timing_jobs,
    verified_jobs,
)
from reproduce.parallel import Workers
from reproduce.protocols import Comparison
from reproduce.records import Store
from reproduce.theory.protocol import Theory
from reproduce.tidy import Tables


def train(
    experiment: Experiment[Any],
    protocol: Any,
    seeds: Sequence[int],
    subspace: str | bool,
    *,
    threads: int,
    workers: Workers,
    output: Path,
    data_dir: Path | None,
    console: Console,
) -> int:
    """Makes an experiment's missing runs.

    Args:
        experiment: What is trained.
        protocol: At which budget, under which readings.
        seeds: The seeds.
        subspace: The optimizers' own argument.
        threads: Threads per run.
        workers: Who makes the runs.
        output: Folder of the records.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
        DataError: MNIST is damaged or cannot be prepared.
    """
    data = partial(mnist, data_dir)
    jobs_of = partial(experiment.jobs, protocol, seeds, subspace, data)
    return make(jobs_of, threads, workers, output, console, data)


def show(
    experiment: Experiment[P],
    protocol: P,
    seeds: Sequence[int],
    subspace: str | bool,
    *,
    whole: P,
    output: Path,
    figures: Path,
    console: Console,
) -> str:
    """Writes an experiment's table and figure from its records and returns the table.

    Args:
        experiment: What is shown.
        protocol: What was asked for, shown even where it has no record.
        seeds: The same.
        subspace: Which executions are shown.
        whole: What the protocol may be a part of: its other records are shown too.
        output: Folder of the records and the table.
        figures: Folder of the figure.
        console: Where is said what was written.
    """
    records = Store(output, warn=console.print).scan(RECORDS)
    cases = experiment.recorded(records, whole, subspace)
    if isinstance(whole, Comparison) and isinstance(protocol, Comparison):
        rows = [row for row, case in whole.cases().items() if case in cases]
        protocol = whole.with_methods(tuple(dict.fromkeys((*protocol.methods, *rows))))
    else:
        protocol = whole
    shown = sorted({*seeds, *chain.from_iterable(cases.values())})
    text, written = experiment.render(records, protocol, shown, subspace, output, figures)
    _report(written, console)
    return text


def measure_theory(
    measured: Theory,
    seeds: Sequence[int],
    *,
    threads: int,
    workers: Workers,
    output: Path,
    console: Console,
) -> tuple[int, str]:
    """Makes the missing measurements of the theorems, writes their table and returns it.

    Args:
        measured: Where and how everything is measured.
        seeds: Of the estimators' noise.
        threads: Threads per run.
        workers: Who makes the runs.
        output: Folder of the records and the table.
        console: Where progress goes.

    Returns:
        The exit code, and the table.
    """
    jobs_of = partial(theory.jobs, measured, seeds)
    code = make(jobs_of, threads, workers, output, console, nothing)
    records = Store(output, warn=console.print).scan(theory.NAME)
    text, written = theory.render(records, measured, seeds, output)
    _report(written, console)
    return code, text


def make_illustration(
    name: str, *, threads: int, output: Path, figures: Path, console: Console
) -> int:
    """Computes what Figure 1, 2 or 3 shows and draws it.

    Args:
        name: The figure's.
        threads: Threads.
        output: Folder of the record.
        figures: Folder of the figure.
        console: Where progress goes.

    Returns:
        The exit code: 0 if the figure was drawn, 1 if not.
    """
    code = make(illustration_jobs(name), threads, Workers(), output, console, nothing)
    items = [item for item in drawing.ILLUSTRATED if item.name == name]
    for drawn in drawing.draw(items, [_own(output, console)], output, figures):
        _report(drawn.files, console)
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
    code = make(timing_jobs(timing, data_dir), threads, Workers(), output, console, data)
    text, written = table2.render(Store(output, warn=console.print), timing, output)
    _report(written, console)
    return code, text


def make_all(
    seeds: Sequence[int],
    quick: bool,
    *,
    threads: int,
    workers: Workers,
    output: Path,
    figures: Path,
    data_dir: Path | None,
    console: Console,
) -> int:
    """Makes every run that has no record, times the weight updates alone, draws what was made.

    Args:
        seeds: The seeds.
        quick: Whether at the budget for a first look.
        threads: Threads per run.
        workers: Who makes the runs.
        output: Folder of the records and the tables.
        figures: Folder of the figures.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.
    """
    jobs_of, data = partial(everything, seeds, quick, data_dir), partial(mnist, data_dir)
    code = make(jobs_of, threads, workers, output, console, data)
    timing = table2.QUICK if quick else table2.PROTOCOL
    timed, _ = time_updates(timing, threads, output, data_dir, console)
    own = [_own(output, console)]
    drawn = _draw(own, output, figures, console)
    _tell([drawing.judge(own, output, figures)[1]], console)
    return max(code, timed, drawn)


def draw_figures(output: Path, figures: Path, console: Console) -> int:
    """Writes every table and figure; what has no records in a folder, from the reference run.

    Args:
        output: Folder of the records and the tables.
        figures: Folder of the figures.
        console: Where is said what was drawn from which records.

    Returns:
        The exit code: 0 if anything was drawn, 1 if there is nothing to draw.
    """
    return _draw(drawing.sources(output, console.print), output, figures, console)


def report(output: Path, figures: Path, console: Console) -> str:
    """Draws every table and figure, writes what holds on one page, and returns its conclusion.

    Args:
        output: Folder of the records and the page; what has no records there is judged by the
            reference run.
        figures: Folder of the figures.
        console: Where is said by which records.
    """
    among = drawing.sources(output, console.print)
    _draw(among, output, figures, console)
    text, drawn = drawing.judge(among, output, figures)
    _tell([drawn], console)
    return text


def verify(
    share: float, threads: int, workers: Workers, data_dir: Path | None, console: Console
) -> tuple[int, str]:
    """Recomputes a part of the reference run and compares.

    Args:
        share: Of the reference run's seconds.
        threads: Threads per run.
        workers: Who makes the runs.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code, 0 if every run confirms the reference, and the table.
    """
    with TemporaryDirectory() as folder:
        jobs_of, data = partial(verified_jobs, share, data_dir), partial(mnist, data_dir)
        code = make(jobs_of, threads, workers, Path(folder), console, data)
        recomputed = Store(Path(folder), warn=console.print).scan()
    reference = Tables(verification.REFERENCE)
    compared = [verification.compare(record, reference) for record in recomputed]
    good = code == DONE and compared and all(one.is_good for one in compared)
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
    found, missing = verification.collect(jobs, Store(output, warn=console.print))
    tidy.add(verification.REFERENCE, found)
    console.print(f"copied {len(found)} records from {output} to {verification.REFERENCE}")
    for job in missing:
        console.print(f"no record: {job.run.label}")
    return FAILED if missing else DONE


def _draw(among: Sequence[RecordSource], output: Path, figures: Path, console: Console) -> int:
    drawn = drawing.draw(drawing.ITEMS, among, output, figures)
    if not drawn:
        console.print(
            f"nothing to draw: no records in {output}; `reproduce all` makes all of them, "
            "`reproduce table1` those of Table 1 and Figure 4"
        )
        return FAILED
    tables.write_text(output / drawing.LISTING, drawing.listing(drawn))
    _tell(drawn, console)
    _report([output / drawing.LISTING], console)
    return DONE


def _own(output: Path, console: Console) -> RecordSource:
    return RecordSource(drawing.OWN, Store(output, warn=console.print))


def _tell(drawn: Sequence[Drawn], console: Console) -> None:
    for one in drawn:
        for path in one.files:
            console.print(f"wrote {path} from {one.source}")


def _report(written: Sequence[Path], console: Console) -> None:
    for path in written:
        console.print(f"wrote {path}")
