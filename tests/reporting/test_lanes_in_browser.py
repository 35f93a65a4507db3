"""Lanes of a match as a person sees them: densities, spans, hosts, events nearby, zoom and movement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown

try:
    from playwright.sync_api import Page, expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

SECONDS = pa.timestamp("s", "UTC")
START = 1_767_254_400
"""2026-01-01 08:00 UTC."""

EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "N", "C", "C"],
        "id": ["a1", "b1", "a2", "n1", "c1", "c2"],
        "lower": pa.array([START + t for t in (0, 4, 900, 6, 2, 3)], SECONDS),
        "upper": pa.array([START + t for t in (9, 13, 905, 7, 2, 30)], SECONDS),
        "host": ["web", "db", "web", "web", "db", "cache"],
    }
)
QUERY = "PATTERN SEQ(A a, !N n, B b) WITHIN 1 min"

TICKS = """svg => [...svg.querySelectorAll("text.tick")].map(text => Number(text.dataset.at) / 1e9)"""
DENSITIES = """paths => paths.map(path => {
  const d = path.getAttribute("d");
  const steps = [...d.matchAll(/V([\\d.]+)H([\\d.]+)/g)].map(one => [Number(one[1]), Number(one[2])]);
  const [left, base] = d.match(/M([\\d.]+) ([\\d.]+)/).slice(1).map(Number);
  return steps.map(([y, right], k) => [base - y, right - (k ? steps[k - 1][1] : left)]);
})"""


def first_lanes(shown: Shown, path: Path, query: str = QUERY, events: pa.Table = EVENTS) -> Page:
    uc.report(events, query, path, overwrite=True, tick="1s" if events is EVENTS else None)
    return shown.open(path)


def ticks(page: Page) -> list[float]:
    marks: list[float] = page.locator("#example svg").evaluate(TICKS)
    return marks


def test_a_strip_is_as_high_as_its_tick_is_likely(shown: Shown, tmp_path: Path) -> None:
    page = first_lanes(shown, tmp_path / "page.html")
    strips = page.locator("#example svg .density").evaluate_all(DENSITIES)
    matches = uc.match(EVENTS, QUERY, tick="1s")
    laws = uc.posteriors(matches, EVENTS, QUERY, tick="1s")["pmf"].to_pylist()
    assert len(strips) == len(laws) == 2
    for strip, law in zip(strips, laws, strict=True):
        law = [p for p in law if p > 0]
        top, highest = max(law), max(height for height, _ in strip)
        assert len(strip) >= len(law)
        heights = [height / highest for height, _ in strip if height > 0]
        assert heights == pytest.approx([p / top for p in law], abs=0.5 / 35 + 1e-9)


def test_lanes_are_hosts_with_what_could_spoil_the_match(shown: Shown, tmp_path: Path) -> None:
    page = first_lanes(shown, tmp_path / "page.html")
    picture = page.locator("#example svg")
    assert picture.locator("text.head").all_text_contents() == ["host web", "host db"]
    assert picture.locator("text.variable").all_text_contents() == ["a", "could spoil", "b"]
    labels = picture.locator("text.dim").all_text_contents()
    assert {"A a1", "N n1", "B b1"} <= {text.removesuffix(text[len(text) // 2 :]) for text in labels}
    assert picture.locator(".spoiler").count() == 1
    expect(picture).to_contain_text("2026-01-01")
    expect(picture).to_contain_text("UTC")


def test_events_nearby_come_on_demand_in_the_lanes_of_the_match(shown: Shown, tmp_path: Path) -> None:
    page = first_lanes(shown, tmp_path / "page.html")
    button = page.locator("#example").get_by_role("button", name="Other events nearby (1)")
    assert page.locator("#example svg .beside").count() == 0
    button.click()
    expect(page.locator("#example svg .beside")).to_have_count(1)
    assert page.locator("#example svg .beside title").text_content() == "C c1: 08:00:02"
    button.click()
    expect(page.locator("#example svg .beside")).to_have_count(0)


def test_zoom_and_move_by_keyboard(shown: Shown, tmp_path: Path) -> None:
    page = first_lanes(shown, tmp_path / "page.html")
    all_of_it = ticks(page)
    stage = page.locator("#example .stage")
    stage.focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    near = ticks(page)
    assert max(near) - min(near) < max(all_of_it) - min(all_of_it)
    page.keyboard.press("Home")
    assert min(ticks(page)) == min(all_of_it)
    page.keyboard.press("End")
    late = ticks(page)
    assert max(late) >= max(all_of_it)
    assert min(late) > min(all_of_it)
    page.keyboard.press("ArrowLeft")
    assert min(ticks(page)) < min(late)
    expect(page.locator("#example .lane-tools [aria-live]")).to_contain_text("08:00:0")
    page.keyboard.press("0")
    assert ticks(page) == all_of_it
    page.keyboard.press("-")
    assert ticks(page) == all_of_it


def test_zoom_and_move_by_mouse(shown: Shown, tmp_path: Path) -> None:
    page = first_lanes(shown, tmp_path / "page.html")
    all_of_it = ticks(page)
    box = page.locator("#example svg").bounding_box()
    assert box is not None
    right, middle = box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2
    page.mouse.dblclick(right, middle)
    late = ticks(page)
    assert min(late) > min(all_of_it)
    page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.95, middle, steps=5)
    page.mouse.up()
    assert min(ticks(page)) < min(late)
    page.locator("#example").get_by_role("button", name="All").click()
    assert ticks(page) == all_of_it
    page.mouse.move(right, middle)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    expect(page.locator("#example svg")).to_have_class("zoomed")
    page.locator("#example").get_by_role("button", name="Zoom out").click()


PINCH = """svg => {
  const own = svg.getBoundingClientRect(), y = own.top + own.height / 2;
  const send = (kind, pointerId, share) => svg.dispatchEvent(new PointerEvent(kind, {
    pointerId, pointerType: "touch", clientX: own.left + share * own.width, clientY: y, bubbles: true,
  }));
  svg.setPointerCapture = () => {};
  send("pointerdown", 11, 0.5); send("pointerdown", 12, 0.6);
  send("pointermove", 12, 0.8);
  send("pointerup", 11, 0.5); send("pointerup", 12, 0.8);
}"""


def test_two_fingers_zoom(shown: Shown, tmp_path: Path) -> None:
    page = first_lanes(shown, tmp_path / "page.html")
    before = ticks(page)
    page.locator("#example svg").evaluate(PINCH)
    assert max(ticks(page)) - min(ticks(page)) < max(before) - min(before)


def spans() -> pa.Table:
    events = pa.table(
        {
            "type": ["TaskStart", "Cpu", "Cpu", "TaskFinish"],
            "id": [1, 2, 3, 4],
            "lower": [0, 4, 11, 12],
            "upper": [2, 8, 15, 14],
            "task": ["x", None, None, "x"],
            "used": [None, 97, 99, None],
        }
    )
    tied: Any = uc.spans(events, "TaskStart", "TaskFinish", by="task", type="Task")
    return tied


def test_events_that_last_are_bars_with_uncertain_ends(shown: Shown, tmp_path: Path) -> None:
    query = "PATTERN AND(Task t, Cpu m) WHERE t CONTAINS m AND m.used > 95 WITHIN 60"
    page = first_lanes(shown, tmp_path / "page.html", query, spans())
    assert page.locator("#totals").inner_text().split()[0] == str(uc.match(spans(), query).num_rows)
    span = page.locator("#example svg .span")
    expect(span).to_have_count(1)
    assert span.locator("title").text_content() == (
        "Task 1: begins 0 to 2, 2 ticks later; ends 12 to 14, 2 ticks later"
    )
    # Full between the last tick at which it can begin and the first at which it can end.
    path = str(span.get_attribute("d"))
    points = [float(one) for one in re.findall(r"[MLH]([\d.]+)", path)]
    first, begun, ends, last = points[:4]
    per_tick = (begun - first) / 2
    assert ends - first == pytest.approx(12 * per_tick)
    assert last - first == pytest.approx(15 * per_tick)
    page.locator("tr.row").first.click()
    expect(page.locator("#matches table.events")).to_contain_text(
        "begins 0 \N{EN DASH} 2, ends 12 \N{EN DASH} 14"
    )
    expect(page.locator("#example")).to_contain_text("Pointed bars: events that last")
    expect(page.locator("#totals")).to_contain_text("no comparison with raw stamps")


def test_lasting_events_that_could_spoil_a_match_are_bars_with_slopes(shown: Shown, tmp_path: Path) -> None:
    events = pa.table(
        {
            "type": ["T", "N"], "id": [1, 2], "lower": [0, 3], "upper": [6, 12],
            "begin_lower": [0, 3], "begin_upper": [2, 9], "end_lower": [4, 8], "end_upper": [6, 12],
        }
    )  # fmt: skip
    path = tmp_path / "page.html"
    uc.report(events, "PATTERN AND(T t, !N n) WHERE n OVERLAPS t WITHIN 60", path)
    page = shown.open(path)
    picture = page.locator("#example svg").first
    assert picture.locator("text.variable").all_text_contents() == ["t", "could spoil"]
    assert picture.locator("path.span").count() == 2
    spoiler = picture.locator("path.span.spoiler title").text_content()
    assert spoiler is not None
    assert spoiler.startswith("could spoil: N 2: begins 3 to 9")
    expect(page.locator("#example")).to_contain_text("Orange: events that could spoil it")
