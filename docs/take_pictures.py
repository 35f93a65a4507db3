"""Take the pictures of a report that stand in the documents: ``python docs/take_pictures.py report.html``.

``python3 run.py pictures`` does so with the report of the demo.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).resolve().parent / "pictures"
PICTURES: dict[str, tuple[Literal["light", "dark"], int, int]] = {
    "light": ("light", 1200, 860),
    "dark": ("dark", 1200, 860),
    "match": ("light", 1200, 700),
    "group": ("light", 1200, 700),
    "order": ("light", 1200, 700),
    "phone": ("light", 390, 844),
}
"""Name -> colours, width and height. ``match`` and ``group`` show one that is open, ``order`` its graph, the
others the first screen."""

PAGE = FOLDER.parents[1] / "uncertain_cep" / "reporting"
MADE_OF = FOLDER / "made_of.txt"
"""The digest of the page's sources when the pictures were taken."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def digest() -> str:
    """Return the digest of everything that decides what a page looks like."""
    sources = [file for end in ("js", "css", "html") for file in sorted(PAGE.glob(f"*.{end}"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in (*sources, Path(__file__)))).hexdigest()


def take(browser: Browser, report: Path, name: str) -> None:
    """Write a picture of a report."""
    scheme, width, height = PICTURES[name]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready]")
    place = FOLDER / f"report-{name}.png"
    graph = page.locator("#example details", has_text="Which was first?")
    if name in ("match", "group"):
        opened = {"match": ("#matches", "tr.row"), "group": ("#groups", "button.group")}[name]
        page.locator(opened[1]).first.click()
        page.locator(opened[0]).evaluate("element => element.scrollIntoView()")
    if name == "order":
        graph.locator("summary").click()
        graph.screenshot(path=place)
    else:
        page.screenshot(path=place)
    context.close()


def main(report: Path) -> None:
    """Write all pictures of a report."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        sys.exit("no Chromium: install the package chromium")
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in PICTURES:
            take(browser, report, name)
        browser.close()
    MADE_OF.write_text(f"{digest()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
