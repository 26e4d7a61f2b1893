"""What the commands do, once their options are known to be good; each returns its exit code."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reproduce import drawing, environment, tables, tidy, verification
from reproduce.cli.options import (
    Copying,
    Data,
    Drawing,
    Jobs,
    Making,
    Measuring,
    Output,
    Threads,
    TrainingOptions,
)
from reproduce.drawing import Drawn, RecordSource
from reproduce.experiments import illustration, table2, theory
from reproduce.experiments.base import RECORDS, Experiment, P
from reproduce.experiments.registry import ILLUSTRATIONS
from reproduce.making import (
    CONSOLE,
    DONE,
    FAILED,
    everything,
    further_jobs,
    make,
    mnist,
    reference_jobs,
    verified_jobs,
)
from reproduce.parallel import Plan, Workers
from reproduce.protocols import Comparison
from reproduce.records import Store
from reproduce.theory.protocol import QUICK_THEORY, THEORY
from reproduce.tidy import Tables


def train(experiment: Experiment[Any], protocol: Any, options: TrainingOptions) -> int:
    """Makes an experiment's missing runs.

    Raises:
        StorageError: A record cannot be read or written.
        DataError: MNIST is damaged or cannot be prepared.
    """
    data = partial(mnist, options.folder)
    jobs = partial(experiment.jobs, protocol, options.chosen, options.sampled, data)
    return make(Plan(jobs, options.threads, options.output, data), options.workers)


def show(experiment: Experiment[P], protocol: P, whole: P, options: TrainingOptions) -> None:
    """Writes an experiment's table and figure from its records and prints the table.

    Args:
        experiment: What is shown.
        protocol: What was asked for, shown even where it has no record.
        whole: What the protocol may be a part of: its other records are shown too.
        options: Of which seeds, which executions, and from and to which folders.
    """
    records = _store(options.output).scan(RECORDS)
    found = experiment.recorded(records, whole, options.sampled)
    if isinstance(whole, Comparison) and isinstance(protocol, Comparison):
        rows = [row for row, case in whole.cases().items() if case in found]
        protocol = whole.with_methods(tuple(dict.fromkeys((*protocol.methods, *rows))))
    else:
        protocol = whole
    seeds = sorted({*options.chosen, *chain.from_iterable(found.values())})
    _show(
        *experiment.render(
            records, protocol, seeds, options.sampled, options.output, options.figures
        )
    )


def measure_theory(options: Measuring) -> int:
    """Makes the missing measurements of the theorems, writes their table and prints it."""
    measured = QUICK_THEORY if options.quick else THEORY
    jobs = partial(theory.jobs, measured, options.chosen)
    code = make(Plan(jobs, options.threads, options.output), options.workers)
    records = _store(options.output).scan(theory.NAME)
    _show(*theory.render(records, measured, options.chosen, options.output))
    return code


def make_illustration(name: str, threads: Threads, where: Drawing) -> int:
    """Computes what Figure 1, 2 or 3 shows and draws it."""
    shown = ILLUSTRATIONS[name]
    jobs = partial(illustration.jobs, {name: shown})
    code = make(Plan(jobs, threads.threads, where.output), Workers())
    records = _store(where.output).scan(shown.EXPERIMENT)
    _report(illustration.render(records, name, shown, where.figures))
    return code


def time_updates(quick: bool, threads: Threads, where: Output, images: Data) -> int:
    """Times weight updates, one run at a time, writes Table 2 and prints it."""
    code, text = _time_updates(quick, threads, where, images)
    print(text, end="")
    return code


def make_all(options: Making) -> int:
    """Makes every run that has no record, times the weight updates alone, draws what was made."""
    data = partial(mnist, options.folder)
    jobs = partial(everything, options.chosen, options.quick, data)
    code = make(Plan(jobs, options.threads, options.output, data), options.workers)
    timed, _ = _time_updates(options.quick, options, options, options)
    own = [RecordSource(drawing.OWN, _store(options.output))]
    drawn = _draw(own, options)
    _tell([drawing.judge(own, options.output, options.figures)[1]])
    return max(code, timed, drawn)


def draw_figures(where: Drawing) -> int:
    """Writes every table and figure; what has no records in a folder, from the reference run."""
    return _draw(drawing.sources(where.output, CONSOLE.print), where)


def report(where: Drawing) -> int:
    """Draws every table and figure, writes what holds on one page, and prints its conclusion."""
    among = drawing.sources(where.output, CONSOLE.print)
    _draw(among, where)
    text, drawn = drawing.judge(among, where.output, where.figures)
    _tell([drawn])
    print(text, end="")
    return DONE


def verify(share: float, how: Jobs, images: Data) -> int:
    """Recomputes a share of the reference run's seconds, compares and prints how they stand."""
    data = partial(mnist, images.folder)
    jobs = partial(verified_jobs, share, data)
    with TemporaryDirectory() as folder:
        code = make(Plan(jobs, how.threads, Path(folder), data), how.workers)
        recomputed = _store(Path(folder)).scan()
    reference = Tables(verification.REFERENCE)
    compared = [verification.compare(record, reference) for record in recomputed]
    print(verification.markdown(compared), end="")
    if not compared:
        CONSOLE.print(f"no run fits into {share:g} of the seconds: give a larger `--share`")
    good = code == DONE and compared and all(one.is_good for one in compared)
    return DONE if good else FAILED


def update_reference(options: Copying) -> int:
    """Copies the records of everything, at the paper's budget, into the reference run.

    Those beyond the paper, which take hours, may be missing.
    """
    execution, store = environment.prepare(options.threads), _store(options.output)
    jobs = reference_jobs(options.chosen, execution)
    found, missing = verification.collect(jobs, store)
    data = partial(mnist, None)
    found += verification.collect(further_jobs(options.chosen, data, execution, jobs), store)[0]
    tidy.add(verification.REFERENCE, found)
    CONSOLE.print(f"copied {len(found)} records from {options.output} to {verification.REFERENCE}")
    for job in missing:
        CONSOLE.print(f"no record: {job.run.label}")
    return FAILED if missing else DONE


def _time_updates(quick: bool, threads: Threads, where: Output, images: Data) -> tuple[int, str]:
    timing, data = table2.QUICK if quick else table2.PROTOCOL, partial(mnist, images.folder)
    jobs = partial(table2.jobs, timing, data)
    code = make(Plan(jobs, threads.threads, where.output, data), Workers())
    text, written = table2.render(_store(where.output).scan(table2.NAME), timing, where.output)
    _report(written)
    return code, text


def _draw(among: Sequence[RecordSource], where: Drawing) -> int:
    drawn = drawing.draw(drawing.ITEMS, among, where.output, where.figures)
    if not drawn:
        CONSOLE.print(
            f"nothing to draw: no records in {where.output}; `reproduce all` makes all of them, "
            "`reproduce table1` those of Table 1 and Figure 4"
        )
        return FAILED
    tables.write_text(where.output / drawing.LISTING, drawing.listing(drawn))
    _tell(drawn)
    _report([where.output / drawing.LISTING])
    return DONE


def _store(folder: Path) -> Store:
    return Store(folder, warn=CONSOLE.print)


def _tell(drawn: Sequence[Drawn]) -> None:
    for one in drawn:
        for path in one.files:
            CONSOLE.print(f"wrote {path} from {one.source}")


def _show(text: str, written: Sequence[Path]) -> None:
    _report(written)
    print(text, end="")


def _report(written: Sequence[Path]) -> None:
    for path in written:
        CONSOLE.print(f"wrote {path}")
