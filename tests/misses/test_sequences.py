"""Sources whose sequences break ties, or tell the order of their events, against all worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.executor.test_sequences import table_of, traces
from tests.oracle import Event, Query, answer_literally, one, seq
from uncertain_cep.testing.model import Strategy


def ids_in_worlds(query: Query, events: list[Event]) -> set[tuple[Any, ...]]:
    """Return the ids of the matches of all worlds."""
    try:
        return {match.ids for match in answer_literally(query, events)}
    except ValueError:
        # No world is left.
        assume(False)
        raise


@pytest.mark.parametrize("total", [False, True])
@FEWER
@given(types=st.sampled_from(["AB", "ABA", "AAB"]), window=st.integers(1, 9), data=st.data())
def test_it_is_refused_exactly_if_some_world_has_a_match(
    total: bool, types: str, window: int, data: st.DataObject
) -> None:
    events = data.draw(traces(sources=1 if total else 2, total=total))
    strategy: Strategy = "skip_till_any_match"
    if total:
        strategy = data.draw(st.sampled_from(["skip_till_any_match", "skip_till_next_match"]))
    variables = [f"v{j}" for j in range(len(types))]
    pattern = seq(*(one(kind, variable) for kind, variable in zip(types, variables, strict=True)))
    query = Query(pattern, window, strategy=strategy)
    chosen = data.draw(st.lists(st.sampled_from(range(len(types))), unique=True))
    named = {f"v{j}": data.draw(st.sampled_from([event.id for event in events])) for j in chosen}
    places = {variables.index(name): id for name, id in named.items()}
    matches = {ids for ids in ids_in_worlds(query, events) if all(ids[j] == id for j, id in places.items())}
    components = ", ".join(f"{kind} {variable}" for kind, variable in zip(types, variables, strict=True))
    text = f"PATTERN SEQ({components}) WHERE {strategy}({', '.join(variables)}) WITHIN {window}"
    try:
        answer = uc.why_not(table_of(events), text, named)
    except uc.MatchExistsError as error:
        shown = tuple(error.match[variable] for variable in variables)
    else:
        assert not matches
        assert answer.reasons
        return
    assert shown in matches


@FEWER
@given(types=st.sampled_from(["AB", "ABA"]), window=st.integers(1, 4), events=traces())
def test_moves_are_exact(types: str, window: int, events: list[Event]) -> None:
    """WITHIN and the bounds of events of no ordered source, of all events of a miss."""
    variables = [f"v{j}" for j in range(len(types))]
    pattern = seq(*(one(kind, variable) for kind, variable in zip(types, variables, strict=True)))
    events = [replace(event, pmf=None) for event in events]
    ids_in_worlds(Query(pattern, window), events)
    components = ", ".join(f"{kind} {variable}" for kind, variable in zip(types, variables, strict=True))
    try:
        answer = uc.why_not(table_of(events), f"PATTERN SEQ({components}) WITHIN {window}")
    except uc.MatchExistsError:
        return
    for miss in answer.misses:
        ids = tuple(miss.events.values())
        for move in miss.moves if all(reason.is_of_time for reason in miss.reasons) else ():
            for ticks, is_match in ((move.ticks, True), (move.ticks - 1, False)):
                down, up = (ticks, 0) if move.side == "earlier" else (0, ticks)
                if move.kind == "clock":
                    continue
                moved = [
                    replace(event, lower=event.lower - down, upper=event.upper + up)
                    if move.kind == "event" and event.id == move.event
                    else event
                    for event in events
                ]
                within = window + ticks if move.kind == "window" else window
                assert (ids in ids_in_worlds(Query(pattern, within), moved)) == is_match, move
