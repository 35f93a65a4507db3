"""Late events, and the answer without them, do not depend on the calls that events come in."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, rows_of
from tests.cases.language import LanguageCase, language_cases
from uncertain_cep.streaming.stream_methods import INCREMENTAL_EVALUATIONS
from uncertain_cep.testing.model import Event

Beat = tuple[int, str | None]


def late_one_by_one(events: list[Event], beats: dict[int, Beat], largest: int | None) -> list[Event]:
    """Return the events that break the promise, read off its definition (SEMANTICS 8)."""
    late: list[Event] = []
    kept: list[Event] = []
    said: list[Beat] = []
    for place, event in enumerate(events):
        if place in beats:
            said.append(beats[place])
        breaks = any(event.lower < time and of_type in (None, event.type) for time, of_type in said)
        if largest is not None:
            breaks |= any(event.upper < e.lower or event.lower < e.lower - largest for e in kept)
        (late if breaks else kept).append(event)
    return late


@st.composite
def beats_of(draw: st.DrawFn, events: list[Event]) -> dict[int, Beat]:
    """Draw heartbeats at times of the trace, each before some event arrives; they may make others late."""
    places = draw(st.sets(st.integers(0, max(len(events) - 1, 0)), max_size=2))
    times = sorted({event.lower for event in events} | {event.upper for event in events}) or [0]
    types = [None, "A", "B"]
    return {place: (draw(st.sampled_from(times)), draw(st.sampled_from(types))) for place in sorted(places)}


def arrived(
    matcher: uc.IncrementalMatcher, table: pa.Table, cuts: set[int], beats: dict[int, Beat]
) -> tuple[pa.Table, list[object]]:
    """Return the matches and the ids of the late events of a stream that is cut into calls."""
    batches = []
    start = 0
    for stop in sorted({*cuts, *beats, table.num_rows}):
        batches.append(matcher.push(table.slice(start, stop - start)))
        start = stop
        if stop in beats:
            time, of_type = beats[stop]
            batches.append(matcher.heartbeat(time, of_type=of_type))
    batches.append(matcher.close())
    assert matcher.late_count == matcher.late.num_rows
    return pa.Table.from_batches(batches), matcher.late.column("id").to_pylist()


@given(st.data(), st.one_of(cases(), language_cases()))
def test_lateness_is_judged_event_by_event(data: st.DataObject, case: Case | LanguageCase) -> None:
    events = list(data.draw(st.permutations(case.trace.events)))
    # At the edge: as long as the longest interval, one less, or of no length.
    longest = max((event.upper - event.lower for event in events), default=0)
    largest = data.draw(st.sampled_from([None, 0, max(longest - 1, 0), longest, longest + 1]))
    beats = data.draw(beats_of(events))
    late = late_one_by_one(events, beats, largest)
    on_time = tuple(event for event in events if event not in late)
    answer = replace(case, trace=replace(case.trace, events=on_time)).answer()
    has_pmf = any(event.pmf is not None for event in events)
    table = Trace(tuple(events), case.trace.types).table(with_pmf=has_pmf)
    methods = INCREMENTAL_EVALUATIONS if isinstance(case, Case) else ("sliced", "point")
    evaluation = data.draw(st.sampled_from(methods))
    places = range(1, len(events))
    some_cuts = data.draw(st.sets(st.sampled_from(places))) if places else set()
    for cuts in (set[int](), set(places), some_cuts):
        note(f"{case.text()}, cuts {sorted(cuts)}, heartbeats {beats}, largest_interval={largest}")
        matcher = uc.IncrementalMatcher(
            case.text(), table.schema, evaluation=evaluation, largest_interval=largest
        )
        matches, ids = arrived(matcher, table, cuts, beats)
        assert ids == [event.id for event in late]
        rows = rows_of(matches, case) if isinstance(case, Case) else case.rows(matches)
        assert_answer(rows, answer)
