"""Checks the built site: no page asks for anything from elsewhere, and no link leads nowhere."""

import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, as an attribute of which tags.
FETCHED = {"src": None, "href": {"link"}, "data": {"object"}, "poster": {"video"}}
NOT_FETCHED = {"canonical", "next", "prev", "search", "index", "author", "copyright"}


class Page(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if not NOT_FETCHED & set(values.get("rel", "").split()):
            self.fetched += [
                values[name]
                for name, tags in FETCHED.items()
                if name in values and (tags is None or tag in tags)
            ]


def is_elsewhere(link: str) -> bool:
    """Whether a link leaves the site."""
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme not in {"", "data"}


def faults(site: Path) -> Iterator[str]:
    """What is wrong, a line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name}: fetches {each}" for each in page.fetched if is_elsewhere(each))
        for link in [*page.links, *page.fetched]:
            if not is_elsewhere(link) and not link.startswith("data:"):
                yield from (f"{name}: {link}: {fault}" for fault in _fault(link, path, pages))
    for style in sorted(site.rglob("*.css")):
        if "url(http" in style.read_text(encoding="utf-8").replace('"', "").replace("'", ""):
            yield f"{style.relative_to(site)}: fetches from elsewhere"
    if not pages:
        yield f"{site}: has no page"


def _fault(link: str, path: Path, pages: Mapping[Path, Page]) -> Iterator[str]:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        yield "no such file"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        yield "no such place in it"


def main() -> int:
    """Prints the faults of the site in a folder; returns whether there is one."""
    site = Path(sys.argv[1]).resolve()
    found = list(faults(site))
    print("\n".join(found) or f"{site}: every link leads somewhere, and nothing is fetched")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
