"""The documentation site in a browser: its search lists the right page first, and pages fit the screen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.project.test_imports import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.thorough

TYPED: Final = {
    "timezone": "stamps",
    "time zone": "stamps",
    "DST": "stamps",
    "WITHIN": "language",
    "HAVING": "language",
    "negation": "gaps",
    "Kleene": "repetition",
    "no such column": "errors",
    "there is no such file": "errors",
    "an earlier event has this id": "errors",
    "--known-until": "options",
    "--min-confidence": "options",
    "kafka": "streams",
    "late events": "streams",
    "throttle": "rules",
    "slow": "performance",
    "timeout": "limits",
    "clock skew": "clocks",
    "ntp": "clock-bounds",
    "syslog": "text-logs",
    "average": "uncertainty",
    "session": "cookbook",
    "no match": "why",
    "flink": "comparison",
    "kubernetes": "spark",
    "join_asof": "api/join_asof",
    "plot.timeline": "api/plot-timeline",
}
"""What people type, and the page that has to come first."""

RANKED: Final = (
    "typed => Search._performSearch(...Search._parseQuery(typed)).reverse().map(result => result[0])"
)
WIDTH: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "docs.site.build", str(folder), "html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_the_search_lists_the_page_that_one_wants_first(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((site / "search.html").as_uri())
    page.wait_for_function("typeof Search !== 'undefined' && Search._index !== null")
    first = {typed: (page.evaluate(RANKED, typed) or [""])[0] for typed in TYPED}
    page.close()
    assert first == TYPED


@pytest.mark.parametrize("width", [390, 1440])
def test_pages_are_no_wider_than_the_screen(site: Path, browser: Browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    wide = []
    for file in sorted(site.rglob("*.html")):
        page.goto(file.as_uri())
        if page.evaluate(WIDTH) > 0:
            wide.append(file.name)
    page.close()
    assert wide == []
