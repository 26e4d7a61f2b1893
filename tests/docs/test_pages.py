"""What the site promises of its pages."""

import inspect
import re
from collections.abc import Iterator
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


def docstrings() -> Iterator[tuple[str, str, bool]]:
    """The public docstrings: name, text and whether it is a property's."""
    for module in (lerh_tf, lerh_tf.oracles):
        for name in module.__all__:
            public = getattr(module, name)
            yield name, inspect.getdoc(public) or "", False
            for cls in inspect.getmro(public) if inspect.isclass(public) else ():
                if not cls.__module__.startswith("lerh_tf"):
                    continue
                for member, value in vars(cls).items():
                    text = inspect.getdoc(value) or ""
                    yield f"{name}.{member}", text, isinstance(value, property)


def what_sphinx_misreads(text: str, of_property: bool) -> list[str]:
    """To Napoleon a type stands before a colon; backticks end no code beside a letter."""
    answers = re.findall(r"^Returns:\n(.*)", text, re.MULTILINE)
    answers += text.splitlines()[:1] if of_property else []
    joined = re.sub("`[^`]+`", "`", text.replace("``", ""))
    beside = re.findall(r"\S*(?:\w`|`\w)\S*", joined)
    return [answer for answer in answers if ":" in answer] + beside


def test_sphinx_reads_docstrings_as_meant() -> None:
    found = {name: what_sphinx_misreads(text, whose) for name, text, whose in docstrings()}
    assert {name: misread for name, misread in found.items() if misread} == {}
    wrong = "Moves `Variable`s of its own.\n\nReturns:\n    The loss: a scalar."
    assert what_sphinx_misreads(wrong, False) == ["    The loss: a scalar.", "`s"]
    assert what_sphinx_misreads("How: one of two.", True) == ["How: one of two."]


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
