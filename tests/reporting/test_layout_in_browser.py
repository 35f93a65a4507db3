"""The look of a page at three widths and in both themes, and how it answers to clicks.

No pictures are kept to compare with, as letters differ between releases of Chromium and fonts of machines.
Instead facts of the layout are tested: nothing is wider than the screen, sections stand below each other in
order, letters stand out from the ground, and a screenshot of each drawing has ink.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown
from tests.reporting.test_shared_events import EVENTS, QUERY

try:
    from playwright.sync_api import Browser, Page, expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

SECTIONS = ["#totals", "#groups", "#charts", "#matches", "#about"]
LEAST_CONTRAST = 4.5
"""Of text on its ground, as WCAG 2 asks for."""

CONTRAST = """() => {
  const numbers = (paint) => (paint.match(/[0-9.]+/g) || []).map(Number);
  const linear = (value) => (value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = (paint) => {
    const [r, g, b] = numbers(paint).slice(0, 3).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const paint = getComputedStyle(at).backgroundColor, parts = numbers(paint);
      if (parts.length === 3 || parts[3] === 1) return paint;
    }
    return "rgb(255,255,255)";
  };
  const names = "h1, h2, h3, p, td, th button, summary, .note, svg text";
  const texts = [...document.querySelectorAll(names)];
  return texts.filter((one) => one.checkVisibility() && one.textContent.trim()).map((one) => {
    const style = getComputedStyle(one), drawn = one instanceof SVGElement;
    const behind = ground(drawn ? one.closest("svg").parentElement : one);
    const ends = [drawn ? style.fill : style.color, behind].map(light);
    return [(Math.max(...ends) + 0.05) / (Math.min(...ends) + 0.05), one.textContent.slice(0, 40)];
  });
}"""
INK = """async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  let different = 0;
  for (let k = 0; k < data.length; k += 4) {
    const by = [0, 1, 2].map((part) => Math.abs(data[k + part] - data[part]));
    if (by[0] + by[1] + by[2] > 60) different += 1;
  }
  return different / (data.length / 4);
}"""
"""The share of pixels that differ from the first one."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "page.html"
    uc.report(EVENTS, QUERY, file)
    return file


def check_look(page: Page, width: int, seen: dict[str, Any]) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [page.locator(name).bounding_box() for name in SECTIONS]
    there = [box for box in boxes if box is not None]
    assert len(there) == len(SECTIONS)
    tops = [box["y"] for box in there]
    assert tops == sorted(tops)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in there)
    dim = [(contrast, text) for contrast, text in page.evaluate(CONTRAST) if contrast < LEAST_CONTRAST]
    assert dim == []
    seen[f"{width}"] = [box["width"] for box in there]


def check_events(page: Page) -> None:
    """Open, zoom, filter, and follow a link."""
    page.locator("tr.row").first.click()
    panel = page.locator("tr.panel-row")
    bar = panel.locator("svg .interval").first
    before = bar.bounding_box()
    panel.get_by_label("Zoom in").click()
    after = bar.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]
    link = str(panel.locator("a").get_attribute("href"))
    page.locator("#charts rect.bar[role=button]").first.press("Enter")
    expect(page.locator(".chips button")).to_have_count(1)
    page.evaluate("link => { location.hash = link; }", link)
    expect(page.locator("tr.row.open")).to_have_count(1)
    expect(page.locator(".chips button")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_look_at_three_widths(browser: Browser, path: Path, scheme: str) -> None:
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    shown = Shown(page)
    shown.open(path)
    seen: dict[str, Any] = {}
    for width in (390, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        shown.open(path)
        check_look(page, width, seen)
    # A phone has one column, a desk no line longer than is read with ease.
    assert len(set(seen["390"])) == 1
    assert seen["2560"] == seen["1440"]
    page.set_viewport_size({"width": 1440, "height": 900})
    shown.open(path)
    pictures = [
        page.locator(name).first.screenshot()
        for name in ("#example svg", "#charts svg", "button.theme", "#totals")
    ]
    check_events(page)
    assert shown.faults == []
    page.close()
    # The policy of the page lets it load no picture: another one looks at them.
    with browser.new_context() as context:
        looking = context.new_page()
        for picture in pictures:
            ink = looking.evaluate(INK, f"data:image/png;base64,{b64encode(picture).decode()}")
            assert 0.005 < ink < 0.9
