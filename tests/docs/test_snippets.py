"""Every Python snippet of the site runs, page by page, in the order that it is read in."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
GENERATED = {"_build", "gallery"}


def snippets(page: Path) -> list[str]:
    """A page's snippets, each behind as many empty lines as stand before it on the page."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in FENCE.finditer(text)]


PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not GENERATED & set(page.relative_to(DOCS).parts) and snippets(page)
)
FIRST = DOCS / "getting_started.md"


def test_pages_with_snippets_are_found() -> None:
    assert {"getting_started.md", "choosing.md", "training.md", "questions.md"} <= {
        page.name for page in PAGES
    }


# What compiles, and what saving does, is proven elsewhere.
@pytest.mark.usefixtures("plain_loops", "built_optimizers")
# Keras itself converts its variables in a way that NumPy 2 deprecates.
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parts = [(page, snippet) for snippet in snippets(page)]
    if page != FIRST:
        parts.insert(0, (FIRST, snippets(FIRST)[0]))
    namespace: dict[str, Any] = {"__name__": "snippets"}
    for origin, snippet in parts:
        exec(compile(snippet, str(origin), "exec"), namespace)
