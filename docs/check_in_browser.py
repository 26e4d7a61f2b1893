"""Opens every built page in headless Chromium: nothing is fetched, nothing fails, math is set."""

import shutil
import sys
from pathlib import Path
from typing import Any

NEEDS = (
    "`make docs-check` needs a browser: Chromium as `chromium` or `chromium-browser` on the PATH "
    "(the package `chromium` of Debian, say), and the built site (`make docs`). It installs none."
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def faults(page: Any, path: Path, picture: Path | None) -> list[str]:
    """What is wrong with one page as the browser shows it, which `picture` keeps."""
    found: list[str] = []
    page.on("request", lambda request: _note(found, request.url))
    page.on("requestfailed", lambda request: found.append(f"cannot get {request.url}"))
    page.on("pageerror", lambda error: found.append(f"script error: {error}"))
    page.on("console", lambda message: _note_console(found, message))
    page.goto(path.as_uri(), wait_until="load")
    if page.locator(".math").count():
        page.wait_for_function("window.MathJax?.startup?.promise !== undefined", timeout=20_000)
        page.evaluate("() => MathJax.startup.promise")
        if page.locator("mjx-container").count() == 0:
            found.append("no formula is set")
        if errors := page.locator("[data-mml-node=merror]").count():
            found.append(f"{errors} formulas have errors")
    width = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
    if width > 0:
        found.append(f"is {width} pixels wider than the window")
    if picture is not None:
        page.screenshot(path=picture, full_page=True)
    return found


def _note(found: list[str], url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:")):
        found.append(f"asks for {url}")


def _note_console(found: list[str], message: Any) -> None:
    if message.type == "error":
        found.append(f"console: {message.text}")


def main() -> int:
    """Prints what is wrong with a folder; with a second folder, keeps pictures there."""
    site = Path(sys.argv[1]).resolve()
    pictures = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    pages = sorted(site.rglob("*.html"))
    if browser_path is None or not pages:
        print(NEEDS, file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    count = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox"], timeout=60_000
        )
        for path in pages:
            name = path.relative_to(site)
            picture = pictures and pictures / f"{'-'.join(name.with_suffix('').parts)}.png"
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            for fault in faults(page, path, picture):
                print(f"{name}: {fault}", flush=True)
                count += 1
            page.close()
        browser.close()
    print(f"{len(pages)} pages opened, {count} faults")
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
