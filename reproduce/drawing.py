"""Tables and figures from the records there are: one's own, or else those of the reference run."""

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from reproduce import report, tables, verification
from reproduce.experiments import exact, illustration, table2, theory
from reproduce.experiments.base import RECORDS, Experiment
from reproduce.experiments.illustration import Illustration
from reproduce.experiments.registry import ILLUSTRATIONS, TRAINING
from reproduce.protocols import SUBSPACES, Panels
from reproduce.records import Archive, Store
from reproduce.theory.protocol import QUICK_THEORY, THEORY, Theory
from reproduce.tidy import Tables

OWN, REFERENCE = "own records", "the reference run"
LISTING = "figures.md"
"""The file that says which table and figure was drawn from which records."""


class RecordSource:
    """A folder of records.

    Args:
        name: What it is called in what is written.
        store: The records.
    """

    def __init__(self, name: str, store: Archive) -> None:
        self.name, self.store = name, store
        self.records = cache(store.scan)


class Drawn(NamedTuple):
    """What was drawn.

    Args:
        name: The command that makes the records.
        source: The name of where they lie, all of them.
        files: The files written.
    """

    name: str
    source: str
    files: Sequence[Path]


class Exhibit(NamedTuple):
    """What is drawn from the records of one experiment at one budget: a table, a figure, or both.

    Args:
        name: The command that makes the records.
        found: Takes a source to the runs of the item that have a record there.
        render: Takes a source, the folder of the table and that of the figure to the files written.
    """

    name: str
    found: Callable[[RecordSource], frozenset[Hashable]]
    render: Callable[[RecordSource, Path, Path], list[Path]]


def _trained(experiment: Experiment[Any], protocol: Any, subspace: str | bool) -> Exhibit:
    return Exhibit(
        experiment.NAME,
        lambda one: frozenset(experiment.recorded(one.records(RECORDS), protocol, subspace)),
        lambda one, output, figures: experiment.render(
            one.records(RECORDS), protocol, None, subspace, output, figures
        )[1],
    )


def _exact(protocol: Panels) -> Exhibit:
    name = exact.FIGURE.NAME
    return _trained(exact.FIGURE, protocol, "auto")._replace(
        found=lambda one: _one(name, exact.is_run(one.records(RECORDS), protocol))
    )


def _illustrated(name: str, shown: Illustration) -> Exhibit:
    kind = shown.EXPERIMENT
    return Exhibit(
        name,
        lambda one: _one(name, illustration.recorded(one.records(kind), name, shown)),
        lambda one, _, figures: illustration.render(one.records(kind), name, shown, figures),
    )


def _theory(protocol: Theory) -> Exhibit:
    name = theory.NAME
    return Exhibit(
        name,
        lambda one: _one(name, theory.has_records(one.records(name), protocol)),
        lambda one, output, _: theory.render(one.records(name), protocol, None, output)[1],
    )


def _table2(timing: table2.Timing) -> Exhibit:
    name = table2.NAME
    return Exhibit(
        name,
        lambda one: _one(name, table2.has_records(one.records(name), timing)),
        lambda one, output, _: table2.render(one.records(name), timing, output)[1],
    )


def _one(run: Hashable, found: object) -> frozenset[Hashable]:
    return frozenset([run] if found else [])


ITEMS = (
    *(
        _trained(experiment, protocol, subspace)
        for experiment in TRAINING
        for protocol in (experiment.PROTOCOL, experiment.QUICK)
        for subspace in SUBSPACES
    ),
    *(_illustrated(name, shown) for name, shown in ILLUSTRATIONS.items()),
    *map(_exact, (exact.FIGURE.PROTOCOL, exact.FIGURE.QUICK)),
    *map(_theory, (THEORY, QUICK_THEORY)),
    *map(_table2, (table2.PROTOCOL, table2.QUICK)),
)
"""Every table and figure, the paper's budget and the quick one apart."""


def sources(output: Path, warn: Callable[[str], None]) -> list[RecordSource]:
    """Returns where to look for records, in this order: a folder, then the reference run.

    Args:
        output: The folder.
        warn: Called with a line about every damaged record.
    """
    reference = RecordSource(REFERENCE, Tables(verification.REFERENCE))
    return [RecordSource(OWN, Store(output, warn)), reference]


def draw(
    items: Sequence[Exhibit], among: Sequence[RecordSource], output: Path, figures: Path
) -> list[Drawn]:
    """Draws every item that has records, each from one source alone.

    The first source that has records of an item is taken, unless another item there shows the
    same runs and more, and a later source has records too: after `table1` alone, Figure 6 is the
    reference's, not three of its twelve lines.

    Args:
        items: What could be drawn.
        among: Where to look for records, in this order.
        output: Folder of the tables.
        figures: Folder of the figures.
    """
    drawn = []
    found = {source: [item.found(source) for item in items] for source in among}
    for at, item in enumerate(items):
        able = [source for source in among if found[source][at]]
        meant = [
            source for source in able if not any(found[source][at] < more for more in found[source])
        ]
        for source in (meant or able)[:1]:
            drawn.append(Drawn(item.name, source.name, item.render(source, output, figures)))
    return drawn


def judge(among: Sequence[RecordSource], output: Path, figures: Path) -> tuple[str, Drawn]:
    """Writes what holds, claim by claim, each from one source alone.

    Returns:
        The conclusion in plain words, and what was written.
    """
    stores = {source.name: source.store for source in among}
    text, used, written = report.render(stores, output, figures)
    return text, Drawn("report", " and ".join(used) or "no records", written)


def listing(drawn: Sequence[Drawn]) -> str:
    """Returns which files were drawn from which records, as Markdown."""
    cells = [[one.name, one.source, ", ".join(f"`{path}`" for path in one.files)] for one in drawn]
    table = tables.grid(["command", "drawn from", "files"], cells)
    return tables.page("Tables and figures as `reproduce figures` last drew them", table)
