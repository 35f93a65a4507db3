"""Calibration of events that last: which matches happened in a world, by true begins and ends."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import Lasting, Pair, SpanCase
from tests.operators.test_span_facts import spans
from tests.operators.test_spans import KINDS
from tests.reporting.pages import data_of
from uncertain_cep.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
TRUTH = ("true_begin", "true_end")


def a_world(case: SpanCase, data: st.DataObject) -> dict[Lasting, Pair]:
    """Draw a world: begin and end of each event that happened."""
    offsets = {name: data.draw(st.integers(*bounds)) for name, bounds in case.clocks.items()}
    world = {}
    for event in case.events:
        happened = event.probability == 1 or (event.probability > 0 and data.draw(st.booleans()))
        pairs = sorted(event.law())
        if happened and pairs:
            begin, end = data.draw(st.sampled_from(pairs))
            by = offsets.get(event.clock or "", 0)
            world[event] = begin + by, end + by
    return world


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_matches_that_happened_are_those_of_the_world(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    world = a_world(case, data)
    times = [world.get(event, (None, None)) for event in case.events]
    # A point has its time in the first column, with or without another one in the second.
    ends = [
        None if event.point is not None and data.draw(st.booleans()) else end
        for event, (_, end) in zip(case.events, times, strict=True)
    ]
    table = case.table().append_column("true_begin", pa.array([begin for begin, _ in times], pa.int64()))
    table = table.append_column("true_end", pa.array(ends, pa.int64()))
    note(f"{case.text()}\n{table.to_pydict()}")
    matches = uc.match(case.table(), case.text())
    result = uc.calibration(matches, TRUTH, events=table, query=case.text())
    there = {key for key, _ in case.matches(world)}
    have = [tuple(row[name] for name, _ in case.variables) for row in matches.to_pylist()]
    assert result.happened == sum(key in there for key in have)
    assert result.missing == len(there - {*have})
    assert result.outside == 0
    assert result.said == pytest.approx(sum(matches["confidence"].to_pylist()))


def tasks() -> pa.Table:
    """Return two tasks and a peak, with true times."""
    table = spans(
        ("Task", 1, (0, 4), None, (3, 3)), ("Task", 2, (2, 6), (8, 9), None), ("Peak", 3, (4, 5), None, None)
    )
    return table.append_column("true_begin", pa.array([2, 6, 5])).append_column(
        "true_end", pa.array([5, 9, None], pa.int64())
    )


QUERY = "PATTERN AND(Task t, Peak p) WHERE t CONTAINS p WITHIN 60"


def test_what_is_outside_is_counted() -> None:
    """A length is, too: task 1 lasts 3 ticks."""
    events = tasks()
    matches = uc.match(events, QUERY)
    result = uc.calibration(matches, TRUTH, events=events, query=QUERY)
    assert (result.happened, result.missing, result.outside) == (1, 0, 0)
    for column, values in (("true_begin", [1, 6, 5]), ("true_end", [5, 10, None]), ("true_begin", [2, 6, 6])):
        place = events.schema.get_field_index(column)
        moved = events.set_column(place, column, pa.array(values, pa.int64()))
        assert uc.calibration(matches, TRUTH, events=moved, query=QUERY).outside == 1


def test_frames_groups_and_reports_take_true_begins_and_ends() -> None:
    events = tasks()
    frame: Any = pl.from_arrow(events)
    query = f"{QUERY} RETURN PROBABILITY BY t"
    result = uc.calibration(uc.match(frame, query), TRUTH, events=frame, query=query)
    assert isinstance(result.bins, pl.DataFrame)
    assert (result.count, result.happened) == (2, 1)
    for text, input_ in ((QUERY, events), (query, frame), (QUERY, events.to_pandas())):
        shown = data_of(uc.report(input_, text, truth=TRUTH))["calibration"]
        assert shown["sentence"].startswith("2 answers: 1.4 expected, 1 happened")


@pytest.mark.parametrize(
    ("truth", "changes", "message"),
    [
        ("true_begin", {}, "names two columns"),
        (("true_begin", "came"), {}, "no column came"),
        (("a", "b", "c"), {}, "true begins and ends"),
        (TRUTH, {"true_end": [5, None, None]}, "the event 2 lasts, and has a true begin in true_begin"),
        (TRUTH, {"true_end": [5, 5, None]}, "the event 2 lasts, and ends before it begins"),
    ],
)
def test_errors(truth: Any, changes: dict[str, Any], message: str) -> None:
    events = tasks()
    for name, values in changes.items():
        place = events.schema.get_field_index(name)
        events = events.set_column(place, name, pa.array(values, pa.int64()))
    with pytest.raises(OptionError, match=message):
        uc.calibration(uc.match(events, QUERY), truth, events=events, query=QUERY)


def test_of_points_one_column_is_named() -> None:
    events = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [1], "at": [0]})
    query = "PATTERN SEQ(A a) WITHIN 3"
    with pytest.raises(OptionError, match="no event lasts, so it names one column"):
        uc.calibration(uc.match(events, query), ("at", "at"), events=events, query=query)
