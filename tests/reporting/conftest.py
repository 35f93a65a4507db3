"""Fixtures of tests that look at pages: Chromium, and a page whose faults fail the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.needs import lacking
from tests.reporting.pages import PATIENCE, Shown

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, if there is one that starts."""
    from playwright.sync_api import Error, expect, sync_playwright

    path = next((place for name in BROWSERS if (place := shutil.which(name))), None)
    if path is None:
        lacking("browser", "there is no Chromium: install the package chromium to look at pages")
    with sync_playwright() as driver:
        # Root has no sandbox of Chromium's.
        try:
            chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=PATIENCE)
        except Error as error:
            lacking("browser", f"{path} does not start ({str(error).splitlines()[0]})")
        expect.set_options(timeout=PATIENCE)
        yield chromium
        chromium.close()


@pytest.fixture
def shown(browser: Browser) -> Iterator[Shown]:
    """A page whose messages, errors and requests fail the test."""
    page = browser.new_page()
    shown_page = Shown(page)
    yield shown_page
    page.close()
    assert shown_page.faults == []
