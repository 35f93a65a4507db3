"""Events that could spoil a match where sequences order the events of a source, against all worlds."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from tests.executor.test_sequences import IN_ORDER, conditions, table_of, traces
from tests.oracle import Event, Query
from tests.oracle.strategies import doubtful
from uncertain_cep.executor import execute
from uncertain_cep.plan import make_plan
from uncertain_cep.query import parse
from uncertain_cep.results.order import finished
from uncertain_cep.results.pictures import pictures_of
from uncertain_cep.testing.model import Key
from uncertain_cep.testing.patterns import candidates
from uncertain_cep.testing.worlds import is_forbidden, key_of, own_range, worlds


def spoilers_of_worlds(query: Query, events: list[Event]) -> dict[Key, set[int]]:
    """Return for each match the events without which it holds in some world, and with which it does not.

    Only the match's events and that one count in a world, which keeps the order of every ordered source.
    """
    possible: dict[Key, set[int]] = {}
    every = [world for _, world in worlds(events)]
    for candidate in candidates(query, events):
        key = key_of(candidate, query)
        for world in every:
            times = None
            if all(event in world for event in candidate.events):
                times = own_range(candidate, query.window, world)
            if times is None:
                continue
            for gap in candidate.gaps:
                for other in gap.forbidden:
                    if other in world and is_forbidden(gap, other, world[other], *times, query.window, world):
                        possible.setdefault(key, set()).add(events.index(other))
    return possible


def check_spoilers(query: Query, events: list[Event], text: str, parts: list[list[Event]]) -> None:
    """Assert that exactly these events are shown as spoiling the matches of a query, among each part."""
    note(text)
    possible: dict[Key, set[int]] = {}
    try:
        for part in parts:
            rows = [events.index(event) for event in part]
            for key, numbers in spoilers_of_worlds(query, part).items():
                possible[key] = {rows[number] for number in numbers}
    except ValueError:
        # The order leaves no world.
        assume(False)
    table = table_of(events)
    plan = make_plan(parse(text), table.schema)
    matches = finished(plan, execute(plan, table))
    pictures = pictures_of(plan, table, matches, 1)
    for number, record in enumerate(matches.to_pylist()):
        held = {name: value for name, value in record.items() if re.fullmatch(r"v\d", name)}
        ids = {name: tuple(value) if isinstance(value, list) else value for name, value in held.items()}
        shown = set(pictures.spoiling[pictures.spoiled == number].tolist())
        assert shown == possible.get(((), tuple(ids.items())), set())


@given(
    st.sampled_from(sorted(IN_ORDER)),
    st.sampled_from(["skip_till_any_match", "skip_till_next_match", "strict_contiguity"]),
    st.integers(1, 9),
    st.one_of(traces(sources=1, total=True), doubtful(traces(sources=1, total=True))),
    st.data(),
)
def test_where_the_order_of_all_is_known(
    pattern: str, strategy: Any, window: int, events: list[Event], data: st.DataObject
) -> None:
    _check(pattern, strategy, window, events, data)


@given(
    st.sampled_from(sorted(IN_ORDER)),
    st.sampled_from(["skip_till_any_match", "skip_till_next_match"]),
    st.integers(1, 9),
    st.one_of(traces(total=True), doubtful(traces(total=True))),
    st.data(),
)
def test_where_the_order_of_each_partition_is_known(
    pattern: str, strategy: Any, window: int, events: list[Event], data: st.DataObject
) -> None:
    clocks = list(dict.fromkeys(event.clock for event in events))
    parts = [[event for event in events if event.clock is clock] for clock in clocks]
    _check(pattern, strategy, window, events, data, parts)


def _check(
    pattern: str,
    strategy: Any,
    window: int,
    events: list[Event],
    data: st.DataObject,
    parts: list[list[Event]] | None = None,
) -> None:
    """Check the events that could spoil the matches of a drawn query; ``parts`` are those of its sources."""
    names = [name.replace("[]", "[i]") for name in re.findall(r"[vnm]\d?(?:\[])?(?=[,)]|$)", pattern)]
    drawn = data.draw(st.lists(conditions([name for name in names if name != "m"]), max_size=2))
    where = [text for text, _ in drawn] + ["[source]"] * (parts is not None)
    if "AND" in pattern:
        strategy = "skip_till_any_match"
    else:
        where.append(f"{strategy}({', '.join(name[:2] for name in names if name[0] == 'v')})")
    query = Query(
        IN_ORDER[pattern], window, strategy=strategy, times=tuple(predicate for _, predicate in drawn)
    )
    conditions_of_query = f"WHERE {' AND '.join(where)} " if where else ""
    check_spoilers(
        query, events, f"PATTERN SEQ({pattern}) {conditions_of_query}WITHIN {window}", parts or [events]
    )


def _file(types: str, lower: list[int], upper: list[int], **columns: list[Any]) -> pa.Table:
    count = len(types)
    return pa.table(
        {
            "type": [*types], "id": list(range(1, count + 1)), "lower": lower, "upper": upper,
            "source": ["h"] * count, "sequence": list(range(1, count + 1)), **columns,
        }
    )  # fmt: skip


def _spoiling(events: pa.Table, query: str) -> list[list[int]]:
    plan = make_plan(parse(query), events.schema)
    matches = finished(plan, execute(plan, events))
    pictures = pictures_of(plan, events, matches, 1)
    return [
        events.column("id").take(pa.array(pictures.spoiling[pictures.spoiled == n])).to_pylist()
        for n in range(matches.num_rows)
    ]


@pytest.mark.parametrize(("types", "spoiling"), [("ANB", [[2]]), ("NAB", [[]]), ("ABN", [[]])])
def test_what_may_not_have_happened_between_two_of_one_tick(types: str, spoiling: list[list[int]]) -> None:
    events = _file(types, [4] * 3, [4] * 3, probability=[0.5 if type == "N" else 1.0 for type in types])
    assert _spoiling(events, "PATTERN SEQ(A a, !N n, B b) WITHIN 5") == spoiling


def test_other_records_of_a_source_tell_when_one_happened() -> None:
    """The record ahead of b is at 5 at least, by its law with a hole; so n is too late for the window."""
    pmf = [None, [0.5] + [0.0] * 4 + [0.5], None, None]
    events = _file("ACBN", [2, 0, 0, 0], [2, 5, 5, 9], pmf=pa.array(pmf, pa.list_(pa.float64())))
    events = events.append_column("ordered", pa.array([True] * 4))
    assert _spoiling(events, "PATTERN SEQ(A a, B b, !N n) WITHIN 3") == []
    assert _spoiling(events, "PATTERN SEQ(A a, !N n) WITHIN 3") == [[]]
    assert _spoiling(events, "PATTERN SEQ(A a, !N n) WITHIN 4") == [[4]]
