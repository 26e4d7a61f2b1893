"""Opens the report in headless Chromium as readers would, and takes pictures: `make report-check`.

Not part of the tests, which need no browser. Fails where the console has a message, the page asks
for anything beyond itself, a picture does not load, a link leads nowhere, or it is wider than the
window.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

VIEWS = {
    "desktop-light": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"},
    "desktop-dark": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"},
    "phone-light": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
    "phone-dark": {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
}

NOT_LOADED = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.alt)"
DEAD_ENDS = """[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))
    .filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1)))"""
EXCESS = "document.documentElement.scrollWidth - window.innerWidth"
OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"


def faults(browser: Browser, page: Path, name: str, pictures: Path) -> list[str]:
    """Returns what is wrong with the page in one view; leaves a picture, closed and opened."""
    found: list[str] = []
    shown: Page = browser.new_page(**VIEWS[name])
    shown.on("console", lambda message: found.append(f"console: {message.text}"))
    shown.on("pageerror", lambda error: found.append(f"error: {error}"))
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page.absolute().as_uri())
    shown.screenshot(path=pictures / f"{name}.png")
    shown.evaluate(OPEN)
    found += [f"not loaded: {one}" for one in shown.evaluate(NOT_LOADED)]
    found += [f"dead link: {one}" for one in shown.evaluate(DEAD_ENDS)]
    found += [f"request: {url}" for url in asked if not url.startswith(("file:", "data:"))]
    if (excess := shown.evaluate(EXCESS)) > 0:
        found.append(f"{excess} pixels wider than the window")
    shown.screenshot(path=pictures / f"{name}-opened.png", full_page=True)
    shown.emulate_media(media="print")
    shown.screenshot(path=pictures / f"{name}-printed.png")
    return [f"{name}: {one}" for one in found]


def main(page: Path, pictures: Path) -> int:
    """Checks the page in every view and says what is wrong."""
    pictures.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium in PATH", file=sys.stderr)
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = [one for name in VIEWS for one in faults(browser, page, name, pictures)]
    print("\n".join(found) or f"{page} is fine in {len(VIEWS)} views; pictures in {pictures}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
