"""Ways in which the events of a case can arrive and keep the promise, and a matcher that gets them so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Trace
from uncertain_cep.testing.model import Event

__all__ = ["Stream", "arrivals", "by_tables", "pushed"]


MatcherT = TypeVar("MatcherT", bound=uc.IncrementalMatcher | uc.RuleMatcher)


@dataclass(frozen=True, slots=True)
class Stream:
    """Events in the order of arrival, the calls they come in, and heartbeats behind some calls.

    Attributes
    ----------
    events : tuple of Event
    cuts : tuple of int
        Where one call ends and the next begins.
    heartbeats : tuple of (int, str or None) or None
        For each call the heartbeat behind it: its time, and the one type that it is about.
    largest : int or None
        What is said of the interval lengths.
    """

    events: tuple[Event, ...]
    cuts: tuple[int, ...]
    heartbeats: tuple[tuple[int, str | None] | None, ...]
    largest: int | None


@st.composite
def arrivals(draw: st.DrawFn, events: tuple[Event, ...]) -> Stream:
    """Draw a way in which events can arrive and keep the promise."""
    count = len(events)
    order = draw(st.permutations(range(count)))
    largest = None
    if draw(st.booleans()):
        # Sorted by a time that each event can have, an event begins no later than a later one ends.
        times = [draw(st.integers(event.lower, event.upper)) for event in events]
        order.sort(key=lambda i: times[i])
        longest = max((event.upper - event.lower for event in events), default=0)
        largest = longest + draw(st.sampled_from([0, 0, 3]))
    arrived = tuple(events[i] for i in order)
    cuts = sorted(draw(st.sets(st.integers(1, max(count - 1, 1)), max_size=count)))
    cuts = [cut for cut in cuts if cut < count] + [count]
    heartbeats: list[tuple[int, str | None] | None] = []
    for cut in cuts:
        of_type = draw(st.sampled_from([None, *sorted({event.type for event in events})]))
        coming = [event.lower for event in arrived[cut:] if of_type in (None, event.type)]
        latest = min(coming, default=1000)
        heartbeats.append(draw(st.sampled_from([None, (latest, of_type), (latest - 2, of_type)])))
    return Stream(arrived, tuple(cuts), tuple(heartbeats), largest)


def pushed(
    stream: Stream, types: Mapping[str, pa.DataType], text: str, **options: Any
) -> tuple[pa.Table, uc.IncrementalMatcher]:
    """Return the matches of a stream, and the matcher that has found them, which holds nothing any more."""
    has_pmf = any(event.pmf is not None for event in stream.events)
    table = Trace(stream.events, types).table(with_pmf=has_pmf)
    matcher = uc.IncrementalMatcher(text, table.schema, largest_interval=stream.largest, **options)
    batches = []
    start = 0
    for cut, heartbeat in zip(stream.cuts, stream.heartbeats, strict=True):
        batches.append(matcher.push(table.slice(start, cut - start)))
        start = cut
        if heartbeat is not None:
            batches.append(matcher.heartbeat(heartbeat[0], of_type=heartbeat[1]))
    batches.append(matcher.close())
    assert matcher.state_size == 0
    return pa.Table.from_batches(batches), matcher


def by_tables(matcher: MatcherT) -> MatcherT:
    """Let a matcher take small tables as it takes large ones: events one by one are held against it."""
    matcher._plain = None
    return matcher
