"""Drawings of matches: when each event happened, part by part, and events that could spoil the match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.cases.beside import beside_cases
from tests.cases.clocks import by_clocks, in_sequence
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.cases.times import timed_cases, timed_nested_cases
from uncertain_cep.executor import execute
from uncertain_cep.plan import make_plan
from uncertain_cep.query import parse
from uncertain_cep.results.order import finished
from uncertain_cep.results.pictures import Pictures, pictures_of
from uncertain_cep.testing.model import Event, Key
from uncertain_cep.testing.patterns import Candidate, Gap, candidates
from uncertain_cep.testing.worlds import is_forbidden, key_of, own_range, times_given, worlds


def drawn(case: LanguageCase | NestedCase, parts: int) -> tuple[list[dict[str, Any]], Pictures]:
    """Return the matches of a case and how they are drawn."""
    table = case.trace.table()
    plan = make_plan(parse(case.text()), table.schema)
    matches = finished(plan, execute(plan, table))
    return matches.to_pylist(), pictures_of(plan, table, matches, parts)


def key_of_record(case: LanguageCase | NestedCase, record: dict[str, Any]) -> Key:
    """Return the oracle's key of a match."""
    held = {found.variable: record[found.variable] for found in case.positives}
    signature = tuple((name, tuple(ids) if isinstance(ids, list) else ids) for name, ids in held.items())
    return tuple(record[name] for name in case.query().partition), signature


@given(nested_cases("SAO"))
def test_parts_of_one_tick_are_the_law(case: NestedCase) -> None:
    note(case.text())
    laws = times_given(case.query(), case.trace.events)
    matches, pictures = drawn(case, 100)
    events = np.split(pictures.share, pictures.start[1:-1])
    expected = []
    for record in matches:
        for law in laws[key_of_record(case, record)]:
            ticks = sorted(law)
            expected.append([float(law.get(tick, 0)) for tick in range(ticks[0], ticks[-1] + 1)])
    assert len(expected) == len(pictures.row)
    for share, shares in zip(events, expected, strict=False):
        # What the match excludes at the ends is a part without any probability.
        assert np.trim_zeros(share).tolist() == pytest.approx(
            np.trim_zeros(np.array(shares)).tolist(), rel=1e-9
        )


@st.composite
def _spoiled_cases(draw: st.DrawFn) -> NestedCase | LanguageCase:
    """Draw a case of any constructs, its events of clocks, in sequence, or not certain to have happened."""
    cases: list[st.SearchStrategy[Any]] = [
        language_cases(),
        nested_cases("SAO"),
        timed_cases(),
        timed_nested_cases(),
        beside_cases(),
    ]
    chosen = draw(st.sampled_from(cases))
    kinds = {
        "plain": lambda cases: cases,
        "doubtful": doubtful,
        "clocks": by_clocks,
        "sequences": in_sequence,
    }
    chosen = kinds[draw(st.sampled_from([*kinds, "clocks", "sequences"]))](chosen)
    case: NestedCase | LanguageCase = draw(chosen)
    return case


@given(_spoiled_cases())
def test_what_could_spoil_a_match_is_shown_and_nothing_else(case: LanguageCase | NestedCase) -> None:
    """By all worlds of the match's events and one other: it is inside a gap in one of them, or not shown."""
    note(case.text())
    query, events = case.query(), case.trace.events
    rows = {id(event): number for number, event in enumerate(events)}
    possible: dict[Key, set[int]] = {}
    for candidate in candidates(query, events, in_order=True):
        key = key_of(candidate, query)
        for gap in candidate.gaps:
            for other in gap.forbidden:
                if any(
                    _spoils(candidate, gap, other, query.window, world)
                    for _, world in worlds(list(dict.fromkeys([*candidate.events, other])))
                ):
                    possible.setdefault(key, set()).add(rows[id(other)])
    matches, pictures = drawn(case, 1)
    for number, record in enumerate(matches):
        shown = set(pictures.spoiling[pictures.spoiled == number].tolist())
        assert shown == possible.get(key_of_record(case, record), set())


def _spoils(candidate: Candidate, gap: Gap, other: Event, window: int, world: dict[Event, int]) -> bool:
    """Return whether an event is where a gap forbids it in a world with the match."""
    if not all(event in world for event in (*candidate.events, other)):
        return False
    times = own_range(candidate, window, world)
    return times is not None and is_forbidden(gap, other, world[other], *times, window, world)


def test_no_event_without_a_tick_in_between_is_shown() -> None:
    """Of neighbouring ticks nothing is in between, nor at a tick without probability."""
    pmf = pa.array([None, [0.5, 0.0, 0.0, 0.5], [0.5, 0.0, 0.5], None], pa.list_(pa.float64()))
    table = pa.table(
        {"type": ["A", "X", "X", "B"], "id": [1, 2, 3, 4], "lower": [1, 0, 1, 3], "upper": [1, 3, 3, 3],
         "pmf": pmf}
    )  # fmt: skip
    query = "PATTERN SEQ(A a, !X n, B b) WITHIN 20"
    plan = make_plan(parse(query), table.schema)
    assert pictures_of(plan, table, finished(plan, execute(plan, table)), 1).spoiling.tolist() == []
    middle = table.set_column(4, "pmf", pa.array([None, None, [0.25, 0.5, 0.25], None], pmf.type))
    matches = finished(plan, execute(plan, middle))
    assert pictures_of(plan, middle, matches, 1).spoiling.tolist() == [1, 2]


def test_what_may_not_be_between_sets_is_shown() -> None:
    events = [("A", 0, 2), ("X", 1, 4), ("B", 3, 6), ("C", 4, 7), ("X", 5, 5), ("X", 9, 9), ("X", 3, 8)]
    table = pa.table(
        {
            "type": [name for name, _, _ in events],
            "id": list(range(len(events))),
            "lower": [lower for _, lower, _ in events],
            "upper": [upper for _, _, upper in events],
        }
    )
    plan = make_plan(parse("PATTERN SEQ(A a, !X n, AND(C c, B b)) WITHIN 20"), table.schema)
    pictures = pictures_of(plan, table, finished(plan, execute(plan, table)), 1)
    # The gap ends before the first of the set: 3 to 6 for b, 4 to 7 for c. Shown by lower bounds.
    assert pictures.spoiling.tolist() == [1, 6, 4]


@pytest.mark.parametrize("ticks", [1, 5, 24, 53, 100, 1_000_003])
def test_a_flat_law_is_drawn_flat(ticks: int) -> None:
    """53 ticks in 24 parts are parts of two and of three ticks; none of them is likelier."""
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 10**7], "upper": [ticks - 1, 10**7]})
    plan = make_plan(parse("PATTERN SEQ(A a, B b) WITHIN 100000000"), table.schema)
    pictures = pictures_of(plan, table, finished(plan, execute(plan, table)), 24)
    edges = pictures.edges(0)
    assert (edges[0], edges[-1]) == (0, ticks)
    assert len(edges) == min(ticks, 24) + 1
    assert np.diff(edges).max() - np.diff(edges).min() <= 1
    assert pictures.density(0) == pytest.approx(np.ones(min(ticks, 24)))
    assert pictures.shares(0) == pytest.approx(np.diff(edges) / ticks)


def test_parts_leave_out_what_has_no_probability() -> None:
    pmf = pa.array([[0.0, 0.0, 0.5, 0.5, 0.0], None], pa.list_(pa.float64()))
    table = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [10, 20], "upper": [14, 20], "pmf": pmf})
    plan = make_plan(parse("PATTERN SEQ(A a, B b) WITHIN 100"), table.schema)
    pictures = pictures_of(plan, table, finished(plan, execute(plan, table)), 24)
    assert pictures.edges(0).tolist() == [12, 13, 14]
    assert pictures.density(0).tolist() == [1.0, 1.0]


def test_what_never_happened_is_not_shown() -> None:
    table = pa.table(
        {"type": ["A", "X", "B"], "id": [1, 2, 3], "lower": [1, 4, 9], "upper": [1, 4, 9],
         "probability": [1.0, 0.0, 1.0]}
    )  # fmt: skip
    plan = make_plan(parse("PATTERN SEQ(A a, !X n, B b) WITHIN 20"), table.schema)
    assert pictures_of(plan, table, finished(plan, execute(plan, table)), 1).spoiling.tolist() == []
