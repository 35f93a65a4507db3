"""The page of a report in a real browser: it shows, sorts, filters, opens and obeys the keyboard."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown, data_of
from tests.reporting.test_facts import EVENTS, HOSTILE, QUERY, many
from tests.reporting.test_numbers import stamped_trace
from tests.reporting.test_occurrences import EVENTS as KEYED
from tests.reporting.test_shared_events import EVENTS as SHARED
from tests.reporting.test_shared_events import QUERY as SHARING
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.reporting import gathered
from uncertain_cep.results.display import percent, shown_times

try:
    from playwright.sync_api import Browser, Page, expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

MANY = 400
MOST_NODES = 30_000
PROCESSOR_SECONDS = 60.0
"""What a page may take on a slow machine; each match as a row of it would be a million nodes."""


@pytest.fixture(scope="module")
def hundreds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "hundreds.html"
    uc.report(many(MANY), "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 1 day RETURN b.message AS message", path)
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.html"
    uc.report(EVENTS, QUERY, path, stamp="at", title=HOSTILE)
    return path


def first_column(page: Page, number: int) -> list[str]:
    return page.locator(f"#matches tbody tr.row td:nth-child({number})").all_inner_texts()


def test_the_first_screen(shown: Shown, small: Path) -> None:
    page = shown.open(small)
    expect(page.locator("#totals")).to_contain_text("2 possible matches")
    expect(page.locator("#totals")).to_contain_text("1 likely match would have been missed")
    expect(page.locator("#example")).to_contain_text("B b is stamped before A a")
    assert page.locator("#example svg .interval").count() == 2
    assert page.locator("#example svg .stamp").count() == 2


def test_values_of_the_trace_are_text(shown: Shown, small: Path) -> None:
    page = shown.open(small)
    assert page.locator("img").count() == 0
    expect(page.locator("h1")).to_have_text(HOSTILE)
    assert HOSTILE in page.locator("#matches").inner_text()
    page.locator("tr.row").nth(0).click()
    assert HOSTILE in page.locator("#matches table.events").inner_text()


def test_sorting(shown: Shown, hundreds: Path) -> None:
    page = shown.open(hundreds)
    ids = first_column(page, 7)
    page.get_by_role("button", name="b", exact=True).click()
    up = first_column(page, 7)
    assert up == sorted(up) != ids
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.get_by_role("button", name=re.compile("^b ")).click()
    assert first_column(page, 7) == sorted(first_column(page, 7), reverse=True)
    page.get_by_role("button", name=re.compile("^to")).click()
    assert page.locator("th[aria-sort]").inner_text().startswith("to")


def test_searching_and_filtering(shown: Shown, hundreds: Path) -> None:
    page = shown.open(hundreds)
    info = page.locator("#matches .pages .note")
    expect(info).to_contain_text("of 441")
    page.keyboard.press("/")
    page.keyboard.type("EVENT-000041")
    expect(info).to_contain_text("of 21")
    assert set(first_column(page, 7)) == {"event-000041"}
    page.get_by_label("Search", exact=True).fill("")
    bars = page.locator("#charts .panel").nth(0).locator("[role=button]")
    bars.nth(0).click()
    expect(page.locator(".chips button")).to_have_count(1)
    expect(info).not_to_contain_text("of 441")
    page.locator(".chips button").click()
    expect(info).to_contain_text("of 441")
    page.get_by_label("Least probability").fill("100")
    assert {text.strip() for text in first_column(page, 1)} == {"certain"}
    page.get_by_label("Search", exact=True).fill("no such thing")
    expect(info).to_have_text("No match is like that.")


def test_pages(shown: Shown, hundreds: Path) -> None:
    page = shown.open(hundreds)
    seen = list(zip(first_column(page, 6), first_column(page, 7), strict=True))
    assert page.locator("#matches").get_by_role("button", name="Previous").is_disabled()
    while page.locator("#matches").get_by_role("button", name="Next").is_enabled():
        page.locator("#matches").get_by_role("button", name="Next").click()
        seen += zip(first_column(page, 6), first_column(page, 7), strict=True)
    assert len(seen) == len(set(seen)) == 441


def test_a_click_opens_a_match_and_closes_it(shown: Shown, hundreds: Path) -> None:
    page = shown.open(hundreds)
    row = page.locator("tr.row").nth(3)
    row.click()
    expect(row).to_have_attribute("aria-expanded", "true")
    panel = page.locator("tr.panel-row")
    assert panel.locator("svg .interval").count() == 2
    expect(panel.locator("table.events")).to_contain_text("what the log says of number")
    row.click()
    expect(panel).to_have_count(0)


def test_the_keyboard_alone(shown: Shown, hundreds: Path) -> None:
    page = shown.open(hundreds)
    page.locator("tr.row").nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("tr.row").nth(1)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press(" ")
    expect(page.locator("tr.panel-row")).to_have_count(0)
    bar = page.locator("#charts [role=button]").first
    bar.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".chips button")).to_have_count(1)
    page.locator("#about summary").nth(0).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#about pre").nth(0)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light(browser: Browser, small: Path, scheme: str) -> None:
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = Shown(context.new_page()).open(small)
    paint = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
    assert (sum(page.evaluate(paint)) < 200) == (scheme == "dark")
    page.locator("button.theme").click()
    assert (sum(page.evaluate(paint)) < 200) == (scheme == "light")
    context.close()


def test_a_phone_and_a_printer(browser: Browser, small: Path) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = Shown(context.new_page()).open(small)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(media="print")
    assert not page.locator("#matches .controls").is_visible()
    assert page.locator("#matches tbody tr.row").count() == 2
    context.close()


def test_what_raw_stamps_invent(shown: Shown, tmp_path: Path) -> None:
    table = pa.table(
        {"type": ["A", "B"], "id": [1, 2], "lower": [5, 5], "upper": [9, 5], "at": [1, 5], "host": ["h", "h"]}
    )
    path = tmp_path / "invented.html"
    uc.report(table, QUERY, path, stamp="at")
    page = shown.open(path)
    expect(page.locator("#example")).to_contain_text("Invented by raw stamps")
    assert page.locator("#matches tr.row").count() == 1


def test_without_stamps_the_page_speaks_of_interval_middles(shown: Shown, tmp_path: Path) -> None:
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 5], "upper": [8, 9], "host": ["h", "h"]})
    uc.report(table, QUERY, tmp_path / "report.html")
    page = shown.open(tmp_path / "report.html")
    expect(page.locator("#totals")).to_contain_text("On interval middles there is 1 match")
    expect(page.locator("#totals")).not_to_contain_text("aw stamps")


def test_one_clock_is_told(shown: Shown, tmp_path: Path) -> None:
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [5, 7], "upper": [15, 17],
                       "source": ["h", "h"], "offset_lower": [-5, -5], "offset_upper": [5, 5]})  # fmt: skip
    uc.report(events, "PATTERN SEQ(A a, B b) WITHIN 5", tmp_path / "report.html")
    page = shown.open(tmp_path / "report.html")
    expect(page.locator("#example > .note")).to_contain_text("a, b: same clock, h, certain order.")


def test_a_limit_is_told(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "limited.html"
    uc.report(EVENTS, f"{QUERY} ORDER BY CONFIDENCE DESC LIMIT 1", path)
    expect(shown.open(path).locator("#totals")).to_contain_text("The query asks for no more.")


def test_types_of_a_variable_filter(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "types.html"
    uc.report(EVENTS, "PATTERN SEQ(A a, (B|N) b) WITHIN 30", path)
    page = shown.open(path)
    panel = page.locator("#charts .panel").filter(has_text="By type of b")
    before = page.locator("tr.row").count()
    panel.get_by_role("button", name=re.compile("^N: ")).click()
    expect(page.locator(".chips button")).to_have_count(1)
    assert 0 < page.locator("tr.row").count() < before


def test_ten_thousand_matches_open_quickly(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    uc.report(many(10_000), "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 1 day", path)
    page = browser.new_page()
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")
    Shown(page).open(path)
    metrics = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
    assert metrics["Nodes"] < MOST_NODES
    assert metrics["ProcessTime"] < PROCESSOR_SECONDS
    page.close()


DAYS = pa.timestamp("s")
START = 1_767_254_400
"""2026-01-01 08:00."""


def times_of(events: list[tuple[int, int]], unit: pa.DataType = DAYS) -> pa.Table:
    """Return an A and a B in turn, between seconds behind the start, with many columns."""
    lower, upper = ([START + second for second in side] for side in zip(*events, strict=True))
    count = len(events)
    wide = {f"column {k}": ["some words of a log"] * count for k in range(22)}
    return pa.table(
        {
            "type": ["A", "B"] * (count // 2),
            "id": list(range(count)),
            "lower": pa.array(lower, DAYS).cast(unit),
            "upper": pa.array(upper, DAYS).cast(unit),
            **wide,
        }
    )


BOXES = """svgs => svgs.map(svg => [...svg.querySelectorAll("text.tick")].map(text => {
  const box = text.getBoundingClientRect(), own = svg.getBoundingClientRect();
  return [box.left - own.left, box.right - own.left, own.width, box.height, Number(text.dataset.at)];
}))"""


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize(
    ("events", "steps"),
    [
        ([(0, 52), (5, 60)], (5, 10, 15, 20, 30)),
        ([(0, 0), (1, 3)], (0.2, 0.5, 1, 2)),
        ([(0, 86_400 * 3), (7200, 86_400 * 4)], (21_600, 43_200, 86_400, 172_800)),
        ([(0, 3000), (100, 4000)], (300, 600, 900, 1800)),
    ],
)
def test_axes_have_marks_at_round_times_with_room(
    browser: Browser, tmp_path: Path, events: list[tuple[int, int]], steps: tuple[float, ...], width: int
) -> None:
    path = tmp_path / "axes.html"
    uc.report(times_of(events), "PATTERN SEQ(A a, B b) WITHIN 9 days", path)
    page = browser.new_page(viewport={"width": width, "height": 900})
    shown = Shown(page)
    shown.open(path)
    (labels,) = [boxes for boxes in page.locator("#example svg").evaluate_all(BOXES) if boxes]
    assert len(labels) >= 2
    assert all(right + 2 < left for (_, right, *_), (left, *_) in itertools.pairwise(labels))
    assert all(left >= -1 and right <= whole + 1 for left, right, whole, _, _ in labels)
    at = [nanoseconds / 1e9 for *_, nanoseconds in labels]
    (step,) = {round(second - first, 3) for first, second in itertools.pairwise(at)}
    assert step in steps
    assert all(abs(second / step - round(second / step)) < 1e-6 for second in at)
    # A mark stands where its time is: between the ends of the first bar, by proportion.
    low, high = events[0]
    ends = "bars => bars.map(bar => [bar.x.baseVal.value, bar.x.baseVal.value + bar.width.baseVal.value])"
    left, right = page.locator("#example svg .interval").evaluate_all(ends)[0]
    places = page.locator("#example svg line.mark").evaluate_all(
        "marks => marks.map(mark => mark.x1.baseVal.value)"
    )
    if high > low:
        for place, second in zip(places, at, strict=True):
            share = (second - START - low) / (high - low)
            assert place == pytest.approx(left + share * (right - left), abs=0.5)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.faults == []
    page.close()


def test_days_are_told_where_there_are_several(shown: Shown, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 1 hour"
    path = tmp_path / "days.html"
    uc.report(times_of([(0, 5), (9, 9), (100_000, 100_005), (100_009, 100_009)]), query, path)
    page = shown.open(path)
    assert {text[:10] for text in first_column(page, 2)} == {"2026-01-01", "2026-01-02"}
    page.locator("tr.row").nth(0).click()
    assert "2026-01-0" in page.locator("#matches table.events td.time").nth(0).inner_text()
    uc.report(times_of([(0, 5), (9, 9)]), query, path, overwrite=True)
    page = shown.open(path)
    assert first_column(page, 2) == ["08:00:00"]
    expect(page.locator("#matches")).to_contain_text("All on 2026-01-01. A row")
    berlin = times_of([(0, 5), (9, 9)], pa.timestamp("s", "Europe/Berlin"))
    uc.report(berlin, query, path, overwrite=True)
    expect(shown.open(path).locator("#matches")).to_contain_text("All on 2026-01-01. Times are in UTC.")


def test_words_of_many_columns_stay_whole(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "wide.html"
    uc.report(times_of([(0, 5), (9, 9)]), "PATTERN SEQ(A a, B b) WITHIN 1 hour", path)
    page = shown.open(path)
    page.locator("tr.row").nth(0).click()
    cells = page.locator("#matches table.events .value")
    assert cells.count() == 44
    assert cells.evaluate_all("all => Math.max(...all.map(one => one.clientHeight))") < 45
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_uncertainty_is_told_as_the_distance_of_its_ends(shown: Shown, tmp_path: Path) -> None:
    """2 s before and behind are 4 s from first to last, not the 5 ticks between."""
    path = tmp_path / "width.html"
    uc.report(times_of([(0, 4), (9, 9)]), "PATTERN SEQ(A a, B b) WITHIN 1 hour", path, tick="1s")
    title = shown.open(path).locator("#example svg .interval title").nth(0)
    assert title.text_content() == "A 0: 08:00:00 to 08:00:04, 4 s later"


def test_a_comparison_without_the_limit_says_so(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "limited.html"
    events = times_of([(0, 0), (9, 9), (20, 20), (30, 30)])
    uc.report(events, "PATTERN SEQ(A a, B b) WITHIN 1 hour LIMIT 1", path)
    said = "On interval middles, without LIMIT, there are 3 matches: none is impossible"
    expect(shown.open(path).locator("#totals")).to_contain_text(said)


GROUPS = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 20"


def test_groups_open_their_matches_and_the_table_shows_them(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    by_event = f"{GROUPS} RETURN PROBABILITY BY host, a ORDER BY PROBABILITY DESC"
    uc.report(EVENTS, by_event, path)
    page = shown.open(path)
    rows = uc.match(EVENTS, by_event)
    group = page.locator("button.group").first
    first = rows.to_pylist()[0]
    expect(group.locator(".name")).to_have_text(f"{first['host']}, {first['a']}")
    expect(group).to_have_attribute("aria-expanded", "false")
    group.press("Enter")
    expect(group).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".group-matches:visible figure").first.locator("svg")).to_be_visible()
    group.click()
    expect(page.locator(".group-matches:visible")).to_have_count(0)
    page.get_by_label("Search groups").fill(f", {first['a']}")
    expect(page.locator("button.group")).to_have_count(1)
    page.get_by_label("Search groups").fill("no such group")
    expect(page.locator("button.group")).to_have_count(0)


def test_a_cell_of_the_heat_map_shows_its_matches(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    query = f"{GROUPS} RETURN PROBABILITY BY host EVERY 10"
    uc.report(EVENTS, query, path)
    page = shown.open(path)
    rows = uc.match(EVENTS, query)
    cells = page.locator("#groups rect.cell")
    expect(cells).to_have_count(rows.num_rows)
    assert sum("<img" in str(cells.nth(n).get_attribute("aria-label")) for n in range(rows.num_rows)) >= 1
    cells.first.press("Enter")
    expect(page.locator(".chips button")).to_have_count(1)
    expect(page.locator("#matches tr.row")).to_have_count(1)


def test_a_cell_of_key_and_time_shows_its_matches(shown: Shown, tmp_path: Path) -> None:
    """Cells have the expected matches by value and bar of time."""
    path = tmp_path / "page.html"
    table = stamped_trace(3)
    facts = data_of(uc.report(table, "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 9", path))
    (group,) = facts["groups"]
    page = shown.open(path)
    panel = page.locator("#maps .panel", has_text="By host and time")
    fullest = max(value for row in group["cells"] for value in row)
    note = re.search(r"up to ([0-9.]+)\.", panel.inner_text())
    assert note is not None
    assert float(note[1]) == pytest.approx(fullest, rel=0.005)
    cells = panel.locator("rect.cell")
    expect(cells).to_have_count(sum(value > 0 for row in group["cells"] for value in row))
    full = [float(str(one.get_attribute("fill-opacity"))) for one in cells.all()]
    drawn = [0.08 + 0.92 * value / fullest for row in group["cells"] for value in row if value > 0]
    assert full == pytest.approx(drawn)
    cell = cells.nth(full.index(max(full)))
    said = str(cell.get_attribute("aria-label"))
    cell.press("Enter")
    shares = page.locator("#matches tr.row td:first-child").all_inner_texts()
    expected = sum(1.0 if text == "certain" else float(text.split("%")[0]) / 100 for text in shares)
    assert expected == pytest.approx(fullest, abs=0.001 * len(shares))
    host = said.split(",")[0]
    assert set(first_column(page, 4)) == {host if host != "null" else ""}


def test_a_picture_is_one_stop_of_the_tab_key_and_has_its_numbers_as_a_table(
    shown: Shown, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    facts = data_of(uc.report(stamped_trace(3), "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 9", path))
    page = shown.open(path)
    pictures = page.locator("#charts svg, #maps svg")
    assert pictures.count() >= 4
    for n in range(pictures.count()):
        expect(pictures.nth(n).locator("[tabindex='0']")).to_have_count(1)
    cells = page.locator("#maps rect.cell")
    cells.first.focus()
    places = []
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        box = page.locator("#maps rect.cell:focus").bounding_box()
        assert box is not None
        places.append((box["x"], box["y"]))
    assert places[0][0] > places[-1][0]
    assert places[1][1] > places[0][1]
    assert places[2][1] == places[0][1] == places[-1][1]
    expect(page.locator("#maps [tabindex='0'].cell:focus")).to_have_count(1)
    tables = {}
    for panel in page.locator("#charts .panel, #maps .panel").all():
        panel.locator("summary", has_text="As a table").click()
        expect(panel.locator("tbody tr").first).to_be_visible()
        lines = panel.locator("tbody tr").all()
        tables[panel.locator("h2").inner_text()] = [
            line.locator("th, td").all_inner_texts() for line in lines
        ]
    assert [int(number) for _, number in tables["How sure?"]] == facts["histogram"]
    assert [int(number) for *_, number in tables["When?"]] == facts["moments"]["count"]
    (group,) = facts["groups"]
    assert [float(number) for *_, number in tables["By host and time"]] == pytest.approx(
        [value for row in group["cells"] for value in row if value > 0], rel=0.005
    )


def test_times_on_a_page_have_the_digits_that_the_library_shows(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    for unit, step, digits in (("ms", 250, ["", ".25", ".5"]), ("us", 1000, ["", ".001", ".002"])):
        times = [pa.array([k * step for k in ks], pa.timestamp(unit)) for ks in ((0, 1), (1, 2))]
        table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": times[0], "upper": times[1]})
        query = "PATTERN SEQ(A a, B b) WITHIN 1 minute"
        uc.report(table, query, path, overwrite=True)
        page = shown.open(path)
        page.locator("tr.row").click()
        ends = (
            " ".join(page.locator("#matches td.time").all_inner_texts()).replace("\N{EN DASH} ", "").split()
        )
        assert ends == [f"00:00:00{part}" for part in (digits[0], digits[1], digits[1], digits[2])]
        for column in (table["lower"], table["upper"]):
            assert {text.partition("T")[2] for text in shown_times(column)} < set(ends)


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_groups_fit(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    path = tmp_path / "page.html"
    uc.report(EVENTS, f"{GROUPS} RETURN PROBABILITY BY host EVERY 1", path)
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    Shown(page).open(path)
    page.locator("button.group").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_by_key_bars_are_as_long_as_a_match_is_likely(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(KEYED, GROUPS, path)
    page = shown.open(path)
    panel = page.locator("#charts .panel", has_text="By host: did it happen?")
    expect(panel.locator("rect.bar:not(.pale)")).to_have_count(2)
    probabilities = sorted(
        row["probability"] for row in uc.match(KEYED, f"{GROUPS} RETURN PROBABILITY BY host").to_pylist()
    )
    track = float(str(panel.locator("rect.track").first.get_attribute("width")))
    drawn = sorted(
        float(str(bar.get_attribute("width"))) / track for bar in panel.locator("rect.bar:not(.pale)").all()
    )
    assert drawn == pytest.approx(probabilities)


@pytest.mark.parametrize("weighed", [0, 100])
def test_by_key_a_chart_of_counts_says_what_it_lacks(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weighed: int
) -> None:
    monkeypatch.setattr(gathered, "WEIGHED_GROUPS", weighed)
    path = tmp_path / "page.html"
    query = "PATTERN SEQ(A a, (A|B) b) WHERE [host] WITHIN 40 HAVING CONFIDENCE >= 0.1"
    uc.report(KEYED, query, path)
    page = shown.open(path)
    said = "How likely there is at least one was not computed."
    panels = page.locator("#charts .panel")
    expect(panels.filter(has_text="By type of b")).not_to_contain_text(said)
    expect(panels.filter(has_text="By host")).to_contain_text("did it happen?" if weighed else said)
    expect(panels.filter(has_text=said)).to_have_count(0 if weighed else 1)


def test_the_factors_of_the_first_drawing_open(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(EVENTS, QUERY, path, stamp="at")
    page = shown.open(path)
    factors = page.locator("#example details.factors").first
    expect(factors.locator("tbody tr")).to_have_count(2)
    factors.locator("summary").press("Enter")
    expect(factors.locator("tbody tr").last).to_be_visible()
    expect(factors.locator("tbody tr").first).to_contain_text("a before b")


def test_the_factors_of_any_match_multiply_up_to_its_confidence(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    query = f"{QUERY} ORDER BY CONFIDENCE DESC"
    uc.report(EVENTS, query, path)
    page = shown.open(path)
    matches = uc.match(EVENTS, query)
    for n in range(matches.num_rows):
        page.locator("tr.row").nth(n).click()
        panel = page.locator("tr.panel-row").nth(n)
        lines = panel.locator("details.factors tbody tr")
        said = [[cell.strip() for cell in line.locator("th, td").all_text_contents()] for line in lines.all()]
        result = uc.why(matches.slice(n, 1), EVENTS, query)
        assert [(what, each, product) for what, each, _, product in said] == [
            (factor.what, percent(factor.probability), percent(factor.product)) for factor in result.factors
        ]


def test_percentages_are_those_of_the_library(shown: Shown, small: Path) -> None:
    page = shown.open(small)
    chances = [k / 1600 for k in range(1601)] + [CERTAIN, CERTAIN - 1e-9, 0.00049, 0.0005, 0.9995, 0.99949]
    facts = {"certain_from": CERTAIN, "clock": {"kind": "tick", "origin": "0"}}
    script = "([facts, all]) => { const { percent } = makeTools(facts); return all.map(percent); }"
    assert page.evaluate(script, [facts, chances]) == [percent(p) for p in chances]


def test_matches_that_share_events_are_one_row_that_opens(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(SHARED, SHARING, path)
    page = shown.open(path)
    group = page.locator("#groups button.group")
    expect(group).to_have_count(1)
    expect(group.locator(".name")).to_have_text("h, b B 5, c C 6")
    expect(group.locator(".decides")).to_contain_text("Most depends on when event")
    (probability,) = uc.match(SHARED, f"{SHARING} RETURN PROBABILITY BY b, c")["probability"].to_pylist()
    expect(group.locator("b")).to_have_text(percent(probability))
    expect(page.locator("#totals")).to_contain_text("In 1 group they share all events but a.")
    group.press("Enter")
    expect(page.locator("#groups figure")).to_have_count(3)
    page.get_by_role("button", name="All 3 in the table").click()
    expect(page.locator(".chips button")).to_have_count(1)
    expect(page.locator("tr.row")).to_have_count(3)
