"""Sentences in place of drawings that say nothing, and whole words and rows on small and wide screens."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown
from uncertain_cep.reporting.in_words import title_of

try:
    from playwright.sync_api import expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

SPANS = pa.table(
    {
        "type": ["T", "M", "U"], "id": ["a task with a name that is rather long", "m1", "u1"],
        "lower": [0, 3, 6], "upper": [16, 14, 13], "begin_lower": [0, 3, 6], "begin_upper": [2, 5, 9],
        "end_lower": [14, 11, 10], "end_upper": [16, 14, 13],
    }
)  # fmt: skip
OVERLAPPING = "PATTERN AND(T t, M m) WHERE t CONTAINS m WITHIN 60"
BROKEN_WORDS = """all => all.flatMap((one) => {
  const node = one.firstChild, range = document.createRange();
  return [...node.data.matchAll(/[^ ]+/g)].filter((word) => {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    return new Set([...range.getClientRects()].map((part) => part.top)).size > 1;
  }).map((word) => word[0]);
})"""


def pairs(probability: list[float]) -> pa.Table:
    """Return pairs A, B of which each has the same order, far from the others."""
    count = len(probability)
    return pa.table(
        {
            "type": ["A", "B"] * count,
            "id": [*range(2 * count)],
            "lower": [at for k in range(count) for at in (100 * k, 100 * k + 2)],
            "upper": [at for k in range(count) for at in (100 * k + 5, 100 * k + 8)],
            "probability": [p for each in probability for p in (each, 1.0)],
        }
    )


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        ([1.0, 1.0], ["Each of the 2 matches has probability 76.2%."]),
        ([1.0, 0.99], ["Each of the 2 matches has probability 75 to 80%."]),
        ([1.0, 0.5], ["Matches by probability. A bar shows its matches in the table."]),
        ([1.0], []),
    ],
)
def test_one_bar_is_a_sentence(
    shown: Shown, tmp_path: Path, probability: list[float], said: list[str]
) -> None:
    path = tmp_path / "page.html"
    uc.report(pairs(probability), "PATTERN SEQ(A a, B b) WITHIN 20", path)
    panel = shown.open(path).locator("#charts .panel", has_text="How sure?")
    expect(panel.locator("p")).to_have_text(said)
    # Letters are as large in few charts as in many.
    sizes = panel.locator("svg text").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert all(size < 20 for size in sizes)
    bars = panel.locator("rect.bar[role=button]").count()
    assert bars == (2 if "A bar" in "".join(said) else 0)


def test_words_of_factors_are_whole_on_a_phone(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(SPANS, OVERLAPPING, path)
    shown.page.set_viewport_size({"width": 390, "height": 844})
    page = shown.open(path)
    for summary in page.locator("#example summary").all():
        summary.click()
    heads = page.locator("#example .factors th[scope=row], #example .factors th small")
    assert "t CONTAINS m" in heads.all_text_contents()
    assert heads.evaluate_all(BROKEN_WORDS) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_no_dot_of_an_order_is_alone(shown: Shown, tmp_path: Path) -> None:
    """Events that overlap in every world are in a sentence; names do not reach over the edge."""
    path = tmp_path / "page.html"
    uc.report(SPANS, OVERLAPPING, path)
    page = shown.open(path)
    graph = page.locator("#example details", has_text="Which was first?")
    graph.locator("summary").click()
    expect(graph.locator("p")).to_have_text("None: they overlap in every world.")
    expect(graph.locator("svg, table")).to_have_count(0)
    apart = SPANS.set_column(6, "end_lower", pa.array([14, 6, 10])).set_column(
        5, "begin_upper", pa.array([2, 5, 9])
    )
    uc.report(
        apart,
        "PATTERN AND(T t, M m, U u) WHERE t CONTAINS m AND t CONTAINS u WITHIN 60",
        path,
        overwrite=True,
    )
    page = shown.open(path)
    graph.locator("summary").click()
    expect(graph.locator("svg text:not(.chance) title")).to_have_text(["m M m1", "u U u1"])
    expect(graph.locator("p").last).to_have_text(
        "t T a task with a name that is rather long and each of the others overlap in every world."
    )
    left = graph.locator("svg").evaluate("one => one.getBoundingClientRect().left")
    assert all(
        box >= left
        for box in graph.locator("svg text").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().left)"
        )
    )


@pytest.mark.parametrize("width", [1000, 1440])
def test_no_chart_is_alone_in_its_row(shown: Shown, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    events = pairs([1.0, 0.5, 0.7, 0.9]).append_column("host", [["h", "i"][k // 4] for k in range(8)])
    events = events.append_column("zone", [["y", "z"][k // 2 % 2] for k in range(8)])
    events = events.set_column(0, "type", pa.array(["A", "B", "A", "C"] * 2))
    shown.page.set_viewport_size({"width": width, "height": 900})
    uc.report(events, "PATTERN SEQ(A a, ANY b) WHERE [host, zone] WITHIN 20", path)
    panels = shown.open(path).locator("#charts .panel")
    boxes = [box for one in panels.all() if (box := one.bounding_box()) is not None]
    assert len(boxes) == 5
    rows = Counter(round(box["y"]) for box in boxes)
    assert sorted(rows.values()) == [2, 3]


def test_titles_of_sets_say_what_must_not_be_there() -> None:
    titles = {
        "AND(T t, !N n) WHERE n OVERLAPS t": "T (t), but no N (n)",
        "AND(A a, !N n, B b, !M m) WHERE TIME(n) < TIME(a) AND TIME(m) < TIME(a)":
            "A (a) and B (b) in any order, but no N (n) or M (m)",
        "AND(A a, B b)": "A (a) and B (b) in any order",
    }  # fmt: skip
    assert {text: title_of(uc.parse(f"PATTERN {text} WITHIN 9")) for text in titles} == titles
