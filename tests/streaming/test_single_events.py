"""Events pushed one by one as mappings are what tables of one row are, call by call."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, text_of
from tests.streaming.arrivals import arrivals
from uncertain_cep.streaming.single_events import SingleEvents
from uncertain_cep.testing.model import Strategy

SCHEMA = pa.schema({"type": pa.string(), **dict.fromkeys(("id", "lower", "upper", "x"), pa.int64())})


@STRATEGIES
@pytest.mark.parametrize("evaluation", ["any_state", "selectivity", "query_order", "sliced"])
@FEWER
@given(case=cases(), data=st.data())
def test_a_mapping_is_a_table_of_one_row(
    evaluation: str, strategy: Strategy, case: Case, data: st.DataObject
) -> None:
    note(case.script())
    stream = data.draw(arrivals(case.trace.events))
    alone = data.draw(st.lists(st.booleans(), min_size=len(stream.events), max_size=len(stream.events)))
    table = Trace(stream.events, case.trace.types).table()
    matchers = [
        uc.IncrementalMatcher(
            text_of(case, strategy), table.schema, evaluation=evaluation, largest_interval=stream.largest
        )
        for _ in range(2)
    ]
    beats = dict(zip(stream.cuts, stream.heartbeats, strict=True))
    for number, row in enumerate(table.to_pylist()):
        pushed_event: Any = row if alone[number] else table.slice(number, 1)
        assert matchers[0].push(pushed_event).equals(matchers[1].push(table.slice(number, 1)))
        beat = beats.get(number + 1)
        if beat is not None:
            first, second = (matcher.heartbeat(beat[0], of_type=beat[1]) for matcher in matchers)
            assert first.equals(second)
    assert matchers[0].state_size == matchers[1].state_size
    assert matchers[0].late.equals(matchers[1].late)
    assert matchers[0].close().equals(matchers[1].close())


def matcher(condition: str = "") -> uc.IncrementalMatcher:
    query = f"PATTERN SEQ(A a, B b) {condition} WITHIN 9"
    return uc.IncrementalMatcher(query, SCHEMA, largest_interval=9)


def event(**changes: Any) -> dict[str, Any]:
    return {"type": "A", "id": 1, "lower": 0, "upper": 2, "x": 1} | changes


@pytest.mark.parametrize(
    "changes",
    [{"lower": None}, {"type": 3}, {"x": 2**63}, {"lower": 3}, {"y": 1}, {"id": "1"}, {"upper": 2**62}],
    ids=str,
)
def test_faults_are_found_and_nothing_is_taken(changes: dict[str, Any]) -> None:
    one = matcher()
    with pytest.raises(uc.TraceError):
        one.push(event(**changes))
    assert one.push(event()).num_rows == 0
    assert one.push(event(type="B", id=2, lower=3, upper=4)).num_rows == 1


def test_an_id_in_reach_is_found_whichever_way_it_came() -> None:
    one = matcher()
    one.push(event(id=5))
    for again in (event(id=5, lower=1), pa.Table.from_pylist([event(id=5, lower=1)], schema=SCHEMA)):
        with pytest.raises(uc.TraceError, match="has this id"):
            one.push(again)
    one.push(event(id=4, lower=1))
    with pytest.raises(uc.TraceError, match="has this id"):
        one.push(event(id=4, lower=1))


def test_what_is_plain_is_looked_at_alone() -> None:
    def looks(query: str, schema: pa.Schema = SCHEMA) -> bool:
        plan = uc.IncrementalMatcher(query, schema).plan
        return SingleEvents.of(plan, schema) is not None

    assert looks("PATTERN SEQ(A a, B b) WHERE a.x % 3 = 0 AND [x] WITHIN 9")
    assert not looks("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA.append(pa.field("pmf", pa.list_(pa.float64()))))
    assert not looks("PATTERN SEQ(A a, B b) WITHIN 9", SCHEMA.append(pa.field("d", pa.date32())))
