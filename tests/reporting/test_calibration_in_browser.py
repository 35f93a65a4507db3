"""The chart of how often answers happened: each point stands where the numbers of uc.calibration say."""

from __future__ import annotations

from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown
from tests.reporting.test_facts import many
from uncertain_cep.plan import MatchOptions
from uncertain_cep.query import parse
from uncertain_cep.reporting.facts import report_facts
from uncertain_cep.reporting.gathered import ReportRequest, gathered
from uncertain_cep.reporting.page import page_of

try:
    from playwright.sync_api import expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

QUERY = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 12 s"


def test_points_stand_where_the_numbers_say(shown: Shown, tmp_path: Path) -> None:
    table = many(100)
    matches = uc.match(table, QUERY)
    happened = [number % 3 == 0 for number in range(matches.num_rows)]
    result = uc.calibration(matches, happened)
    request = ReportRequest(parse(QUERY), MatchOptions(), None, calibration=result)
    path = tmp_path / "page.html"
    path.write_text(page_of(report_facts(request, gathered(request, table))), encoding="utf-8")
    page = shown.open(path)
    panel = page.locator("#charts .panel", has_text="Did it happen as often as said?")
    expect(panel).to_contain_text(result.sentence)
    rows = result.bins.to_pylist()
    assert len(rows) > 1
    diagonal = panel.locator("line.diagonal")
    left, right, bottom, top = (float(str(diagonal.get_attribute(name))) for name in ("x1", "x2", "y1", "y2"))
    points = panel.locator("circle.point")
    expect(points).to_have_count(len(rows))
    for point, whisker, row in zip(points.all(), panel.locator("line.whisker").all(), rows, strict=True):
        x, y = (float(str(point.get_attribute(name))) for name in ("cx", "cy"))
        assert (x - left) / (right - left) == pytest.approx(row["said"])
        assert (y - bottom) / (top - bottom) == pytest.approx(row["happened"])
        ends = [float(str(whisker.get_attribute(name))) for name in ("y1", "y2")]
        shares = [(end - bottom) / (top - bottom) for end in ends]
        assert shares == pytest.approx(
            [max(row["happened"] - row["std_error"], 0), min(row["happened"] + row["std_error"], 1)]
        )
        assert f"{row['answers']:,} answer" in str(point.get_attribute("aria-label"))
