"""What the commands do, once their arguments are known to be good."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from reproduce import claims, parallel, runner
from reproduce.cli.options import Drawing, Making, Measuring, Output, Threads, Training
from reproduce.experiments import gaussians, landscapes, table2, theory
from reproduce.experiments.base import RECORDS, Experiment
from reproduce.experiments.registry import TRAINING
from reproduce.parallel import Plan
from reproduce.protocols import SUBSPACES
from reproduce.records import Record, Store
from reproduce.runner import Job
from reproduce.theory.protocol import QUICK_THEORY, THEORY, Theory

if TYPE_CHECKING:
    from reproduce.data import Mnist

DONE, FAILED = 0, 1
ILLUSTRATIONS = (*landscapes.FIGURES, gaussians.FIGURE)

JobsOf = Callable[[Mapping[str, Any]], list[Job]]
"""Takes how a process executes to runs; pickles."""


def named(name: str) -> Experiment[Any]:
    """Returns the training experiment of a name."""
    return next(one for one in TRAINING if name == one.NAME)


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
    data = partial(_mnist, options.data_dir)
    return _make(jobs_of, options, options.jobs, options.output, console, data)


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
    code = _make(jobs_of, options, options.jobs, options.output, console, _nothing)
    records = _records(theory.NAME, options.output, console)
    text, written = theory.render(records, measured, seeds, options.output)
    _report(written, console)
    return code, text


def make_illustration(name: str, threads: Threads, drawing: Drawing, console: Console) -> int:
    """Computes what Figure 1, 2 or 3 shows and draws it.

    Returns:
        The exit code: 0 if the figure was drawn, 1 if not.
    """
    code = _make(_illustration(name), threads, 1, drawing.output, console, _nothing)
    _report(_draw_illustration(name, drawing, console), console)
    return code


def time_updates(
    timing: table2.Timing, threads: Threads, output: Path, data_dir: Path | None, console: Console
) -> tuple[int, str]:
    """Times weight updates, one run at a time, writes Table 2 and returns it.

    Args:
        timing: What is timed.
        threads: How.
        output: Folder of the records and the table.
        data_dir: Folder of the prepared MNIST; `None`: the default.
        console: Where progress goes.

    Returns:
        The exit code, and the table.
    """
    data = partial(_mnist, data_dir)
    code = _make(partial(table2.jobs, timing, data), threads, 1, output, console, data)
    text, written = table2.render(Store(output, warn=console.print), timing, output)
    _report(written, console)
    return code, text


def make_all(seeds: Sequence[int], quick: bool, options: Making, console: Console) -> int:
    """Makes every run that has no record, times the weight updates alone, draws everything.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.
    """
    jobs_of = partial(everything, seeds, quick, options.data_dir)
    data = partial(_mnist, options.data_dir)
    code = _make(jobs_of, options, options.jobs, options.output, console, data)
    timing = table2.QUICK if quick else table2.PROTOCOL
    timed, _ = time_updates(timing, options, options.output, options.data_dir, console)
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

    finished = plain.races(chosen, samples, repetitions, _mnist(data_dir), console.print)
    table = plain.frame(finished)
    text = plain.markdown(table, repetitions, threads, environment.describe())
    _report(tables.write(text, table, output / "benchmark"), console)
    return text


def training_jobs(
    experiment: Experiment[Any],
    protocol: Any,
    seeds: Sequence[int],
    subspace: str | bool,
    data_dir: Path | None,
) -> JobsOf:
    """Returns what builds an experiment's runs."""
    return partial(_training, experiment.jobs, protocol, seeds, subspace, data_dir)


def everything(
    seeds: Sequence[int], quick: bool, data_dir: Path | None, execution: Mapping[str, Any]
) -> list[Job]:
    """Returns the runs of every table and figure, those of Table 2 apart."""
    measured = partial(theory.jobs, QUICK_THEORY if quick else THEORY, seeds)
    trained = [
        training_jobs(one, one.QUICK if quick else one.PROTOCOL, seeds, "auto", data_dir)
        for one in TRAINING
    ]
    builders: list[JobsOf] = [measured, *map(_illustration, ILLUSTRATIONS), *trained]
    return list(chain.from_iterable(build(execution) for build in builders))


def _training(
    jobs: Callable[..., list[Job]],
    protocol: Any,
    seeds: Sequence[int],
    subspace: str | bool,
    data_dir: Path | None,
    execution: Mapping[str, Any],
) -> list[Job]:
    return jobs(protocol, seeds, {**execution, "subspace": subspace}, partial(_mnist, data_dir))


def _illustration(name: str) -> JobsOf:
    if name == gaussians.FIGURE:
        return partial(gaussians.jobs, gaussians.Approximation())
    return partial(landscapes.jobs, {name: landscapes.FIGURES[name]})


def _make(
    jobs_of: JobsOf,
    threads: Threads,
    processes: int,
    output: Path,
    console: Console,
    before_first: Callable[[], object],
) -> int:
    """Makes the runs that have no record yet, several at a time."""
    store = Store(output, warn=console.print)
    store.prepare()
    console.print("loading TensorFlow ...")
    from reproduce import environment
    from reproduce.progress import Display

    plan = Plan(jobs_of, threads.threads, output, before_first)
    jobs = plan.jobs()
    # Ahead of the first run, whose clock it would fall under.
    if not all(store.path(job.run).exists() for job in jobs):
        before_first()
    with Display(jobs, console) as display:
        if processes == 1:
            summary = runner.run_missing(jobs, store, environment.describe(), display)
        else:
            summary = parallel.run_missing(plan, jobs, store, processes, display)
    for job in summary.failed:
        console.print(f"failed, no record: {job.run.label}")
    return FAILED if summary.failed else DONE


def _nothing() -> None:
    """What a run without data needs before it."""


@cache
def _mnist(data_dir: Path | None) -> "Mnist":
    from reproduce.data import load_mnist

    return load_mnist(data_dir)


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
