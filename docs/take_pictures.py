"""Take the pictures of a report that stand in the documents: ``python docs/take_pictures.py report.html``.

``python3 run.py pictures`` does so with the report of the demo.
"""

from __future__ import annotations

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
    "phone": ("light", 390, 844),
}
"""Name -> colours, width and height; ``match`` shows a match that is open, the others the first screen."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def take(browser: Browser, report: Path, name: str) -> None:
    """Write a picture of a report."""
    scheme, width, height = PICTURES[name]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1.5
    )
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready]")
    if name == "match":
        page.locator("tr.row").first.click()
        page.locator("#matches").scroll_into_view_if_needed()
        page.locator("#matches").evaluate("element => element.scrollIntoView()")
    page.screenshot(path=FOLDER / f"report-{name}.png")
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


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
