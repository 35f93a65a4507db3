"""Events around a match: those of its time and its lanes, as enumeration has them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.reporting.pages import data_of, values
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import parse
from uncertain_cep.reporting.nearby import OF_A_MATCH, lane_of


@st.composite
def traces(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(2, 60))
    lower = draw(st.lists(st.integers(0, 60), min_size=count, max_size=count))
    wide = draw(st.lists(st.integers(0, 12), min_size=count, max_size=count))
    return pa.table(
        {
            "type": draw(st.lists(st.sampled_from("ABC"), min_size=count, max_size=count)),
            "id": list(range(count)),
            "lower": lower,
            "upper": [one + more for one, more in zip(lower, wide, strict=True)],
            "host": draw(st.lists(st.sampled_from(["h1", "h2", None]), min_size=count, max_size=count)),
        }
    )


@settings(max_examples=40)
@given(traces(), st.sampled_from(["", "WHERE [host]"]))
def test_events_around_a_match_are_those_of_its_time_and_lanes(table: pa.Table, where: str) -> None:
    facts = data_of(uc.report(table, f"PATTERN SEQ(A a, B b) {where} WITHIN 9"))
    events = table.to_pylist()
    ids = facts["events"]["id"]
    columns = facts["columns"]
    assert facts["lane"] == "host"
    for n, (total, places) in enumerate(facts["found_nearby"]):
        members = [events[values(columns, name)[n]] for name in "ab"]
        low, high = min(one["lower"] for one in members), max(one["upper"] for one in members)
        around = {
            event["id"]
            for event in events
            if event not in members
            and event["lower"] <= high
            and event["upper"] >= low
            and event["host"] in {one["host"] for one in members}
        }
        shown = {ids[place] for place in places}
        assert total == len(around)
        assert len(shown) == min(total, OF_A_MATCH)
        assert shown <= around


def test_lanes_are_partitions_or_hosts() -> None:
    def lane(query: str, **columns: pa.DataType) -> str:
        model = {"type": pa.string(), "id": pa.string(), "lower": pa.int64(), "upper": pa.int64()}
        schema = pa.schema((model | columns).items())
        return lane_of(make_plan(parse(query), schema, MatchOptions()), schema)

    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    assert lane(query) == ""
    assert lane(query, task=pa.string(), hostName=pa.string()) == "hostName"
    assert lane(query, host=pa.int64()) == ""
    assert lane(query.replace("WITHIN", "WHERE [task] WITHIN"), task=pa.int64(), host=pa.string()) == "task"
