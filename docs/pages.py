"""Pages as their readers see them: the records and commands they name, the measured numbers.

What counts as measured is said in `docs/check_numbers.py`.
"""

import re
from collections.abc import Iterator
from posixpath import dirname, normpath

from docs.records import VALUE

FOLDERS = ("docs/results/", "docs/measured/", "reproduce/reference/")
BLOCK = re.compile(r"(?<=--write -->\n)(?:.*\n)*?(?=<!-- end -->)")

FENCE = re.compile(r"^(`{3,}|:{3,})(.*)\n(?:.*\n)*?\1$", re.MULTILINE)
SPAN = re.compile(r"`(?:[^`\n]|\n(?!\n))+`")
OTHER = re.compile(
    r"\$\$[^$]+\$\$|\$[^$\n]+\$|\]\([^)\s]*\)|^ *(?:[-*]|\d+\.) |<!--.*-->", re.MULTILINE
)
LINK = re.compile(r"\]\(([^)#\s:]+)")
COMMAND = re.compile(
    r"(?<!\S)(?:(?:make|reproduce)\s([a-z][a-z0-9-]*)|(python -m\s[\w.]+(?:\s[a-z][a-z-]*)?))"
)

UNIT = r"(?:\s?[%±]|\s(?:m?s|MB|GB|(?:second|minute|hour)s?|times|seeds)\b|\sx\b(?!\s\d)|-fold\b)"
SERIES = rf"{VALUE.pattern}(?:,?(?:\s(?:to|and|or))?\s{VALUE.pattern})*"
WITH_UNIT = re.compile(rf"{SERIES}(?={UNIT})|(?<=±\s){VALUE.pattern}")
SET = re.compile(
    r"\b(?:tau|rates?|Tables?|Figures?|Sections?|Python|TensorFlow|Keras|Apache|BY-SA)\s$"
)
END = re.compile(r"[.!?]\s|\n\n|\n\|")
QUALITY = re.compile(r"\b(?:accurac(?:y|ies)|ESS)\b")
_ONES = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty"
MULTIPLE = re.compile(rf"\b(?:{_ONES})\s(?:times|seeds|seconds|minutes|hours)\b")
PART = re.compile(
    r"\b(?:half|thirds?|quarters?|(?:fif|six|eigh|ten|fifteen|twentie|hundred|thousand)ths?)\b"
)


class Page:
    """A page and what stands in it.

    Args:
        name: Its path from the root.
        text: Its Markdown.

    Attributes:
        prose: The text without code, formulas, addresses and marks: blanks in their places.
        headings: Where each begins, and its level.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.prose = text
        for pattern in (BLOCK, FENCE, SPAN, OTHER):
            self.prose = pattern.sub(lambda found: re.sub(r"\S", " ", found[0]), self.prose)
        headings = re.finditer(r"^(#+) ", self.prose, re.MULTILINE)
        self.headings = [(found.start(), len(found[1])) for found in headings]

    @property
    def block(self) -> str | None:
        """What stands between the marks of Table 1, if there are any."""
        found = BLOCK.search(self.text)
        return found and found[0]

    def position(self, line: int) -> int:
        """Returns where a line begins, counted from 1."""
        return sum(map(len, self.text.splitlines(keepends=True)[: line - 1]))

    def line(self, at: int) -> int:
        """Returns the number of the line at a position."""
        return self.text.count("\n", 0, at) + 1

    def section(self, at: int) -> "Section":
        """Returns what the headings above a position say."""
        parts, deepest, end = [], 7, len(self.text)
        for start, level in reversed(self.headings):
            if start <= at and level < deepest:
                parts.append(self.text[start:end])
                deepest = level
            end = start
        return Section(self.name, "\n".join(parts))

    def measured(self) -> Iterator[re.Match[str]]:
        """Yields the measured numbers."""
        with_unit = {
            number.start()
            for found in WITH_UNIT.finditer(self.prose)
            for number in VALUE.finditer(self.prose, found.start(), found.end())
        }
        for found in VALUE.finditer(self.prose):
            if found.start() in with_unit or ("." in found[0] and self._is_result(found)):
                yield found

    def _is_result(self, found: re.Match[str]) -> bool:
        before = self.prose[: found.start()]
        if SET.search(before[-20:]):
            return False
        if self.section(found.start()).records:
            return True
        begin = max((end.end() for end in END.finditer(before)), default=0)
        end = END.search(self.prose, found.end())
        return bool(QUALITY.search(self.prose[begin : end.start() if end else None]))

    def in_words(self) -> Iterator[re.Match[str]]:
        """Yields numbers that stand as words."""
        yield from MULTIPLE.finditer(self.prose)
        yield from (
            found for found in PART.finditer(self.prose) if self.section(found.start()).records
        )


class Section:
    """What a section names, those above it included.

    Args:
        page: The page's path from the root.
        text: Of the sections.
    """

    def __init__(self, page: str, text: str) -> None:
        code = [found[0].strip("`") for found in SPAN.finditer(FENCE.sub("", text))]
        links = [normpath(f"{dirname(page)}/{link}").lstrip("/") for link in LINK.findall(text)]
        self.records = {
            name for name in [*links, *code] if name.startswith(FOLDERS) and "." in name
        }
        fences = [
            line
            for found in FENCE.finditer(text)
            if not found[2].startswith(("python", "{"))
            for line in found[0].splitlines()
        ]
        self.commands = {
            f"make {target}" if target else " ".join(module.split())
            for each in [*code, *fences]
            for target, module in COMMAND.findall(each)
        }
