"""Reports are right: totals, charts, the comparison with raw stamps, and values that stay values."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note, settings

import uncertain_cep as uc
from tests.cases.nested import NestedCase, nested_cases
from tests.reporting.pages import data_of, values
from uncertain_cep.config.limits import SHOWN_MATCHES
from uncertain_cep.errors import OptionError, TimeLimitError
from uncertain_cep.reporting.gathered import PARTS
from uncertain_cep.reporting.round_lengths import MOMENTS

HOSTILE = "</script><img src=x onerror=alert(1)>{title}"

EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "N"],
        "id": [1, 2, 3, 4, 5],
        "lower": [0, 2, 20, 26, 21],
        "upper": [9, 12, 20, 26, 28],
        "at": pa.array([10, 3, 20, 26, None], pa.int64()),
        "host": ["h1", "h1", HOSTILE, HOSTILE, HOSTILE],
        "load": [0.5, None, 3.25, 1e300, float("nan")],
    }
)
QUERY = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 30"


def test_events_of_one_clock_are_told() -> None:
    times = {"lower": [0, 2, 20, 26, 21], "upper": [9, 11, 20, 26, 28], "offset_lower": [-4, -4, 0, 0, 0]}
    table = EVENTS.append_column("source", pa.array(["h1", "h1", None, None, None]))
    table = table.append_column("offset_upper", pa.array([5, 5, None, None, None]))
    for name, values_ in times.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, pa.array(values_))
    page = str(uc.report(table, QUERY, stamp="at"))
    facts = data_of(page)
    assert facts["totals"]["certain"] == 2
    events = facts["events"]
    assert dict(zip(events["id"], events["clock"], strict=True)) == {
        1: "h1",
        2: "h1",
        3: None,
        4: None,
        5: None,
    }
    assert events["read"][:2] == [True, True]
    assert [one["name"] for one in events["attributes"]] == ["host", "load"]
    assert "2 events of 1 clock: events of one clock move together" in page
    # By their stamps, turned round, the first two are no match.
    assert facts["raw"]["missed"] == 1
    alone = data_of(uc.report(table, QUERY, sources=False))
    assert alone["totals"]["certain"] == 1
    assert set(alone["events"]["clock"]) == {None}


def test_totals_charts_and_rows() -> None:
    facts = data_of(uc.report(EVENTS, QUERY))
    matches = uc.match(EVENTS, f"{QUERY} ORDER BY CONFIDENCE DESC")
    assert matches.num_rows == 2
    assert facts["totals"]["matches"] == 2
    assert facts["totals"]["expected"] == pytest.approx(sum(matches["confidence"].to_pylist()))
    assert facts["totals"]["certain"] == 1
    assert sum(facts["histogram"]) == 2
    assert facts["histogram"][-1] == 1
    assert sum(facts["moments"]["count"]) == 2
    assert len(facts["moments"]["count"]) <= MOMENTS
    assert values(facts["columns"], "confidence") == pytest.approx(matches["confidence"].to_pylist())
    assert values(facts["columns"], "a") == matches["a"].to_pylist()
    assert values(facts["columns"], "range_lower") == matches["range_lower"].to_pylist()
    assert [one["name"] for one in facts["columns"]][:4] == [
        "confidence",
        "range_lower",
        "range_upper",
        "host",
    ]
    events = facts["events"]
    for number, (drawn, spoiling) in enumerate(facts["found_drawn"]):
        assert [variable for variable, *_ in drawn] == ["a", "b"]
        assert [events["id"][place] for _, place, *_ in drawn] == [
            values(facts["columns"], name)[number] for name in ("a", "b")
        ]
        assert all(0 < len(shades) <= PARTS and "z" in shades for _, _, shades, *_ in drawn)
        assert spoiling == []
    load = next(one["values"] for one in events["attributes"] if one["name"] == "load")
    assert [load[events["id"].index(id)] for id in (1, 2, 3)] == [0.5, None, 3.25]


def test_a_page_may_load_send_and_frame_nothing() -> None:
    html = str(uc.report(EVENTS, QUERY, title=HOSTILE))
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    assert {directive.split()[0]: directive.split()[1:] for directive in policy.split("; ")} == {
        "default-src": ["'none'"],
        "style-src": ["'unsafe-inline'"],
        "script-src": ["'unsafe-inline'"],
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    # It comes before anything that it is to hold for.
    assert html.index(policy) < html.index("<title>") < html.index("<style>") < html.index("<script")


def test_a_column_of_true_times_says_how_often_answers_happened() -> None:
    for query in (QUERY, f"{QUERY} RETURN PROBABILITY BY host"):
        result = uc.calibration(uc.match(EVENTS, query), "at", events=EVENTS, query=query)
        shown = data_of(uc.report(EVENTS, query, truth="at"))["calibration"]
        assert shown == {"sentence": result.sentence, "bins": result.bins.to_pylist()}
        assert result.count == 2
        assert result.happened == 1
    assert data_of(uc.report(EVENTS, QUERY))["calibration"] is None
    with pytest.raises(OptionError, match="no column nowhere"):
        uc.report(EVENTS, QUERY, truth="nowhere")


def test_raw_stamps_miss_and_invent() -> None:
    """By its stamps the first B is before its A; a stamp in the middle may order what cannot be so."""
    facts = data_of(uc.report(EVENTS, QUERY, stamp="at"))
    assert facts["raw"] == {"matches": 1, "missed": 1, "invented": 0, "stamped": 4}
    assert facts["compared"] == [True, False]
    assert values(facts["missed"], "a") == [1]
    late = pa.table(
        {"type": ["A", "B"], "id": [1, 2], "lower": [5, 5], "upper": [9, 5], "at": [1, 5], "host": ["h", "h"]}
    )
    invented = data_of(uc.report(late, QUERY, stamp="at"))
    assert invented["raw"] == {"matches": 1, "missed": 0, "invented": 1, "stamped": 2}
    assert invented["totals"]["matches"] == 0
    assert values(invented["invented"], "b") == [2]
    assert [place for _, place, *_ in invented["invented_drawn"][0][0]] == [0, 1]


def test_events_that_could_come_between_are_drawn() -> None:
    facts = data_of(uc.report(EVENTS, "PATTERN SEQ(A a, !N n, B b) WITHIN 30"))
    ends = zip(values(facts["columns"], "a"), values(facts["columns"], "b"), strict=True)
    between = {
        pair: [facts["events"]["id"][place] for place in spoiling]
        for pair, (_, spoiling) in zip(ends, facts["found_drawn"], strict=True)
    }
    assert between == {(1, 2): [], (3, 4): [5], (1, 4): [5]}


def test_the_factors_of_all_matches_are_those_of_why() -> None:
    """Of the match that raw stamps miss, too."""
    facts = data_of(uc.report(EVENTS, QUERY, stamp="at"))
    for name, columns in (("found", facts["columns"]), ("missed", facts["missed"])):
        for group in facts[f"{name}_why"]:
            assert group["what"] == ["a before b", "all within 30 ticks"]
            for k, n in enumerate(group["match"]):
                row = {one: values(columns, one)[n] for one in ("host", "a", "b", "confidence")}
                result = uc.why(row, EVENTS, QUERY)
                assert result.confidence == row["confidence"]
                assert [line[k] for line in group["product"]] == pytest.approx(
                    [factor.product for factor in result.factors[:-1]], rel=1e-6
                )
    assert [group["match"] for group in facts["found_why"]] == [[0, 1]]
    assert data_of(uc.report(EVENTS.slice(0, 1), QUERY))["found_why"] == []


def test_values_of_a_trace_are_text() -> None:
    page = str(uc.report(EVENTS, QUERY, title=HOSTILE))
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;{title}" in page
    assert HOSTILE in values(data_of(page)["columns"], "host")
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_times_of_any_unit_and_size() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 10 seconds"
    seconds = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": pa.array([10, 12], pa.timestamp("s")),
            "upper": pa.array([13, 15], pa.timestamp("s")),
        }
    )
    facts = data_of(uc.report(seconds, query))
    assert facts["raw"] == {"matches": 1, "missed": 0, "invented": 0, "stamped": 0}
    assert facts["clock"]["tick"] == 1
    late = EVENTS.set_column(2, "lower", pa.array([2**60 + k for k in (0, 2, 20, 26, 21)]))
    late = late.set_column(3, "upper", pa.array([2**60 + k for k in (9, 12, 20, 26, 28)]))
    facts = data_of(uc.report(late, QUERY))
    assert facts["clock"] == {"kind": "tick", "origin": str(2**60)}
    assert values(facts["columns"], "range_lower") == [20, 0]


def test_nothing_found_says_why() -> None:
    facts = data_of(uc.report(EVENTS, "PATTERN SEQ(A a, B b) WHERE a.load > 99 WITHIN 30"))
    assert facts["totals"]["matches"] == 0
    assert facts["nothing"] == "Candidates: a 0, b 2. Without a.load > 99 there would be matches."
    assert facts["moments"] is None


def test_the_question_in_words() -> None:
    query = """-- Does load follow?
    PATTERN SEQ(A a, !N n, OR(B b, AND(B c, (A|N) d)))
    WHERE a.load > 1 WITHIN 30 HAVING CONFIDENCE >= 0.25 ORDER BY CONFIDENCE DESC LIMIT 7"""
    page = str(uc.report(EVENTS, query))
    assert "<h1>Does load follow?</h1>" in page
    words = re.search(r'<p class="words">(.*?)</p>', page)
    assert words is not None
    assert words[1] == (
        "A (a), then no N (n) there, then either B (b) or B (c) and A or N (d) in any order, "
        "all within 30 ticks. "
        "It holds that a.load &gt; 1. Other events in between do not matter. "
        "Only matches of a probability of at least 0.25. At most 7 best matches."
    )


def test_files_frames_and_limits(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page = uc.report(EVENTS.to_pandas(), QUERY, path)
    assert path.read_text(encoding="utf-8") == str(page)
    assert data_of(uc.report(pl.from_arrow(EVENTS), QUERY))["totals"] == data_of(page)["totals"]
    with pytest.raises(OptionError, match="returns expected counts"):
        uc.report(EVENTS, f"{QUERY} RETURN EXPECTED COUNT")
    with pytest.raises(OptionError, match="the events have no column when"):
        uc.report(EVENTS, QUERY, stamp="when")
    with pytest.raises(OptionError, match="raw stamps are of the type of the times"):
        uc.report(EVENTS, QUERY, stamp="host")
    with pytest.raises(TimeLimitError):
        uc.report(EVENTS, QUERY, timeout=1e-9)


def test_a_report_is_shown_in_notebooks_and_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    page = uc.report(EVENTS, QUERY, path, title=HOSTILE)
    assert page.path == path
    assert repr(page).startswith(f"<report of 2 matches, 1.7 expected in {path}; ")
    assert uc.report(EVENTS, QUERY).path is None
    (frame,) = re.findall('srcdoc="([^"]*)"', page._repr_html_())
    assert unescape(frame) == str(page)
    assert "<script" not in page._repr_html_()


def test_a_file_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(OptionError, match=r"page\.html is there already.*overwrite=True"):
        uc.report(EVENTS, QUERY, path)
    with pytest.raises(OptionError, match="is a folder: name a file"):
        uc.report(EVENTS, QUERY, tmp_path, overwrite=True)
    with pytest.raises(OptionError, match="no column when"):
        uc.report(EVENTS, QUERY, path, stamp="when", overwrite=True)
    assert path.read_text() == "mine"
    page = uc.report(EVENTS, QUERY, path, overwrite=True)
    assert path.read_text(encoding="utf-8") == str(page)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_raw_stamps_may_be_of_a_finer_unit_than_times(unit: str) -> None:
    seconds = pa.timestamp("s", "UTC")
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "host": ["h", "h"],
                       "lower": pa.array([5, 5], seconds), "upper": pa.array([9, 7], seconds),
                       "at": pa.array([6_500_000_000, 6 * 10**9], pa.timestamp("ns", "UTC"))})  # fmt: skip
    at = events.column("at").cast(pa.timestamp(unit, "UTC"), safe=False)
    events = events.set_column(5, "at", at)
    query = "PATTERN SEQ(A a, B b) WITHIN 9 s"
    assert data_of(uc.report(events, query, stamp="at"))["events"]["stamp"] == [
        1_000_000 if unit == "s" else 1_500_000,
        1_000_000,
    ]
    bare = events.set_column(5, "at", at.cast(pa.timestamp(unit)))
    with pytest.raises(OptionError, match="the times have a time zone, and the stamps have none"):
        uc.report(bare, query, stamp="at")


def many(count: int) -> pa.Table:
    """Return events of which every A and every B of a host are a match."""
    size = int(np.sqrt(count)) + 1
    begin = np.arange(2 * size) * 10**6
    return pa.table(
        {
            "type": ["A"] * size + ["B"] * size,
            "id": [f"event-{k:06}" for k in range(2 * size)],
            "lower": pa.array(begin, pa.timestamp("us", "UTC")),
            "upper": pa.array(begin + np.arange(2 * size) % 7 * 10**6, pa.timestamp("us", "UTC")),
            "host": ["one host of a cluster"] * (2 * size),
            "message": [f"what the log says of number {k}" for k in range(2 * size)],
        }
    )


def test_a_page_of_many_matches_is_small() -> None:
    table = many(SHOWN_MATCHES)
    page = uc.report(table, "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 1 day")
    facts = data_of(page)
    assert facts["totals"]["matches"] > SHOWN_MATCHES == len(values(facts["columns"], "a"))
    assert len(str(page).encode()) < 1_000_000


@settings(max_examples=15)
@given(nested_cases("SAO"))
def test_any_answer_has_a_report(case: NestedCase) -> None:
    note(case.text())
    facts = data_of(uc.report(case.trace.table(), case.text()))
    assert facts["totals"]["matches"] == len(case.answer())
