"""A browser that all tests of pages share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

playwright = pytest.importorskip("playwright.sync_api") if os.environ.get("CI") != "true" else None


@pytest.fixture(scope="package")
def browser() -> Iterator[object]:
    """Chromium; without it the tests are skipped, and fail where CI=true."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        message = "no Chromium: install the package chromium to look at pages"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as driver:
        # Root has no sandbox of Chromium's.
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
