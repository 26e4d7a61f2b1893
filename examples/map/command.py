"""What `python -m examples.map` does, once its arguments are known to be good."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from examples.map import costs, report
from examples.map.data import Mnists
from examples.map.jobs import FINAL, TUNING, Costs, Plan, chosen, final_jobs, tuned, tuning_jobs
from examples.map.protocol import PROTOCOL
from reproduce import environment, tidy
from reproduce.making import make as make_runs
from reproduce.making import mnist
from reproduce.parallel import JobsOf, Workers
from reproduce.parallel import Plan as Runs
from reproduce.records import Store
from reproduce.tidy import Tables


@dataclass(frozen=True)
class Where:
    """Where things lie.

    Args:
        records: Folder of the records as they are made.
        tables: Folder of all records as tables, which a fresh clone goes on from.
        page: The page.
        figure: The figure, without an ending.
    """

    records: Path
    tables: Path
    page: Path
    figure: Path


def costs_of(threads: int, data: Mnists, console: Console) -> Costs:
    """Returns what updates cost, measured now if that has not been done."""
    found = costs.read()
    if found is None:
        environment.prepare(threads)
        found = costs.measure(PROTOCOL, data, console)
        console.print(f"wrote {costs.PATH}")
    return found


def make(plan: Plan, where: Where, processes: int, threads: int, console: Console) -> int:
    """Makes what is missing, task after task, and adds it to the tables, also when interrupted.

    Returns:
        The exit code: 0 if every run has its record, 1 if not.

    Raises:
        StorageError: A record cannot be read or written.
    """
    store = Store(where.records, warn=console.print)
    restore(store, where.tables)
    code = 0
    for task in plan.tasks:
        try:
            code |= _make(replace(plan, tasks=(task,)), store, processes, threads)
        finally:
            publish(store, where.tables)
    return code


def _make(plan: Plan, store: Store, processes: int, threads: int) -> int:
    """Makes the trials, then the runs of what they choose."""

    def made(jobs_of: JobsOf) -> int:
        runs = Runs(jobs_of, threads, store.folder, partial(mnist, plan.data_dir))
        return make_runs(runs, Workers(processes))

    code = made(partial(tuning_jobs, plan))
    settings = chosen(tuned(plan, store.scan(TUNING)))
    return code | made(partial(final_jobs, plan, settings))


def restore(store: Store, tables: Path) -> None:
    """Gives a store those records of the tables that it lacks."""
    for record in Tables(tables).scan():
        if not store.path(record.run).exists():
            store.save(record)


def publish(store: Store, tables: Path) -> None:
    """Adds a store's records of the map to the tables, but for those of before they were timed."""
    records = [*store.scan(TUNING), *store.scan(FINAL)]
    tidy.add(tables, [record for record in records if record.timings])


def write(shown: Plan, where: Where, console: Console) -> str:
    """Writes the page and the figure from the tables, and returns the page."""
    whole = replace(shown, tasks=tuple(task.name for task in shown.protocol.tasks))
    text, written = report.render(Tables(where.tables), whole, where.page, where.figure)
    for path in written:
        console.print(f"wrote {path}")
    return text
