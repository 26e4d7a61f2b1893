"""Records as the pages cite them: the tables and notes of a Markdown file, the lines of a CSV."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

VALUE = re.compile(
    r"(?<![\w.,/^*+=<>-])(?<![-+*/=<>] )(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\.?\w|,\d)"
)
"""A number that stands by itself: not a part of a name, of a formula, of a version."""

_CELL = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Args:
        line: Of the file, from 1.
        table: The line of its table's header; 0 in a CSV file.
        place: The heading above the table and the text between.
        cells: By the column's header; an empty first cell is that of the row above.
    """

    line: int
    table: int
    place: str
    cells: Mapping[str, str]

    def number(self, column: str) -> float:
        """Returns the first number of a cell."""
        found = _CELL.search(self.cells[column])
        if found is None:
            raise LookupError(f"no number in {self.cells[column]!r}")
        return float(found[0].replace(",", ""))


@dataclass(frozen=True)
class Record:
    """A file that a command wrote.

    Args:
        path: It; Markdown, or CSV by its suffix.
    """

    path: Path

    @cached_property
    def text(self) -> str:
        """The file's content."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of all its tables."""
        if self.path.suffix != ".csv":
            return list(rows(self.text))
        lines = csv.DictReader(self.text.splitlines())
        return [Row(at, 0, "", cells) for at, cells in enumerate(lines, 2)]

    def chosen(self, *names: str, under: str = "") -> list[Row]:
        """Returns the rows that begin with cells of these names, in tables under a text.

        Raises:
            LookupError: There is none.
        """
        found = [
            row
            for row in self.rows
            if tuple(row.cells.values())[: len(names)] == names and under in row.place
        ]
        if not found:
            raise LookupError(f"no row {names} under {under!r}")
        return found

    def number(self, *names: str, column: str, under: str = "") -> float:
        """Returns the number of one cell; arguments as `chosen`'s.

        Raises:
            LookupError: There is none, or more than one such row.
        """
        row, *others = self.chosen(*names, under=under)
        if others:
            raise LookupError(f"more than one row {names} under {under!r}")
        return row.number(column)

    def notes(self, start: str) -> list[str]:
        """Returns what follows in the lines that start so.

        Raises:
            LookupError: There is none.
        """
        lines = self.text.splitlines()
        found = [line.removeprefix(start) for line in lines if line.startswith(start)]
        if not found:
            raise LookupError(f"no line starts with {start!r}")
        return found

    def beside(self, name: str) -> "Record":
        """Returns the record of another name in the same folder."""
        return Record(self.path.with_name(name))


def rows(text: str) -> Iterator[Row]:
    """Yields the rows of the tables of a Markdown text."""
    heading, between, header, first, top = "", "", [""], "", 0
    lines = text.splitlines()
    for at, line in enumerate(lines, 1):
        if not line.startswith("|"):
            heading, between = (line, "") if line.startswith("#") else (heading, line or between)
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if at == 1 or not lines[at - 2].startswith("|"):
            header, first, top = cells, "", at
        elif not set(line) <= set("|:- "):
            first = cells[0] or first
            named = dict(zip(header, [first, *cells[1:]], strict=True))
            yield Row(at, top, f"{heading}\n{between}", named)
