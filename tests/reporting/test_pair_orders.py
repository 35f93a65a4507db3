"""The order of events as a graph: of matches and groups it says what ``uc.order`` says, as its table does."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from tests.needs import lacking
from tests.reporting.pages import Shown, data_of
from tests.reporting.test_shared_events import EVENTS, QUERY
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.results.display import percent

try:
    from playwright.sync_api import expect
except ImportError:
    lacking("packages", "no playwright: install the extra dev to look at pages", whole_file=True)

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "options": option_cases(most=4),
    "clocks": by_clocks(option_cases(most=4)),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_pairs_of_a_page_are_those_of_order(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    table = case.trace.table()
    # Partitions may have ids in common, and the pairs are compared by id.
    assume(len(table["id"].unique()) == table.num_rows)
    note(f"{case.text()}\n{table.to_pydict()}")
    facts = data_of(uc.report(table, case.text()))
    events, orders = facts["events"], facts["orders"]
    expected = {}
    for row in uc.order(table, pairs="all").to_pylist():
        expected[row["x"], row["y"]] = row["before"], row["after"]
        expected[row["y"], row["x"]] = row["after"], row["before"]
    pairs = {}
    if orders is not None:
        for x, y, before, after in zip(
            *(orders[name] for name in ("x", "y", "before", "after")), strict=True
        ):
            pairs[x, y] = before, after
            exact = expected[events["id"][x], events["id"][y]]
            assert (before, after) == pytest.approx(exact, rel=1e-3, abs=1e-15)
            assert [p >= CERTAIN for p in (before, after)] == [p >= CERTAIN for p in exact]
    for members, spoiling in facts["found_drawn"]:
        places = list(dict.fromkeys([*(place for _, place, *_ in members), *spoiling]))[:8]
        assert all(pair in pairs for pair in combinations(sorted(places), 2))


CERTAIN_AND_OPEN = pa.table(
    {
        "type": ["A", "A", "B", "C"],
        "id": [1, 2, 3, 4],
        "lower": [0, 1, 20, 22],
        "upper": [5, 7, 30, 31],
        "host": ["h", "h", "h", "h"],
    }
)


def test_certain_orders_are_solid_and_open_ones_say_how_likely(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(CERTAIN_AND_OPEN, "PATTERN SEQ(A a, B b, C c) WHERE [host] WITHIN 40", path)
    page = shown.open(path)
    page.locator("#groups button.group").first.click()
    graph = page.locator("#groups details", has_text="Which was first?")
    graph.locator("summary").press("Enter")
    order = {(row["x"], row["y"]): row for row in uc.order(CERTAIN_AND_OPEN, pairs="all").to_pylist()}
    cover = uc.order(CERTAIN_AND_OPEN, pairs="cover").to_pylist()
    rows = [row.locator("td").all_inner_texts() for row in graph.locator("tbody tr").all()]
    names = {1: "a A 1", 2: "a A 2", 3: "b B 3", 4: "c C 4"}
    said = {(first, then): (p, other, neither) for first, then, p, other, neither in rows}
    assert {pair for pair, (p, *_) in said.items() if p == "certain"} == {
        (names[row["x"]], names[row["y"]]) for row in cover
    }
    for x, y in ((1, 2), (3, 4)):
        row = order[x, y]
        assert said[names[x], names[y]] == tuple(
            percent(row[name]) for name in ("before", "after", "neither")
        )
    assert len(rows) == len(cover) + 2
    expect(graph.locator("path.order:not(.open)")).to_have_count(len(cover))
    expect(graph.locator("path.order.open")).to_have_count(2)
    assert graph.locator("text.chance").all_text_contents() == [
        percent(order[1, 2]["before"]),
        percent(order[3, 4]["before"]),
    ]
    # Each likely order goes down.
    ends = graph.locator("path.order").evaluate_all(
        "all => all.map(one => [one.getPointAtLength(0).y, one.getPointAtLength(one.getTotalLength()).y])"
    )
    assert all(first < then for first, then in ends)


def test_events_of_a_group_are_one_graph(shown: Shown, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    uc.report(EVENTS, QUERY, path)
    page = shown.open(path)
    page.locator("#groups button.group").first.click()
    graph = page.locator("#groups > .groups details", has_text="Which was first?")
    graph.locator("summary").click()
    expect(graph.locator("svg.orders circle")).to_have_count(5)
    expect(page.locator("#example details", has_text="Which was first?")).to_have_count(1)
