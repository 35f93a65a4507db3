"""Take the pictures of reports that stand in the documents: ``python docs/take_pictures.py report.html``.

``python3 run.py pictures`` does so with the report of the demo. That of the treatments, which is made here,
has matches by key and time, and raw lines.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
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
    "calibration": ("light", 1200, 860),
    "times": ("light", 1200, 860),
    "lines": ("light", 1200, 860),
}
"""Name -> colours, width and height. ``match`` and ``group`` show one that is open; those in `PARTS` show a
part of a page, the others the first screen."""

PARTS = {
    "order": ("#example details", "Which was first?"),
    "calibration": ("#charts .panel", "Did it happen as often as said?"),
    "times": ("#maps .panel", "By patient and time"),
    "lines": ("tr.panel-row details", "The raw lines"),
}
"""Name -> what a picture shows alone: the element, and words that stand in it."""

TREATMENTS = ("times", "lines")
"""Pictures of the report of the treatments."""

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
    if name in ("match", "group", "lines"):
        section, row = ("#groups", "button.group") if name == "group" else ("#matches", "tr.row")
        page.locator(row).first.click()
        page.locator(section).evaluate("element => element.scrollIntoView()")
    if name in PARTS:
        selector, words = PARTS[name]
        part = page.locator(selector, has_text=words)
        if name in ("order", "lines"):
            part.locator("summary").click()
        part.screenshot(path=place)
    else:
        page.screenshot(path=place)
    context.close()


def report_of_treatments(folder: Path) -> Path:
    """Return a report whose events are called by their rows of the file, so that it shows these."""
    trace = FOLDER.parents[1] / "datasets" / "chemotherapy"
    schema, page = folder / "schema.toml", folder / "report.html"
    text = (trace / "schema.toml").read_text(encoding="utf-8")
    schema.write_text(text.replace('id = "{event}"', 'id = "place"'), encoding="utf-8")
    files = [str(trace / "low_blood_count.query"), "treatments.csv", "--schema", str(schema), "-o", str(page)]
    subprocess.run([sys.executable, "-m", "uncertain_cep", "report", *files], cwd=trace, check=True)
    return page


def main(report: Path) -> None:
    """Write all pictures of a report."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        sys.exit("no Chromium: install the package chromium")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        treatments = report_of_treatments(Path(folder))
        for name in PICTURES:
            take(browser, treatments if name in TREATMENTS else report, name)
        browser.close()
    MADE_OF.write_text(f"{digest()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
