"""Checks that each measured number of README and pages can be traced to a command and a record.

A record is a file in `docs/results`, `docs/measured` or `reproduce/reference`; a row of a page's
table names it beside the command that makes it. Measured, outside code and formulas, is a number

- beside ± or before a unit: %, s, ms, MB, GB, seconds, minutes, hours, times, x, -fold, seeds;
- with a decimal point, in a sentence with the word accuracy or ESS;
- with a decimal point, in a section that names a record, unless it is set: tau = 0.1, Python 3.11.

A heading's text counts for the headings under it. Then

- of a sentence's number `docs/traced.py` says how it is made from the record: the same, rounded;
- each row of a table with such a number is a row of a record that the section names, or its part;
- the section names the record, by a link or as code, and a command that makes it, as code;
- all records and commands that are named are there; each topic of the report names a command;
- no number hides in a word: two times; where a record is named, a half, a tenth;
- README's Table 1 is what `docs/results/table1.md` says: `--write` makes it so.

Pages that commands write are compared by tests of their own, and left out here.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.pages import BLOCK, FOLDERS, Page, Section
from docs.records import VALUE, Record, Row, rows
from docs.traced import TRACED, Source
from reproduce import storage

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ("docs/keras.md", "docs/map.md", "docs/_build/", "docs/gallery/", *FOLDERS)
TABLE1, REPORT = "docs/results/table1.md", "docs/results/report.md"


def faults(root: Path, traced: Mapping[str, Mapping[str, Source]] = TRACED) -> Iterator[str]:
    """Yields what is wrong, a line each.

    Args:
        root: The checkout.
        traced: How sentences' numbers are made, by page and piece of text.
    """
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    names = {path.relative_to(root).as_posix(): path for path in paths}
    pages = [
        Page(name, path.read_text(encoding="utf-8"))
        for name, path in names.items()
        if not name.startswith(WRITTEN)
    ]
    makers: dict[str, set[str]] = {}
    for page in pages:
        for line in page.text.splitlines():
            row = Section(page.name, line)
            for record in row.records if line.startswith("|") else ():
                makers.setdefault(record, set()).update(row.commands)
    for name in names:
        if name.startswith(FOLDERS[:2]) and not makers.get(name):
            yield f"{name}: stands in no page's table beside a command that makes it"
    for page in pages:
        yield from _named(page, root)
        yield from _numbers(page, root, traced.get(page.name, {}), makers)
        yield from _table1(page, root)
    if REPORT in names:
        yield from _topics(Page(REPORT, names[REPORT].read_text(encoding="utf-8")), root)


def _named(page: Page, root: Path) -> Iterator[str]:
    whole = Section(page.name, page.text)
    for record in sorted(whole.records):
        if not (root / record).exists():
            yield f"{page.name}: there is no record {record}"
    for command in sorted(whole.commands):
        if not exists(command, root):
            yield f"{page.name}: there is no command `{command}`"


def _topics(page: Page, root: Path) -> Iterator[str]:
    yield from _named(page, root)
    topics = [start for start, level in page.headings if level == 2]
    for begin, end in zip(topics, [*topics[1:], len(page.text)], strict=True):
        if not Section(page.name, page.text[begin:end]).commands:
            yield f"{page.name}:{page.line(begin)}: the topic names no command"


def exists(command: str, root: Path) -> bool:
    """Returns whether there is a `make` target, or a module and a command in it."""
    if command.startswith("make "):
        makefile = (root / "Makefile").read_text(encoding="utf-8")
        return f"\n{command.removeprefix('make ')}: " in makefile
    module, _, word = command.removeprefix("python -m ").partition(" ")
    path = root.joinpath(*module.split("."))
    if not path.is_dir():
        return path.with_suffix(".py").exists()
    main = path / "__main__.py"
    name = word.replace("-", "_")
    return main.exists() and (not word or f"\ndef {name}(" in main.read_text(encoding="utf-8"))


def _numbers(
    page: Page, root: Path, traced: Mapping[str, Source], makers: Mapping[str, set[str]]
) -> Iterator[str]:
    covered: set[int] = set()
    for piece, source in traced.items():
        places = [
            found.span()
            for found in re.finditer(r"\s+".join(map(re.escape, piece.split())), page.text)
        ]
        wrong = list(compared(piece, source, root)) if places else ["is not on the page"]
        for begin, end in places:
            covered.update(range(begin, end))
            section = page.section(begin)
            if source.record not in section.records:
                wrong.append(f"the section does not name {source.record}")
            if not section.commands & makers.get(source.record, set()):
                wrong.append(f"the section names no command that makes {source.record}")
        yield from (f"{page.name}: {piece!r}: {fault}" for fault in wrong)
    measured = [(page.line(number.start()), number) for number in page.measured()]
    lines = page.text.splitlines()
    for line, number in measured:
        if number.start() not in covered and not lines[line - 1].startswith("|"):
            yield f"{page.name}:{line}: {number[0]} is not traced to a record"
    table = list(rows(page.text))
    with_numbers = {row.table for row in table for line, _ in measured if row.line == line}
    for row in table:
        if row.table in with_numbers and not _is_recorded(row, page, root):
            yield f"{page.name}:{row.line}: no record that the section names has this row"
    for word in page.in_words():
        yield f"{page.name}:{page.line(word.start())}: {word[0]!r} hides a number: in digits"


def compared(piece: str, source: Source, root: Path) -> Iterator[str]:
    """Yields in what the numbers of a piece of text are not their record's."""
    printed = [number[0] for number in VALUE.finditer(piece)]
    try:
        values = list(source.values(Record(root / source.record)))
    except (OSError, LookupError, ValueError) as error:
        yield f"{source.record}: {error!r}"
        return
    if len(values) != len(printed):
        yield f"{len(printed)} numbers, but {len(values)} in {source.record}: {values}"
        return
    for number, value in zip(printed, values, strict=True):
        decimals = len(number.partition(".")[2])
        if abs(float(number.replace(",", "")) - value) > 0.5 * 10.0**-decimals + 1e-9:
            yield f"{number} is {value:.6g} by {source.record}"


def _is_recorded(row: Row, page: Page, root: Path) -> bool:
    names = page.section(page.position(row.line)).records
    records = [Record(root / name) for name in names if (root / name).exists()]
    return any(row.cells.items() <= own.cells.items() for one in records for own in one.rows)


def _table1(page: Page, root: Path) -> Iterator[str]:
    if page.block is not None and page.block != table1(Record(root / TABLE1)):
        yield f"{page.name}: Table 1 is not that of {TABLE1}: --write makes it so"


def table1(record: Record) -> str:
    """Returns what README says of Table 1: seeds, command, machine and accuracies."""
    (note,) = record.notes("- Ours: mean ± sample standard deviation over seeds ")
    seeds = [int(seed) for seed in note.partition(";")[0].split()]
    header = list(record.rows[0].cells)
    body = [row.cells.values() for row in record.rows if row.cells[""] != "difference"]
    lines = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *body)]
    machines = "; ".join(text.removesuffix(".") for text in record.notes("- Run with "))
    return (
        "Held-out accuracy after so many weight updates, mean ± standard deviation over "
        f"{len(seeds)} seeds, by\n`make table1 SEEDS={_spelled(seeds)}`\n"
        f"([all of it]({TABLE1}); {machines}):\n\n" + "\n".join(lines) + "\n\n"
    )


def _spelled(seeds: list[int]) -> str:
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 5 and seeds == list(range(first, last + 1)):
        return f"\"$(seq -s ' ' {first} {last})\""
    return f'"{" ".join(map(str, seeds))}"'


def main() -> int:
    """Prints the faults, behind `--write` those that are left; returns whether there is one."""
    readme = ROOT / "README.md"
    if "--write" in sys.argv:
        text = readme.read_text(encoding="utf-8")
        written = BLOCK.sub(lambda _: table1(Record(ROOT / TABLE1)), text)
        storage.write(readme, written.encode(), readme.with_name(".README.md.part"))
    found = list(faults(ROOT))
    print("\n".join(found) or "every measured number is that of a record, with its command")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
