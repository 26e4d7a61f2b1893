"""What the site promises of its pages."""

import re
from pathlib import Path

import lerh_tf
import lerh_tf.oracles

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENTED = re.compile(r"^\.\. auto(?:class|function|exception):: (\w+)$", flags=re.MULTILINE)


def written() -> dict[str, str]:
    """The pages by name, without what the gallery and a build made."""
    return {
        str(page.relative_to(DOCS)): page.read_text(encoding="utf-8")
        for page in DOCS.rglob("*.md")
        if not {"_build", "gallery"} & set(page.relative_to(DOCS).parts)
    }


def test_every_public_name_has_one_page() -> None:
    api = {name: text for name, text in written().items() if name.startswith("api/")}
    oracles = DOCUMENTED.findall(api.pop("api/oracles.md"))
    assert sorted(oracles) == sorted(lerh_tf.oracles.__all__)
    names = [name for text in api.values() for name in DOCUMENTED.findall(text)]
    assert sorted(names) == sorted(lerh_tf.__all__)


def test_no_page_names_a_test() -> None:
    naming = re.compile(r"\btests/\w|\btest_\w+(\.py|\b\()")
    pages = {name: text for name, text in written().items() if not name.startswith("results/")}
    assert [name for name, text in pages.items() if naming.search(text)] == []


def test_code_shown_beside_the_algorithms_is_the_librarys() -> None:
    text = written()["algorithms.md"]
    shown = re.findall(r"^```\{literalinclude\} (\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(shown) == 4
    for path, options in shown:
        source = (DOCS / path).read_text(encoding="utf-8")
        (name,) = re.findall(r":(?:pyobject: \w+\.|start-at: \"?)(.*?)\"?$", options, re.MULTILINE)
        assert name in source


def test_pages_say_whether_the_map_was_run() -> None:
    is_run = "**Not run yet.**" not in (DOCS / "map.md").read_text(encoding="utf-8")
    (link,) = re.findall(r"map\.md\)[^,]*", (DOCS.parent / "README.md").read_text(encoding="utf-8"))
    assert ("not run yet" in link) != is_run
