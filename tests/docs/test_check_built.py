"""The check of the built site finds what is wrong."""

from pathlib import Path

import pytest

from docs.check_built import faults

GOOD = '<a href="other.html#place">x</a><a href="https://example.org">y</a><img src="a.png">'
BASE = {"index.html": GOOD, "other.html": '<p id="place">', "a.png": "", "style.css": "p {}"}


def site(folder: Path, **changed: str) -> Path:
    for name, text in (BASE | {k.replace("_", "."): v for k, v in changed.items()}).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_good_site(tmp_path: Path) -> None:
    assert list(faults(site(tmp_path))) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('<a href="gone.html">', "index.html: gone.html: no such file"),
        ('<a href="other.html#nowhere">', "index.html: other.html#nowhere: no such place in it"),
        ('<a href="#nowhere">', "index.html: #nowhere: no such place in it"),
        ('<img src="gone.png">', "index.html: gone.png: no such file"),
        ('<script src="https://example.org/x.js">', "index.html: fetches https://example.org/x.js"),
        ('<script src="//example.org/x.js">', "index.html: fetches //example.org/x.js"),
        ('<link rel="stylesheet" href="https://example.org/x">', "index.html: fetches https://"),
    ],
)
def test_faults_are_found(tmp_path: Path, text: str, fault: str) -> None:
    (found,) = faults(site(tmp_path, index_html=text))
    assert found.startswith(fault)


def test_styles_that_fetch_are_found(tmp_path: Path) -> None:
    style = "@font-face { src: url('https://example.org/font') }"
    assert list(faults(site(tmp_path, style_css=style))) == ["style.css: fetches from elsewhere"]


def test_empty_site_is_a_fault(tmp_path: Path) -> None:
    (found,) = faults(tmp_path)
    assert "has no page" in found
