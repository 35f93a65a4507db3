"""Cases with some of their events named, and what the oracle says of matches with these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.cases.cases import Trace
from tests.cases.language import PatternCase, entry
from tests.cases.nested import unordered
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import Component, Event, Match, Pattern, Repeat
from uncertain_cep.testing.patterns import components

__all__ = ["NamedCase", "crowded", "has_named", "named_cases", "spread", "uniform", "with_events"]


@dataclass(frozen=True, slots=True)
class NamedCase:
    """A case, and the ids of the events of some variables."""

    case: PatternCase
    ids: dict[str, Any]

    def matches(self) -> list[Match]:
        """Return the matches of the oracle that have the named events."""
        return [match for match in self.case.answer() if has_named(match, self.ids, self.case)]

    def is_one_of(self, shown: Mapping[str, Any], matches: Sequence[Match]) -> bool:
        """Return whether a match as the engine shows it is one of some of the oracle's, with its range."""
        for match in matches:
            signature = {name: value for name, value in match.signature if value not in (None, ())}
            entries = {name: entry(shown[name]) for name in signature if shown.get(name) is not None}
            if entries == signature and shown["range_lower"] == match.range_lower:
                return bool(shown["range_upper"] == match.range_upper)
        return False

    def whole_ids(self) -> list[tuple[str, Any]]:
        """Return the names and ids but for single elements of lists."""
        kleene = {part.variable for part in self.case.positives if part.kleene}
        return [(name, id) for name, id in self.ids.items() if name not in kleene or isinstance(id, list)]


def has_named(match: Match, ids: dict[str, Any], case: PatternCase) -> bool:
    """Return whether a match has the named events."""
    signature = dict(match.signature)
    kleene = {part.variable for part in case.positives if part.kleene}
    for variable, id in ids.items():
        entry = signature[variable]
        if id is None:
            if entry is not None and (not isinstance(entry, tuple) or any(one is not None for one in entry)):
                return False
        elif isinstance(id, list):
            if not isinstance(entry, tuple):
                return False
            is_set = variable in unordered(case.pattern)
            if sorted(entry, key=str) != sorted(id, key=str) if is_set else entry != tuple(id):
                return False
        elif variable in kleene:
            if entry is None or id not in entry:  # type: ignore[operator]
                return False
        elif entry != id:
            return False
    return True


def with_events(case: PatternCase, events: Sequence[Event]) -> PatternCase:
    """Return a case with other events."""
    return replace(case, trace=Trace(tuple(events), case.trace.types))


def uniform(case: PatternCase) -> PatternCase:
    """Return a case whose events have uniform times, and clocks uniform offsets."""
    clocks = {event.clock for event in case.trace.events if event.clock is not None}
    uniform_clocks = {clock: replace(clock, pmf=None) for clock in clocks}
    return with_events(
        case,
        [
            replace(event, pmf=None, clock=None if event.clock is None else uniform_clocks[event.clock])
            for event in case.trace.events
        ],
    )


@st.composite
def named_cases(draw: st.DrawFn, cases: st.SearchStrategy[Any]) -> NamedCase:
    """Draw a case whose ids are unique, with events for some of its variables, or for all."""
    case = draw(cases.filter(lambda drawn: len(drawn.trace.events) > 0))
    case = with_events(case, [replace(event, id=number) for number, event in enumerate(case.trace.events)])
    parts = case.positives
    ids: dict[str, Any] = {}
    everything = draw(st.booleans())
    by_iteration = {part.variable for part in _repeated(case.pattern)}
    for part in parts:
        if everything or draw(st.booleans()):
            ids[part.variable] = draw(_id_of(part, case.trace.events, part.variable in by_iteration))
    return NamedCase(case, ids)


def _repeated(pattern: Pattern) -> Iterator[Component]:
    """Yield the components of repeated groups."""
    if isinstance(pattern, Repeat):
        yield from components(pattern)
    elif not isinstance(pattern, Component):
        for item in pattern.items:
            yield from _repeated(item)


@st.composite
def _id_of(draw: st.DrawFn, part: Component, events: Sequence[Event], by_iteration: bool) -> Any:
    """Draw the id of an event, most of them of the component's types; for a list several ids, or one."""
    fitting = [event.id for event in events if not part.types or event.type in part.types]
    everyone = [event.id for event in events]
    is_fitting = draw(st.integers(0, 6)) > 0
    pool = fitting if fitting and is_fitting else everyone
    if not part.least and draw(st.integers(0, 3)) == 0:
        return None
    if part.kleene and draw(st.integers(0, 3)):
        listed: list[Any] = draw(st.lists(sampled_from(pool), min_size=1, max_size=3, unique=True))
        if by_iteration and draw(st.integers(0, 3)) == 0:
            # One iteration takes none.
            listed.insert(draw(st.integers(0, len(listed))), None)
        return listed
    return draw(sampled_from(pool))


@st.composite
def crowded(draw: st.DrawFn, cases: st.SearchStrategy[Any]) -> Any:
    """Draw a case in which certain events stand between others, so that they often forbid a match."""
    case = draw(cases)
    events = [
        replace(event, lower=3 * event.lower, upper=3 * event.lower + event.upper - event.lower)
        for event in case.trace.events
    ]
    certain = [
        replace(event, lower=event.lower + 1, upper=event.lower + 1, pmf=None, id=100 + number)
        for number, event in enumerate(events[:2])
    ]
    changed = with_events(case, [*events, *certain])
    return replace(changed, window=draw(sampled_from([4, 9, 30])))


@st.composite
def spread(draw: st.DrawFn, cases: st.SearchStrategy[Any]) -> Any:
    """Draw a case whose events are further apart than its window, or in another order."""
    case = draw(cases)
    events = [
        replace(event, lower=event.lower + away, upper=event.upper + away)
        for event in case.trace.events
        for away in [draw(sampled_from([0, 0, 4, 9]))]
    ]
    return with_events(case, events[:4])
