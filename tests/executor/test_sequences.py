"""Events of sources whose sequences tell their order, against all worlds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.oracle import (
    Clock,
    Event,
    Match,
    Predicate,
    Query,
    answer_literally,
    conj,
    no,
    one,
    plus,
    seq,
)
from tests.oracle.strategies import Apart, doubtful
from uncertain_cep.executor import Slicing, execute
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.testing.model import Mention, Pattern
from uncertain_cep.testing.worlds import worlds

NAMES = "hg"


@st.composite
def _laws(draw: st.DrawFn, size: int) -> tuple[Fraction, ...] | None:
    if size == 1 or draw(st.integers(0, 3)):
        return None
    shares = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size).filter(any))
    return tuple(Fraction(share, sum(shares)) for share in shares)


@st.composite
def traces(
    draw: st.DrawFn, *, sources: int = 2, most: int = 5, total: bool = False, ordered: bool = True
) -> list[Event]:
    """Draw events of sources that may be ordered, and without; in one order for certain if ``total``."""
    clocks = []
    for _ in range(sources):
        lower = draw(st.integers(-1, 1))
        width = draw(st.sampled_from([0, 0, 0, 2]))
        clocks.append(Clock(lower, lower + width, ordered=ordered and draw(st.booleans())))
    some = clocks if total else [None, *clocks, *clocks]
    days = draw(st.booleans())
    events = []
    for id in range(draw(st.integers(2, most))):
        clock = draw(st.sampled_from(some))
        own = draw(st.integers(0, 1)) * 3 if days else draw(st.integers(0, 4))
        width = 2 if days else draw(st.integers(0, 2))
        if clock is not None and not clock.ordered and (total or not days):
            width = draw(st.sampled_from([0, 0, 1])) if not total else 0
        pmf = draw(_laws(width + 1))
        sequence = None if clock is None else id
        if sequence is not None and not total and not draw(st.integers(0, 5)):
            sequence = None
        low, high = (0, 0) if clock is None else (clock.lower, clock.upper)
        kind = draw(st.sampled_from("AB"))
        events.append(Event(kind, id, own + low, own + width + high, pmf, clock=clock, sequence=sequence))
    return events


def table_of(events: list[Event]) -> pa.Table:
    clocks = list(dict.fromkeys(event.clock for event in events if event.clock is not None))
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "type": (pa.string(), [event.type for event in events]),
        "id": (pa.int64(), [event.id for event in events]),
        "lower": (pa.int64(), [event.lower for event in events]),
        "upper": (pa.int64(), [event.upper for event in events]),
        "pmf": (pa.list_(pa.float64()), [event.pmf and list(map(float, event.pmf)) for event in events]),
        "source": (
            pa.string(),
            [event.clock and NAMES[clocks.index(event.clock)] for event in events],
        ),
        "offset_lower": (pa.int64(), [event.clock and event.clock.lower for event in events]),
        "offset_upper": (pa.int64(), [event.clock and event.clock.upper for event in events]),
        "sequence": (pa.int64(), [event.sequence for event in events]),
        "ordered": (pa.bool_(), [event.clock and event.clock.ordered for event in events]),
        "probability": (pa.float64(), [float(event.probability) for event in events]),
    }
    columns = {name: pa.array(given, kind) for name, (kind, given) in values.items()}
    return pa.table(columns)


def _wanted(query: Query, events: list[Event]) -> dict[Any, Match]:
    try:
        return {match.ids: match for match in answer_literally(query, events)}
    except ValueError:
        assume(False)
        raise


def _check(wanted: dict[Any, Match], found: pa.Table) -> None:
    variables = [name for name in found.column_names if name.startswith("v")]
    got = {
        tuple(tuple(row[name]) if isinstance(row[name], list) else row[name] for name in variables): row
        for row in found.to_pylist()
    }
    assert got.keys() == wanted.keys()
    for ids, match in wanted.items():
        assert (got[ids]["range_lower"], got[ids]["range_upper"]) == (match.range_lower, match.range_upper)
        if "confidence" in got[ids]:
            assert got[ids]["confidence"] == pytest.approx(float(match.confidence), rel=1e-9)


def as_rows(table: pa.Table) -> list[str]:
    """Return the rows of a result in one order, with confidences rounded."""
    rows = [{**row, "confidence": float(f"{row['confidence']:.9g}")} for row in table.to_pylist()]
    return sorted(map(repr, rows))


TYPES = st.sampled_from(["AB", "ABA", "AAB", "ABAB"])


@given(
    TYPES,
    st.integers(1, 9),
    traces(),
    st.sampled_from(["auto", "any_state", "selectivity", "point"]),
    st.booleans(),
)
def test_matches_are_those_of_all_worlds(
    types: str, window: int, events: list[Event], evaluation: str, confidence: bool
) -> None:
    wanted = _wanted(Query(seq(*(one(type, f"v{j}") for j, type in enumerate(types))), window), events)
    components = ", ".join(f"{type} v{j}" for j, type in enumerate(types))
    query = f"PATTERN SEQ({components}) WITHIN {window}"
    _check(wanted, uc.match(table_of(events), query, evaluation=evaluation, confidence=confidence))


def test_a_pmf_on_one_tick_by_a_clock_of_one_event() -> None:
    # The third event is at 2 by its clock, which is off by 0 to 2: at 2, 3 or 4, each as likely.
    records, other = Clock(0, 0, None, False), Clock(0, 2, None, False)
    events = [
        Event("A", 0, 0, 2, clock=records, sequence=0),
        Event("A", 1, 0, 2, clock=records, sequence=1),
        Event("B", 2, 0, 4, (Fraction(0), Fraction(0), Fraction(1)), clock=other),
    ]
    for last in (one("B", "v1"), plus("B", "v1")):
        wanted = _wanted(Query(seq(one("A", "v0"), last), 2), events)
        assert {match.confidence for match in wanted.values()} == {Fraction(2, 9)}
        text = f"PATTERN SEQ(A v0, {'B+ v1[]' if last.kleene else 'B v1'}) WITHIN 2"
        _check(wanted, uc.match(table_of(events), text))


@given(st.integers(1, 9), traces())
def test_kleene_components(window: int, events: list[Event]) -> None:
    wanted = _wanted(Query(seq(one("A", "v0"), plus("B", "v1")), window), events)
    _check(wanted, uc.match(table_of(events), f"PATTERN SEQ(A v0, B+ v1[]) WITHIN {window}"))


@given(
    st.integers(1, 9),
    traces(sources=1, total=True),
    st.sampled_from(["skip_till_any_match", "skip_till_next_match", "strict_contiguity"]),
    st.booleans(),
)
def test_all_that_forbids_where_the_order_is_known(
    window: int, events: list[Event], strategy: Any, negated: bool
) -> None:
    middle = [no("B", "n")] if negated else [plus("B", "v1")]
    wanted = _wanted(Query(seq(one("A", "v0"), *middle, one("A", "v2")), window, strategy=strategy), events)
    inner = "!B n" if negated else "B+ v1[]"
    names = "v0, v2" if negated else "v0, v1, v2"
    query = f"PATTERN SEQ(A v0, {inner}, A v2) WHERE {strategy}({names}) WITHIN {window}"
    _check(wanted, uc.match(table_of(events), query))


@st.composite
def conditions(draw: st.DrawFn, variables: list[str]) -> tuple[str, Predicate]:
    """Draw a condition on one time, or on the difference of two, as text and for the oracle."""
    relation, bound = draw(st.sampled_from(["<", "<=", "="])), draw(st.integers(-3, 4))
    names = draw(st.permutations(variables))[: draw(st.integers(1, 2))]
    text = f"{' - '.join(f'TIME({name})' for name in names)} {relation} {bound}"
    return text, Predicate(tuple(map(Mention.read, names)), Apart(relation, bound))


@given(
    st.sampled_from(["A v0, B v1", "A v0, B+ v1[]", "A v0, B v1, A v2"]),
    st.integers(1, 9),
    traces(),
    st.data(),
)
def test_conditions_on_times(pattern: str, window: int, events: list[Event], data: st.DataObject) -> None:
    parts = [part.split() for part in pattern.split(", ")]
    items = [plus("B", "v1") if "+" in kind else one(kind, name) for kind, name in parts]
    names = [name.replace("[]", "[i]") for _, name in parts]
    drawn = data.draw(st.lists(conditions(names), min_size=1, max_size=2))
    times = tuple(predicate for _, predicate in drawn)
    wanted = _wanted(Query(seq(*items), window, times=times), events)
    where = " AND ".join(text for text, _ in drawn)
    _check(wanted, uc.match(table_of(events), f"PATTERN SEQ({pattern}) WHERE {where} WITHIN {window}"))


IN_ORDER: dict[str, Pattern] = {
    "A v0, B v1": seq(one("A", "v0"), one("B", "v1")),
    "A v0, B+ v1[]": seq(one("A", "v0"), plus("B", "v1")),
    "A v0, B v1, !A n": seq(one("A", "v0"), one("B", "v1"), no("A", "n")),
    "!B n, A v0, B v1": seq(no("B", "n"), one("A", "v0"), one("B", "v1")),
    "!B n, A v0": seq(no("B", "n"), one("A", "v0")),
    "!A n, A v0, B v1, !B m": seq(no("A", "n"), one("A", "v0"), one("B", "v1"), no("B", "m")),
    "A v0, !B n, A v1": seq(one("A", "v0"), no("B", "n"), one("A", "v1")),
    "!B n, A v0, B+ v1[]": seq(no("B", "n"), one("A", "v0"), plus("B", "v1")),
    "AND(A v0, B v1)": conj(one("A", "v0"), one("B", "v1")),
    "AND(A v0, B v1), !A n": seq(conj(one("A", "v0"), one("B", "v1")), no("A", "n")),
    "!A n, AND(A v0, B v1)": seq(no("A", "n"), conj(one("A", "v0"), one("B", "v1"))),
}
"""Patterns, as text and for the oracle."""


@given(
    st.sampled_from(sorted(IN_ORDER)),
    st.sampled_from(["skip_till_any_match", "skip_till_next_match", "strict_contiguity"]),
    st.integers(1, 9),
    st.one_of(traces(sources=1, total=True), doubtful(traces(sources=1, total=True))),
    st.data(),
)
def test_times_where_the_order_is_known(
    pattern: str, strategy: Any, window: int, events: list[Event], data: st.DataObject
) -> None:
    """The order is known in part to gaps at an end of a match and to conditions on times."""
    names = [name.replace("[]", "[i]") for name in re.findall(r"[vnm]\d?(?:\[])?(?=[,)]|$)", pattern)]
    spoken = [name for name in names if name != "m"]
    drawn = data.draw(st.lists(conditions(spoken), max_size=2))
    times = tuple(predicate for _, predicate in drawn)
    where = [text for text, _ in drawn]
    if "AND" in pattern:
        strategy = "skip_till_any_match"
    else:
        where.append(f"{strategy}({', '.join(name[:2] for name in names if name[0] == 'v')})")
    wanted = _wanted(Query(IN_ORDER[pattern], window, strategy=strategy, times=times), events)
    text = f"PATTERN SEQ({pattern}) WHERE {' AND '.join(where)} WITHIN {window}"
    if not where:
        text = f"PATTERN SEQ({pattern}) WITHIN {window}"
    _check(wanted, uc.match(table_of(events), text))


@given(st.sampled_from(["A v0, B v1, !A n", "!B n, A v0, B v1"]), st.integers(2, 9), st.data())
def test_outputs_where_times_tell_what_spoils(pattern: str, window: int, data: st.DataObject) -> None:
    """With a partition for each source, the best, and those of a least confidence, are among all."""
    events = data.draw(traces(total=True))
    query = f"PATTERN SEQ({pattern}) WHERE [source] WITHIN {window}"
    table = table_of(events)
    wanted: dict[Any, Match] = {}
    for clock in dict.fromkeys(event.clock for event in events):
        mine = [event for event in events if event.clock == clock]
        wanted |= _wanted(Query(IN_ORDER[pattern], window), mine)
    whole = uc.match(table, f"{query} ORDER BY CONFIDENCE DESC")
    _check(wanted, whole.drop_columns("source"))
    assert uc.match(table, f"{query} ORDER BY CONFIDENCE DESC LIMIT 2").equals(whole.slice(0, 2))
    least = uc.match(table, f"{query} HAVING CONFIDENCE >= 0.5 ORDER BY CONFIDENCE DESC").num_rows
    assert least == sum(match.confidence >= Fraction(1, 2) for match in wanted.values())


def _spans(events: list[Event]) -> list[tuple[int, int]]:
    """Return for each event the first and last tick of all that its time depends on."""
    spans = [(event.lower, event.upper) for event in events]
    for clock in {event.clock for event in events if event.clock is not None and event.clock.ordered}:
        own = [event for event in events if event.clock is clock and event.sequence is not None]
        own.sort(key=lambda event: event.sequence or 0)
        cuts = [
            n
            for n in range(1, len(own))
            if max(event.upper for event in own[:n]) <= min(event.lower for event in own[n:])
        ]
        for begin, end in pairwise([0, *cuts, len(own)] if own else []):
            span = (
                min(event.lower for event in own[begin:end]),
                max(event.upper for event in own[begin:end]),
            )
            for event in own[begin:end]:
                spans[events.index(event)] = span
    return spans


@given(
    st.one_of(
        st.tuples(st.sampled_from(["A v0, B v1", "B v0, A+ v1[]", "A v0, B v1, A v2"]), traces()),
        st.tuples(st.sampled_from(["A v0, !B n, A v1", "A v0, B v1, !A n"]), traces(sources=1, total=True)),
    ),
    st.integers(1, 9),
    st.integers(1, 12),
)
def test_slices_of_time_with_whole_clusters_have_the_same_matches(
    case: tuple[str, list[Event]], window: int, length: int
) -> None:
    pattern, events = case
    table = table_of(events)
    query = f"PATTERN SEQ({pattern}) WITHIN {window}"
    plan = make_plan(uc.parse(query), table.schema, MatchOptions())
    try:
        whole = uc.match(table, query)
    except uc.TraceError:
        assume(False)
    lowest = min(event.lower for event in events)
    longest = max(high - low for low, high in _spans(events))
    rows, numbers = [], []
    for row, (low, high) in enumerate(_spans(events)):
        for number in range((low - lowest - window - longest) // length, (high - lowest) // length + 1):
            rows.append(row)
            numbers.append(number)
    copies = table.take(pa.array(rows)).append_column("slice", pa.array(numbers))
    found = execute(plan, copies, slicing=Slicing("slice", lowest, length))
    assert as_rows(pa.Table.from_batches(found, plan.batch_schema)) == as_rows(whole)


def times_of(
    matches: pa.Table, window: int, events: list[Event]
) -> dict[tuple[int, ...], list[dict[int, Fraction]]]:
    """Return for the ids of each match, which nothing spoils, P(match, and an event at a tick)."""
    by_id = {event.id: event for event in events}
    names = [name for name in matches.column_names if name.startswith("v")]
    found: dict[tuple[int, ...], list[dict[int, Fraction]]] = {}
    for row in matches.to_pylist():
        lists = [row[name] if isinstance(row[name], list) else [row[name]] for name in names]
        found[tuple(id for ids in lists for id in ids)] = [{} for ids in lists for _ in ids]
    for weight, world in worlds(events):
        for match, laws in found.items():
            own = [by_id[id] for id in match]
            times = [world[event] for event in own]
            if times[-1] - times[0] < window and all(
                one.is_before(world[one], other, world[other]) for one, other in pairwise(own)
            ):
                for law, tick in zip(laws, times, strict=True):
                    law[tick] = law.get(tick, Fraction(0)) + weight
    return found


@given(
    st.sampled_from(["A v0, B v1", "B v0, A+ v1[]", "A v0, B v1, A v2"]),
    st.integers(1, 9),
    traces(),
    st.integers(1, 5),
)
def test_expected_counts_by_when_matches_begin(
    pattern: str, window: int, events: list[Event], every: int
) -> None:
    table, query = table_of(events), f"PATTERN SEQ({pattern}) WITHIN {window}"
    try:
        matches = uc.match(table, query)
    except uc.TraceError:
        assume(False)
    wanted: dict[int, Fraction] = {}
    for first, *_ in times_of(matches, window, events).values():
        for tick, share in first.items():
            bucket = tick // every * every
            wanted[bucket] = wanted.get(bucket, Fraction(0)) + share
    found = uc.match(table, f"{query} RETURN EXPECTED COUNT EVERY {every}").to_pylist()
    assert [row["bucket"] for row in found] == sorted(wanted)
    for row in found:
        assert row["expected_count"] == pytest.approx(float(wanted[row["bucket"]]), rel=1e-9)


def test_the_order_of_a_day_is_known_and_its_hours_are_not() -> None:
    day = {"lower": [0, 0, 24], "upper": [23, 23, 47], "source": ["file"] * 3, "sequence": [1, 2, 3]}
    offsets = {"offset_lower": [0] * 3, "offset_upper": [0] * 3}
    events = pa.table({"type": [*"ABC"], "id": [1, 2, 3], **day, **offsets})
    query = "PATTERN SEQ(A a, B b) WITHIN 24"
    # All of 24 * 24 choices but those in which the second comes first, of whose ties it is the later one.
    assert uc.match(events, query)["confidence"].to_pylist() == [pytest.approx(300 / 576)]
    ordered = events.append_column("ordered", pa.array([True] * 3))
    (row,) = uc.match(ordered, query).to_pylist()
    assert (row["range_lower"], row["range_upper"], row["confidence"]) == (0, 23, 1.0)
    (count,) = uc.match(ordered, "PATTERN SEQ(A a, !B b, C c) WITHIN 48 RETURN EXPECTED COUNT").to_pylist()
    assert count["expected_count"] == 0.0
    # The first of two records of a day, and an hour of the next one: by a sum over the choices in order.
    pairs = [(a, b) for b in range(24) for a in range(b + 1)]
    near = sum(max(0, a + 24 - 24 + 1) for a, _ in pairs) / (len(pairs) * 24)
    (row,) = uc.match(ordered, "PATTERN SEQ(A a, C c) WITHIN 25").to_pylist()
    assert row["confidence"] == pytest.approx(near)


def _file(**columns: list[Any]) -> pa.Table:
    given: dict[str, list[Any]] = {
        "type": ["A", "B"],
        "id": [1, 2],
        "lower": [0, 0],
        "upper": [5, 5],
        "source": ["h", "h"],
        "offset_lower": [0, 0],
        "offset_upper": [0, 0],
        "sequence": [1, 2],
        "ordered": [True, True],
    }
    return pa.table({**given, **columns})


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"sequence": [1, 1]}, "row 2.*has this sequence"),
        ({"sequence": [1.5, 2.5]}, "a sequence is a whole number"),
        ({"ordered": [1, 1]}, "it is true or false"),
        ({"ordered": [True, False]}, "by some of its rows"),
        ({"lower": [6, 0], "upper": [9, 5]}, "row 1.*row 2 comes later"),
    ],
)
def test_what_is_not_known_of_an_order(columns: dict[str, list[Any]], said: str) -> None:
    with pytest.raises(uc.TraceError, match=said):
        uc.match(_file(**columns), "PATTERN SEQ(A a, B b) WITHIN 9")


@pytest.mark.parametrize(
    ("query", "source", "said"),
    [
        ("PATTERN SEQ(A a, !B b, A c) WITHIN 9", ["h", "h", "g"], "source h.*what forbids events"),
        (
            "PATTERN AND(A a, B b) WITHIN 9",
            ["h", "h", "g"],
            r"source h.*AND\(...\) with records of an",
        ),
    ],
)
def test_what_sequences_do_not_support_yet_is_refused(query: str, source: list[str], said: str) -> None:
    third: dict[str, list[Any]] = {
        "type": ["A", "B", "A"],
        "id": [1, 2, 3],
        "lower": [0] * 3,
        "upper": [5] * 3,
        "source": source,
    }
    more: dict[str, list[Any]] = {
        "offset_lower": [0] * 3,
        "offset_upper": [0] * 3,
        "sequence": [1, 2, 3],
        "ordered": [True] * 3,
    }
    events = _file(**third, **more)
    with pytest.raises(uc.OptionError, match=said):
        uc.match(events, query)
    uc.match(events, query, sources=False)


@given(
    st.sampled_from(sorted(IN_ORDER)),
    st.sampled_from(["skip_till_any_match", "skip_till_next_match"]),
    st.integers(1, 9),
    traces(),
)
def test_records_that_no_component_takes_are_not_in_the_way(
    pattern: str, strategy: Any, window: int, events: list[Event]
) -> None:
    """Events of other types stand for the overlapping records of ordered sources: nothing is refused."""
    events = [
        replace(event, type="C") if event.clock is not None and event.clock.ordered else event
        for event in events
    ]
    names = re.findall(r"v\d", pattern)
    strategy = "skip_till_any_match" if "AND" in pattern else strategy
    where = "" if "AND" in pattern else f"WHERE {strategy}({', '.join(names)})"
    expected = _wanted(Query(IN_ORDER[pattern], window, strategy=strategy), events)
    _check(expected, uc.match(table_of(events), f"PATTERN SEQ({pattern}) {where} WITHIN {window}"))


def test_no_match_comes_before_a_later_branch_is_refused() -> None:
    apart = _file(lower=[0, 6], upper=[5, 9], source=["h", "g"])
    assert uc.match(apart, "PATTERN OR(SEQ(A a, B b), SEQ(B c, A d)) WITHIN 9").num_rows == 1
    apart = pa.concat_tables([apart, _file(id=[3, 4], sequence=[3, 4])])
    with pytest.raises(uc.OptionError, match="what forbids events"):
        next(uc.iter_matches(apart, "PATTERN OR(SEQ(A a, B b), SEQ(A c, B d, !A e)) WITHIN 9"))


def test_streams_know_no_ordered_sources() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    with pytest.raises(
        uc.OptionError, match=r"the column ordered says .* no match of a stream would be final"
    ):
        uc.IncrementalMatcher(query, _file().schema)


def test_records_on_either_side_of_an_event_are_in_order_too() -> None:
    rows: dict[str, list[Any]] = {
        "type": [*"ABA"],
        "id": [1, 2, 3],
        "lower": [0] * 3,
        "upper": [2] * 3,
        "source": ["h", None, "h"],
    }
    rows |= {"offset_lower": [0] * 3, "offset_upper": [0] * 3, "sequence": [2, None, 1]}
    events = _file(**rows, ordered=[True, None, True])
    for query in ("PATTERN SEQ(A a, B b, A c) WITHIN 9", "PATTERN SEQ(A a, B b, A c) WITHIN 3"):
        (row,) = uc.match(events, query).to_pylist()
        assert (row["a"], row["c"]) == (3, 1)
        # Of 6 pairs of ticks in order and 3 ticks between, one choice is strictly in order.
        assert row["confidence"] == pytest.approx(1 / 18)


def test_an_event_without_a_sequence_ties_with_all_of_its_tick() -> None:
    rows = {"type": [*"ABA"], "id": [1, 2, 3], "lower": [4] * 3, "upper": [4] * 3, "source": ["h"] * 3}
    more = {
        "offset_lower": [0] * 3,
        "offset_upper": [0] * 3,
        "sequence": [1, 2, None],
        "ordered": [False] * 3,
    }
    events = pa.table({**rows, **more})
    for query in ("PATTERN SEQ(A a, B b) WITHIN 2", "PATTERN SEQ(A a, B b) WITHIN 1"):
        found = uc.match(events, query).to_pylist()
        assert [(row["a"], row["b"], row["confidence"]) for row in found] == [(1, 2, 1.0)]
    (row,) = uc.match(events, "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 2").to_pylist()
    assert (row["a"], row["b"], row["confidence"]) == (1, 2, 1.0)


def test_explain_says_that_sequences_tell_the_order() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 9"
    shown = uc.explain(query, _file())
    assert "those at one tick are in the order of sequence" in shown
    assert "independent" not in shown
    assert json.loads(uc.explain(query, _file(), format="json"))["clocks"]["sequence"] == "sequence"


def test_too_many_choices_name_the_source() -> None:
    """Of two records on either side of an event by a clock of its own, some tick has to be held."""
    columns = {
        "type": [*"ABA"], "id": [1, 2, 3], "lower": [0] * 3, "upper": [9_999] * 3, "source": ["h", None, "h"],
        "offset_lower": [0, None, 0], "offset_upper": [0, None, 0], "sequence": [1, None, 2],
        "ordered": [True, None, True],
    }  # fmt: skip
    query = "PATTERN SEQ(A a, B b, A c) WITHIN 20000"
    with pytest.raises(uc.ConfidenceCostError, match="sources h, which sequences put in order"):
        uc.match(pa.table(columns), query)
    longer = pa.table({**columns, "upper": [99_999_999] * 3})
    with pytest.raises(uc.ConfidenceCostError, match=r"ordered source h.*give a longer tick"):
        uc.match(longer, query)
    near = _file(
        type=[*"ANB"], id=[1, 2, 3], lower=[0] * 3, upper=[999] * 3, source=["h"] * 3, sequence=[1, 2, 3],
        offset_lower=[0] * 3, offset_upper=[0] * 3, ordered=[True] * 3,
    )  # fmt: skip
    assert uc.match(near, "PATTERN SEQ(!N n, B b) WITHIN 500").num_rows == 1
    with pytest.raises(uc.ConfidenceCostError, match="sources h, which sequences put in order"):
        uc.match(near, "PATTERN SEQ(A a, !N n, B b) WHERE TIME(b) - TIME(n) <= 9 WITHIN 500")
    # What is certain asks for no laws.
    (row,) = uc.match(longer, "PATTERN SEQ(A a, A c) WITHIN 100000000").to_pylist()
    assert (row["a"], row["confidence"]) == (1, 1.0)
