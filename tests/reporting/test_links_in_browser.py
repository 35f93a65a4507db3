"""Links to a match and a filter, and what is shown as a file: what a person sends to others."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown, data_of
from tests.reporting.test_facts import EVENTS, HOSTILE, QUERY, many
from tests.reporting.test_numbers import stamped_trace

try:
    from playwright.sync_api import Page, expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)


def opened(shown: Shown, path: Path, fragment: str) -> Page:
    """Return a page at a fragment of its address, which is loaded anew."""
    shown.page.goto("about:blank")
    shown.page.goto(f"{path.as_uri()}#{fragment}")
    shown.page.wait_for_selector("html[data-ready]")
    return shown.page


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "few.html"
    uc.report(EVENTS, QUERY, path)
    return path


@pytest.fixture(scope="module")
def hundreds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "hundreds.html"
    uc.report(many(400), "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 1 day", path)
    return path


def test_a_link_opens_its_match_on_its_page(shown: Shown, hundreds: Path) -> None:
    page = shown.open(hundreds)
    page.locator("#matches").get_by_role("button", name="Next").click()
    row = page.locator("tr.row").nth(7)
    ids = row.locator("td").all_inner_texts()[-2:]
    row.click()
    link = str(page.locator(".panel-row a").get_attribute("href"))
    assert page.url.endswith(link)
    again = opened(shown, hundreds, link.removeprefix("#"))
    expect(again.locator("tr.row.open")).to_have_count(1)
    assert again.locator("tr.row.open td").all_inner_texts()[-2:] == ids
    expect(again.locator("#matches .pages .note")).to_contain_text("51 to 100")


def test_a_link_keeps_the_filter_of_a_key(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(EVENTS, QUERY, path)
    key = quote(json.dumps(["host", HOSTILE]))
    page = opened(shown, path, f"key={key}")
    expect(page.locator(".chips button")).to_have_text([f"host {HOSTILE} ✕"])
    expect(page.locator("tr.row")).to_have_count(1)
    page.locator(".chips button").click()
    expect(page.locator("tr.row")).to_have_count(2)
    assert "key=" not in page.url
    page = opened(shown, path, "least=0.99&search=h1")
    expect(page.locator("#matches .pages .note")).to_have_text("No match is like that.")


@pytest.mark.parametrize(
    "fragment",
    [
        "match=none", "key=%7B", "key=%5B1%2C2%5D", "set=missed", "least=x", "match=%5B%22", "sure=%5B99%5D",
        "when=x", "at=%5B1%5D", "group=%5B-1%5D", "sure=%7B%7D",
    ],
)  # fmt: skip
def test_links_that_lead_nowhere_show_the_page(shown: Shown, few: Path, fragment: str) -> None:
    page = opened(shown, few, fragment)
    expect(page.locator("tr.row")).to_have_count(2)
    expect(page.locator("tr.row.open")).to_have_count(0)
    expect(page.locator(".chips button")).to_have_count(0)


def test_links_keep_the_filters_of_bars_cells_and_groups(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    table = stamped_trace(3)
    uc.report(table, "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 30", path)
    chips, rows = shown.page.locator(".chips button"), shown.page.locator("#matches .pages .note")
    charts = [
        shown.page.locator(f"#charts .panel:has-text('{title}') rect.bar[role=button]").nth(1)
        for title in ("How sure?", "When?")
    ]
    cell = shown.page.locator("#maps rect.cell").nth(2)
    seen = []
    for part in (*charts, cell):
        page = shown.open(path)
        part.press("Enter")
        seen.append((chips.all_inner_texts(), rows.inner_text(), page.url))
    assert [address.split("#")[1].split("=")[0] for *_, address in seen] == ["sure", "when", "at"]
    for labels, said, address in seen:
        page = opened(shown, path, address.split("#")[1])
        assert (chips.all_inner_texts(), rows.inner_text(), page.url) == (labels, said, address)
        chips.click()
        expect(rows).not_to_have_text(said)
        assert "#" not in page.url
    # Two at once.
    both = "&".join(address.split("#")[1] for *_, address in seen[:2])
    opened(shown, path, both)
    expect(chips).to_have_count(2)


def test_a_link_keeps_the_filter_of_a_group(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    query = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 30 RETURN PROBABILITY BY host"
    groups = data_of(uc.report(stamped_trace(3), query, path))["occurrences"]
    page = opened(shown, path, "group=%5B1%5D")
    (key,) = groups["keys"]
    expect(page.locator(".chips button")).to_have_text([f"{key['values'][1]} ✕"])
    expect(page.locator("#matches .pages .note")).to_contain_text(f"of {groups['matches'][groups['key'][1]]}")
    assert page.url.endswith("#group=%5B1%5D")


def saved(page: Page, name: str) -> str:
    with page.expect_download() as download:
        page.get_by_role("button", name=name).click()
    return Path(str(download.value.path())).read_bytes().decode("utf-8")


def test_what_is_shown_is_saved_with_the_numbers_of_the_answer(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    query = f"{QUERY} ORDER BY CONFIDENCE DESC"
    uc.report(EVENTS, query, path)
    page = shown.open(path)
    rows = uc.match(EVENTS, query).to_pylist()
    records = json.loads(saved(page, "Save as JSON"))
    assert [{**row, "confidence": None} for row in records] == [
        {name: None if name == "confidence" else row[name] for name in records[0]} for row in rows
    ]
    assert [row["confidence"] for row in records] == pytest.approx(
        [row["confidence"] for row in rows], abs=1e-11
    )
    lines = list(csv.DictReader(io.StringIO(saved(page, "Save as CSV"))))
    assert [line["host"] for line in lines] == [row["host"] for row in rows]
    assert [int(line["range_upper"]) for line in lines] == [row["range_upper"] for row in rows]
    page.get_by_label("Search", exact=True).fill("h1")
    assert [row["host"] for row in json.loads(saved(page, "Save as JSON"))] == ["h1"]


def test_saved_times_are_those_of_the_answer_and_formulas_are_text(shown: Shown, tmp_path: Path) -> None:
    stamps = pa.timestamp("us", "UTC")
    events = pa.table(
        {
            "type": ["A", "B"],
            "id": ["=1+1", 'say "x", y'],
            "lower": pa.array([1_767_254_400_000_001, 1_767_254_402_000_000], stamps),
            "upper": pa.array([1_767_254_401_000_000, 1_767_254_402_000_000], stamps),
        }
    )
    path = tmp_path / "page.html"
    query = "PATTERN SEQ(A a, B b) WITHIN 1 min"
    uc.report(events, query, path)
    page = shown.open(path)
    (record,) = json.loads(saved(page, "Save as JSON"))
    (row,) = uc.match(events, query).to_pylist()
    assert record["range_lower"] == row["range_lower"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    (line,) = csv.DictReader(io.StringIO(saved(page, "Save as CSV")))
    assert (line["a"], line["b"]) == ("'=1+1", 'say "x", y')
