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
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def take(
    browser: Browser, report: Path, name: str, scheme: Literal["light", "dark"], width: int, height: int
) -> None:
    """Write a picture of the first screen, or, as ``match``, of a match that is open."""
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
        take(browser, report, "light", "light", 1200, 860)
        take(browser, report, "dark", "dark", 1200, 860)
        take(browser, report, "match", "light", 1200, 700)
        take(browser, report, "phone", "light", 390, 844)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
