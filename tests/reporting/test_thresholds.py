"""The metric around a match: the thresholds of a query, and the step line of what they measure."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import parse
from uncertain_cep.reporting.metric_thresholds import Threshold, thresholds_of

try:
    from playwright.sync_api import expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

EVENTS = pa.table(
    {
        "type": ["Cpu"] * 6 + ["End", "Cpu"],
        "id": list(range(8)),
        "lower": [0, 10, 20, 30, 40, 60, 12, 15],
        "upper": [9, 19, 29, 39, 49, 69, 45, 24],
        "host": ["h"] * 7 + ["other"],
        "value": [0.2, 0.97, 0.5, 0.96, 0.4, 0.3, None, 0.1],
        "name": ["x"] * 8,
    }
)
QUERY = "PATTERN SEQ(Cpu a, End b) WHERE [host] AND a.value > 95% WITHIN 60"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.value > 95%", [("a", "value", ">", 0.95)]),
        ("3 >= a.value AND b.value < 2", [("a", "value", "<=", 3.0), ("b", "value", "<", 2.0)]),
        ("(a.value > 1 AND a.value <= 9)", [("a", "value", ">", 1.0), ("a", "value", "<=", 9.0)]),
        ("a.value > 1 OR b.value > 2", []),
        ("NOT a.value > 1", []),
        ("a.value > b.value AND a.name > 'x' AND a.value = 2", []),
        ("TIME(b) - TIME(a) > 3 AND a.value * 2 > 1", []),
    ],
)
def test_thresholds_are_what_must_hold(where: str, expected: list[tuple[str, str, str, float]]) -> None:
    plan = make_plan(
        parse(f"PATTERN SEQ(Cpu a, End b) WHERE {where} WITHIN 9"), EVENTS.schema, MatchOptions()
    )
    types = {"a": ("Cpu",), "b": ("End",)}
    assert thresholds_of(plan, EVENTS.schema) == [
        Threshold(variable, types[variable], attribute, operator, value)
        for variable, attribute, operator, value in expected
    ]


NUMBER = r"([\d.]+)"


def test_a_step_line_is_as_high_as_its_numbers(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(EVENTS, f"{QUERY} ORDER BY CONFIDENCE DESC", path)
    page = shown.open(path)
    best = uc.match(EVENTS, f"{QUERY} ORDER BY CONFIDENCE DESC").to_pylist()[0]
    line = page.locator("#example svg path.metric")
    expect(line).to_have_count(1)
    said = str(line.locator("title").text_content())
    # The host's periods that can be within the match: not those of another host, nor after its end.
    in_lane = [row for row in EVENTS.to_pylist() if row["type"] == "Cpu" and row["host"] == "h"]
    low, high = best["range_lower"], max(row["upper"] for row in EVENTS.to_pylist() if row["id"] == best["b"])
    around = [row for row in in_lane if row["upper"] >= low and row["lower"] <= high]
    assert said == "Cpu value: " + "; ".join(
        f"{row['value']:g} from {row['lower']} to {row['upper']}" for row in around
    )
    heights = [
        float(y) for y, _ in re.findall(rf"(?:V|M[\d.]+ ){NUMBER}H{NUMBER}", str(line.get_attribute("d")))
    ]
    rule = page.locator("#example svg line.threshold")
    limit = float(str(rule.get_attribute("y1")))
    assert rule.locator("title").text_content() == "value > 0.95"
    values = [row["value"] for row in around]
    scale = (max(heights) - min(heights)) / (max(values) - min(values))
    for y, value in zip(heights, values, strict=True):
        assert limit - y == pytest.approx((value - 0.95) * scale, abs=0.01)
    expect(page.locator("#example svg line.member")).to_have_count(1)


def test_what_overlaps_is_no_series(shown: Shown, tmp_path: Path) -> None:
    wide = EVENTS.set_column(4, "host", pa.array(["h"] * 8))
    path = tmp_path / "page.html"
    uc.report(wide, QUERY, path)
    page = shown.open(path)
    expect(page.locator("#example svg .interval")).to_have_count(2)
    expect(page.locator("path.metric")).to_have_count(0)
