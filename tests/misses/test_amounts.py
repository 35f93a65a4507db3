"""Amounts are exact: with a bound moved by as much some world has a match, by one tick less none has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.language import PatternCase, language_cases
from tests.cases.negated_groups import group_cases
from tests.cases.nested import nested_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases, timed_sequences
from tests.misses.cases import NamedCase, crowded, has_named, named_cases, spread, uniform, with_events
from uncertain_cep.misses.reasons import Miss, Move
from uncertain_cep.testing.model import Clock, Event
from uncertain_cep.testing.patterns import components

CASES: dict[str, st.SearchStrategy[Any]] = {
    "sequences": spread(language_cases()),
    "sets": spread(st.sampled_from(["SA", "A"]).flatmap(nested_cases)),
    "times": spread(timed_cases()),
    "times of single events": spread(timed_sequences()),
    "clocks": by_clocks(spread(language_cases())),
    "times by clocks": by_clocks(spread(timed_sequences())),
    "crowded": crowded(language_cases()),
    "crowded times": crowded(timed_cases()),
    "negated groups": crowded(group_cases(repeated=False)),
}
KINDS = pytest.mark.parametrize("kind", CASES)
WARNINGS = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


def misses_of(named: NamedCase) -> Sequence[Miss]:
    """Return the nearest misses of a case; none if there is a match."""
    try:
        answer = uc.why_not(named.case.trace.table(), named.case.text(), named.ids, misses=2)
    except (uc.MatchExistsError, uc.OptionError):
        return ()
    return answer.misses


def ids_of(miss: Miss) -> list[Any]:
    """Return the ids of the events of a miss."""
    return [id for value in miss.events.values() for id in (value if isinstance(value, list) else [value])]


def has_match(case: PatternCase, miss: Miss) -> bool:
    """Return whether some world has a match of the events of a miss."""
    return any(has_named(match, miss.events, case) for match in case.answer())


def moved(case: PatternCase, move: Move, ticks: int) -> PatternCase:
    """Return a case with a bound moved by so many ticks."""
    if move.kind == "window":
        return replace(case, window=case.window + ticks)
    down, up = (ticks, 0) if move.side == "earlier" else (0, ticks)
    events: list[Event] = []
    clocks: dict[Clock, Clock] = {}
    for event in case.trace.events:
        clock = event.clock
        if move.kind == "event" and event.id == move.event:
            event = replace(event, lower=event.lower - down, upper=event.upper + up)
        elif move.kind == "clock" and clock is not None and names_of(case)[clock] == move.name:
            wider = clocks.setdefault(clock, replace(clock, lower=clock.lower - down, upper=clock.upper + up))
            event = replace(event, lower=event.lower - down, upper=event.upper + up, clock=wider)
        events.append(event)
    return with_events(case, events)


def names_of(case: PatternCase) -> dict[Clock, str]:
    """Return the names that clocks have in the table of a case."""
    clocks = dict.fromkeys(event.clock for event in case.trace.events if event.clock is not None)
    return {clock: f"h{number}" for number, clock in enumerate(clocks)}


def only(case: PatternCase, ids: Sequence[Any]) -> PatternCase:
    """Return a case with some of its events; clocks keep their names."""
    return with_events(case, [event for event in case.trace.events if event.id in ids])


@KINDS
@WARNINGS
@FEWER
@given(data=st.data())
def test_one_bound_moved_by_an_amount_makes_the_times_possible(kind: str, data: st.DataObject) -> None:
    named = data.draw(named_cases(CASES[kind].map(uniform)))
    names = {name: clock for clock, name in names_of(named.case).items()}
    for miss in misses_of(named):
        if not all(reason.is_of_time for reason in miss.reasons) or miss.reasons[0].kind == "forbidden":
            continue
        case = only(named.case, ids_of(miss))
        for move in miss.moves:
            if move.kind == "condition":
                continue
            if move.kind == "clock":
                move = replace(move, name=names_of(case)[names[move.name]])
            assert has_match(moved(case, move, move.ticks), miss), move
            assert not has_match(moved(case, move, move.ticks - 1), miss), move


@pytest.mark.parametrize("kind", ["sequences", "sets", "crowded"])
@WARNINGS
@FEWER
@given(data=st.data())
def test_an_amount_of_a_reason_is_that_of_its_condition_alone(kind: str, data: st.DataObject) -> None:
    """With the times of all other events free, the move of the reason decides, to the tick."""
    named = data.draw(named_cases(CASES[kind].map(uniform)))
    for miss in misses_of(named):
        is_small = len(ids_of(miss)) <= 3
        reasons = [reason for reason in miss.reasons if reason.kind in ("order", "window") and is_small]
        if any(reason.kind in ("type", "count", "contradiction") for reason in miss.reasons):
            continue
        bare = replace(only(named.case, ids_of(miss)), asked=(), agree=(), chained=())
        for reason in reasons:
            events = [
                event if event.id in reason.events else replace(event, lower=-25, upper=45)
                for event in bare.trace.events
            ]
            case = with_events(bare, events)
            assert reason.ticks is not None
            for move in reason.moves:
                assert has_match(moved(case, move, reason.ticks), miss), move
                assert not has_match(moved(case, move, reason.ticks - 1), miss), move


@WARNINGS
@FEWER
@given(data=st.data())
@pytest.mark.parametrize("kind", ["crowded", "crowded times", "negated groups"])
def test_what_forbids_would_have_to_move_by_the_amount(kind: str, data: st.DataObject) -> None:
    named = data.draw(named_cases(CASES[kind].map(uniform)))
    for miss in misses_of(named):
        for reason in miss.reasons:
            if reason.kind != "forbidden" or "in every world" not in reason.text:
                continue
            case = only(named.case, [*ids_of(miss), *reason.events])
            assert not has_match(case, miss)
            assert has_match(only(case, ids_of(miss)), miss)
            amounts = [move.ticks for move in reason.moves]
            assert reason.ticks == min(amounts, default=None)
            for move in reason.moves:
                assert has_match(moved(case, move, move.ticks), miss), move
                assert not has_match(moved(case, move, move.ticks - 1), miss), move


@KINDS
@WARNINGS
@FEWER
@given(data=st.data())
def test_no_choice_is_nearer_than_the_first_miss(kind: str, data: st.DataObject) -> None:
    """With all upper bounds later by the amount there is a match with the named events, by less none."""
    named = data.draw(named_cases(CASES[kind].map(uniform)))
    case = replace(named.case, strategy="skip_till_any_match", times=())
    named = NamedCase(case, named.ids)
    misses = () if any(part.negated for part in components(case.pattern)) else misses_of(named)
    if not misses:
        return
    first = misses[0]
    if not all(reason.is_of_time for reason in first.reasons) or first.ticks is None:
        return
    assert has_match(later(only(case, ids_of(first)), first.ticks), first)
    assert not NamedCase(later(case, first.ticks - 1), named.ids).matches()


def later(case: PatternCase, ticks: int) -> PatternCase:
    """Return a case with all upper bounds later."""
    return with_events(case, [replace(event, upper=event.upper + ticks) for event in case.trace.events])
