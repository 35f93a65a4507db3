"""The point-based framework from its arrays up: the automaton, the paper's examples, streams, state."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.pools import AttributeValues
from confidence.predicates.bytecode import Opcode
from confidence.predicates.conditions import FIRST
from pointbased import (
    Action,
    CostlySignatureError,
    Edge,
    Formulas,
    PointEvaluation,
    PointMatches,
    compile_sequence,
)
from tests import oracle
from tests.cases.points import EmitRule, sase_matches
from tests.cases.sampling import FEWER
from uncertain_cep.testing.model import Event, Query, Strategy

Rows = dict[Any, Any]
"""Range and confidence by the events' serial numbers."""
Row = tuple[int, int, int, int]
"""Component, lower, upper, event."""

TYPES = ("A B C", "A A", "A|B B A|B")
FIGURE_1: list[Row] = [(0, 1, 5, 1), (2, 3, 5, 2), (1, 3, 5, 3), (2, 4, 8, 4)]
SWITCHES = pytest.mark.parametrize(("merging", "nelt"), list(itertools.product((True, False), repeat=2)))


def column(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(list(values), dtype=np.int64)


def push(evaluation: PointEvaluation, rows: list[Row], partition: int = 0) -> PointMatches:
    component, lower, upper, event = (column(part) for part in zip(*rows, strict=True))
    return evaluation.push(component, np.full(len(rows), partition), lower, upper, event)


def rows_of(*parts: PointMatches) -> Rows:
    rows: Rows = {}
    for matches in parts:
        for n, row in enumerate(zip(*(part.tolist() for part in matches[3:6]), strict=True)):
            events = tuple(matches.event[matches.start[n] : matches.start[n + 1]].tolist())
            assert events not in rows
            rows[events] = row
    return rows


def test_the_automaton_of_a_sequence() -> None:
    formulas = Formulas.none(3)
    automaton = compile_sequence(3, 10, formulas=formulas)
    nothing = range(0)
    assert automaton.edges == (
        Edge(Action.BEGIN, 0, 1, 0, nothing),
        Edge(Action.BEGIN, 1, 2, 1, nothing),
        Edge(Action.IGNORE, 1, 1, -1, nothing),
        Edge(Action.BEGIN, 2, 3, 2, nothing),
        Edge(Action.IGNORE, 2, 2, -1, nothing),
    )
    assert automaton.accepting == 3
    first, moves = automaton.moves()
    assert first.tolist() == [0, 1, 2, 3]
    assert moves[:, :2].tolist() == [[0, 1], [1, 2], [2, 3]]
    assert automaton.weighs_runs is automaton.weighs_signatures is False


def test_the_automaton_of_a_kleene_component() -> None:
    """A run stays at the component, and leaves it with the next one's first event, or to accept."""
    nothing = range(0)
    automaton = compile_sequence(2, 10, kleene=(True, True), negations=(1,))
    assert automaton.edges == (
        Edge(Action.BEGIN, 0, 1, 0, nothing),
        Edge(Action.TAKE, 1, 1, 0, nothing),
        Edge(Action.IGNORE, 1, 1, -1, nothing),
        Edge(Action.PROCEED, 1, 2, -1, nothing),
        Edge(Action.BEGIN, 2, 3, 1, nothing),
        Edge(Action.TAKE, 3, 3, 1, nothing),
        Edge(Action.IGNORE, 3, 3, -1, nothing),
        Edge(Action.PROCEED, 3, 4, -1, nothing),
    )
    assert automaton.accepting == 4
    first, moves = automaton.moves()
    assert first.tolist() == [0, 2, 4]
    # Source, target, whether it takes on, whether it can end a match, whether the target takes and begins.
    assert moves[:, [0, 1, 2, 7, 10, 11]].tolist() == [
        [1, 1, 1, 0, 1, 1],
        [0, 1, 0, 0, 1, 1],
        [3, 3, 1, 1, 1, 0],
        [1, 3, 0, 1, 1, 0],
    ]
    assert automaton.pools == 1
    assert automaton.weighs_signatures


@pytest.mark.parametrize(("length", "window", "of"), [(0, 5, 0), (2, 0, 2), (2, 5, 3)])
def test_an_automaton_that_makes_no_sense(length: int, window: int, of: int) -> None:
    with pytest.raises(ValueError, match="component"):
        compile_sequence(length, window, formulas=Formulas.none(of))


@SWITCHES
def test_figure_1(merging: bool, nelt: bool) -> None:
    expected = {False: (25, 27), True: (24, 25)}
    for next_match, (earlier, later) in expected.items():
        automaton = compile_sequence(3, 4, next_match=next_match)
        evaluation = PointEvaluation(automaton, merging=merging, nelt=nelt)
        assert not rows_of(push(evaluation, FIGURE_1))
        assert rows_of(evaluation.close()) == {
            (1, 3, 2): (1, 5, pytest.approx(earlier / 225, rel=1e-14)),
            (1, 3, 4): (1, 7, pytest.approx(later / 225, rel=1e-14)),
        }


@pytest.mark.parametrize("upper_of_a", [2, 3, 5])
def test_figure_3c_the_window_prunes(upper_of_a: int) -> None:
    evaluation = PointEvaluation(compile_sequence(3, 4))
    push(evaluation, [(0, 1, upper_of_a, 1), (1, 2, 3, 5), (2, 6, 7, 6)])
    assert not rows_of(evaluation.close())


@SWITCHES
def test_figure_2c_nelt(merging: bool, nelt: bool) -> None:
    """NELT of a1 is the upper bound of b5: what starts behind it, b6, is never next."""
    rows = [(0, 1, 4, 1), (1, 2, 4, 2), (1, 3, 5, 3), (1, 5, 8, 4), (1, 5, 7, 5), (1, 8, 9, 6)]
    evaluation = PointEvaluation(compile_sequence(2, 100, next_match=True), merging=merging, nelt=nelt)
    push(evaluation, rows)
    by_ids = rows_of(evaluation.close())
    assert set(by_ids) == {(1, 2), (1, 3), (1, 4), (1, 5)}
    # b4 can be next only up to NELT, tick 7; and with a1 at 1, b2 is before it.
    assert by_ids[1, 4][:2] == (2, 7)


def test_nelt_leaves_prefixes_alone() -> None:
    """Behind NELT nothing is tried on a prefix any more, so nothing is held for it."""
    rows = [(0, 0, 1, 0), *((1, 10 * k, 10 * k + 1, k) for k in range(1, 60))]
    sizes = []
    for nelt in (True, False):
        evaluation = PointEvaluation(compile_sequence(2, 10_000, next_match=True), nelt=nelt)
        push(evaluation, rows)
        by_ids = rows_of(evaluation.advance(595))
        assert set(by_ids) == {(0, 1)}
        sizes.append(evaluation.size)
    assert sizes[0] < sizes[1]


def test_matches_come_out_when_they_are_final() -> None:
    evaluation = PointEvaluation(compile_sequence(3, 4))
    push(evaluation, FIGURE_1)
    assert not rows_of(evaluation.advance(5))
    assert set(rows_of(evaluation.advance(6))) == {(1, 3, 2)}
    assert not rows_of(evaluation.advance(6))
    assert not rows_of(evaluation.advance(2))
    assert set(rows_of(evaluation.close())) == {(1, 3, 4)}
    assert not rows_of(evaluation.close())


def test_an_event_before_the_safe_tick_is_refused() -> None:
    evaluation = PointEvaluation(compile_sequence(2, 4))
    push(evaluation, [(0, 1, 5, 1)])
    evaluation.advance(3)
    with pytest.raises(ValueError, match="begins at 2, before the safe tick 3"):
        push(evaluation, [(1, 2, 9, 2)])


def test_the_emit_rule() -> None:
    rule = EmitRule(longest=4)
    rule.observe(column([]))
    assert rule.safe is None
    rule.observe(column([3, 9]))
    rule.observe(column([5]))
    assert rule.safe == 5


def test_an_event_is_used_once_and_couples_its_gaps() -> None:
    """SEQ(A, ANY b, ANY c) next: x could be taken in either gap, where 1 minus the sum is not the product."""
    rows = [(0, 0, 0, 0)]
    for lower, upper, event in ((2, 2, 1), (6, 6, 2), (1, 5, 3)):
        rows += [(1, lower, upper, event), (2, lower, upper, event)]
    evaluation = PointEvaluation(compile_sequence(3, 100, next_match=True))
    push(evaluation, rows)
    by_ids = rows_of(evaluation.close())
    # x = 3 in [1, 5] stays out of (0, 2) and (2, 6) only at tick 2.
    assert by_ids[0, 1, 2] == (0, 6, pytest.approx(1 / 5))
    assert all(len(set(events)) == 3 for events in by_ids)


def test_what_a_match_takes_later_forbids_nothing_before() -> None:
    """x could have been taken as b, where nothing else is in the way; but it is c."""
    rows = [(0, 0, 0, 0), *((j, *fields) for fields in ((4, 7, 1), (5, 5, 2)) for j in (1, 2))]
    evaluation = PointEvaluation(compile_sequence(3, 100, next_match=True))
    push(evaluation, rows)
    assert rows_of(evaluation.close())[0, 2, 1] == (0, 7, pytest.approx(2 / 4))


def test_gaps_coupled_too_much() -> None:
    rows = [(0, 0, 9, 0)]
    for event in (1, 2, 3):
        rows += [(1, 10, 19, event), (2, 10, 19, event)]
    evaluation = PointEvaluation(compile_sequence(3, 100, next_match=True), most_steps=10)
    push(evaluation, rows)
    with pytest.raises(CostlySignatureError, match="steps") as caught:
        evaluation.close()
    assert caught.value.events[0] == 0
    assert len(set(caught.value.events)) == 3
    assert caught.value.steps > 10


def test_a_range_survives_probabilities_too_small_for_a_float() -> None:
    """Two hundred events keep out of the gap (0, 100) with 1e-400: the range still reaches to its end."""
    rows = [(0, 0, 0, 0), (1, 1, 100, 1), *((1, 0, 99, k) for k in range(2, 202))]
    evaluation = PointEvaluation(compile_sequence(2, 2000, next_match=True))
    push(evaluation, rows)
    assert rows_of(evaluation.close())[0, 1][:2] == (0, 100)


@pytest.mark.compiled
@pytest.mark.parametrize("size", [3, 7, 11, 49, 1000])
def test_a_certain_match_has_confidence_1(size: int) -> None:
    for next_match in (False, True):
        evaluation = PointEvaluation(compile_sequence(2, 10_000, next_match=next_match))
        push(evaluation, [(0, 0, size - 1, 0), (1, size, 2 * size - 1, 1)])
        confidence = rows_of(evaluation.close())[0, 1][2]
        assert 1 - 1e-12 <= confidence <= 1


@pytest.mark.compiled
def test_state_stays_flat() -> None:
    rng = np.random.default_rng(5)
    for next_match in (False, True):
        evaluation = PointEvaluation(compile_sequence(3, 20, next_match=next_match))
        sizes = []
        for step in range(40):
            event = np.arange(step * 20, step * 20 + 20)
            component = rng.integers(0, 3, 20)
            lower = event - rng.integers(0, 3, 20)
            evaluation.push(component, np.zeros(20, np.int64), lower, lower + 4, event)
            evaluation.advance((step + 1) * 20 - 3)
            sizes.append(evaluation.size)
        assert max(sizes[20:]) <= 1.2 * max(sizes[:20])


@pytest.mark.compiled
def test_negated_events_are_held_as_long_as_they_matter() -> None:
    """SEQ(A, !N, B, !M): one in the gap, one up to a window after the first event."""
    rng = np.random.default_rng(5)
    evaluation = PointEvaluation(compile_sequence(2, 20, negations=(1, 2)))
    sizes, match_count = [], 0
    for step in range(40):
        event = np.arange(step * 20, step * 20 + 20)
        component = rng.choice([0, 1, 1, 2, 3], 20)
        lower = event - rng.integers(0, 3, 20)
        group = np.where(component[:, None] < 2, np.zeros((20, 2), dtype=np.int64), -1)
        evaluation.push(component, np.zeros(20, np.int64), lower, lower + 4, event, group=group)
        matches = evaluation.advance((step + 1) * 20 - 3)
        match_count += len(matches.lower)
        sizes.append(evaluation.size)
        # A trailing gap is open until a window after the first event has passed.
        assert (matches.lower + 19 < (step + 1) * 20 - 3).all()
    assert match_count + len(evaluation.close().lower) > 20
    assert max(sizes[20:]) <= 1.2 * max(sizes[:20])


def test_contiguity_leaves_prefixes_alone() -> None:
    """Behind an event that starts after the last one taken, and is over, nothing is a neighbour."""
    sizes = []
    for contiguous in (True, False):
        evaluation = PointEvaluation(compile_sequence(2, 10_000, contiguous=contiguous))
        times = np.repeat(10 * np.arange(60), 1 + contiguous)
        component = np.where(times % 20 == 0, 0, 1)
        if contiguous:
            component[1::2] = 2
        group = np.zeros((len(times), int(contiguous)), dtype=np.int64)
        evaluation.push(component, np.zeros_like(times), times, times + 1, times, group=group)
        by_ids = rows_of(evaluation.advance(595))
        assert (0, 10) in by_ids
        assert ((0, 30) in by_ids) is not contiguous
        sizes.append(evaluation.size)
    assert sizes[0] < sizes[1] / 2


@st.composite
def certain_streams(draw: st.DrawFn) -> list[Event]:
    """Some events with certain times, ties included."""
    events = []
    for id in range(draw(st.integers(0, 9))):
        time = draw(st.integers(0, 12))
        events.append(Event(draw(st.sampled_from("ABC")), id, time, time))
    return events


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
@FEWER
@given(events=certain_streams(), window=st.integers(1, 14), types=st.sampled_from(TYPES))
def test_on_certain_times_it_is_a_sase_engine(
    strategy: Strategy, events: list[Event], window: int, types: str
) -> None:
    pattern = [oracle.one(part, name) for part, name in zip(types.split(), "abc", strict=False)]
    rows = [
        (component, event.lower, event.id)
        for event in events
        for component, part in enumerate(pattern)
        if event.type in part.types
    ]
    expected = {
        match.ids: (match.range_lower, match.range_upper)
        for match in oracle.answer(Query(oracle.seq(*pattern), window, strategy=strategy), events)
    }
    automaton = compile_sequence(len(pattern), window, next_match=strategy == "skip_till_next_match")
    component, time, event = (column(part) for part in zip(*rows, strict=True)) if rows else [column([])] * 3
    matches = sase_matches(automaton, component, np.zeros_like(component), time, event)
    assert {events: row[:2] for events, row in rows_of(matches).items()} == expected
    assert np.all(matches.confidence == 1.0)


def test_formulas_hold_between_events() -> None:
    """a.x < b.x, asked when b is read; under next, an event that fails it could not have been taken."""
    conditions = Formulas.none(2).conditions._replace(
        code=np.array([[Opcode.LOAD, 0], [Opcode.LOAD, 1], [Opcode.LESS, 0], [-1, 0]], dtype=np.int64),
        slots=np.array([[1, 0, 0], [2, 1, 1]]),
        rows=column([0, 4]),
        mention_start=column([0, 2]),
        mentions=np.array([[1, 0, FIRST], [2, 1, FIRST]]),
        running_start=column([0, 0]),
        aggregate_start=column([0, 0]),
        stages=np.array([[0, 0, 0, 0], [0, 0, 1, 1]]),
        negated=column([1]),
    )
    formulas = Formulas(conditions, np.zeros(2, dtype=np.bool_))
    x = np.array([[5, 0, 0, 0], [0, 4, 6, 7]])
    for next_match, expected in ((True, {(0, 2)}), (False, {(0, 2), (0, 3)})):
        matches = sase_matches(
            compile_sequence(2, 10, next_match=next_match, formulas=formulas),
            column([0, 1, 1, 1]),
            column([0, 0, 0, 0]),
            column([0, 1, 2, 3]),
            column([0, 1, 2, 3]),
            AttributeValues(x, np.zeros((0, 4)), np.zeros((2, 4), dtype=np.bool_)),
        )
        assert set(rows_of(matches)) == expected


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=14),
    st.integers(2, 12),
    st.booleans(),
)
def test_partitions_are_apart(drawn: list[tuple[int, int, int]], window: int, next_match: bool) -> None:
    automaton = compile_sequence(3, window, next_match=next_match)
    both, alone = PointEvaluation(automaton), PointEvaluation(automaton)
    rows = [(component, low, low + size, k) for k, (component, low, size) in enumerate(drawn)]
    push(alone, rows)
    push(both, rows)
    push(both, [(component, low, high, 100 + k) for component, low, high, k in rows], partition=1)
    once = rows_of(alone.close())
    twice = rows_of(both.close())
    moved = {tuple(100 + k for k in events): row for events, row in once.items()}
    assert twice == {**once, **moved}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 3)), max_size=6), st.booleans()
)
def test_against_the_fractions_with_pmfs(drawn: list[tuple[int, int, int]], next_match: bool) -> None:
    events: list[Event] = []
    offsets: list[int] = []
    pool: list[float] = []
    for id, (component, low, size) in enumerate(drawn):
        weights = [(7 * id + 3 * k) % 4 for k in range(size + 1)]
        weights[-1] += not any(weights)
        pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
        events.append(Event("ABC"[component], id, low, low + size, pmf))
        offsets.append(len(pool))
        pool += [float(p) for p in pmf]
    pattern = oracle.seq(*(oracle.one(part, part.lower()) for part in "ABC"))
    strategy: Strategy = "skip_till_next_match" if next_match else "skip_till_any_match"
    evaluation = PointEvaluation(compile_sequence(3, 7, next_match=next_match))
    if events:
        evaluation.push(
            column("ABC".index(event.type) for event in events),
            np.zeros(len(events), dtype=np.int64),
            column(event.lower for event in events),
            column(event.upper for event in events),
            column(int(event.id) for event in events),
            column(offsets),
            None,
            np.array(pool),
        )
    by_ids = rows_of(evaluation.close())
    expected = {
        match.ids: (match.range_lower, match.range_upper, pytest.approx(float(match.confidence), rel=1e-12))
        for match in oracle.answer(Query(pattern, 7, strategy=strategy), events)
    }
    assert by_ids == expected
