"""The worked facts of SEMANTICS 11.10, and what 11.3 says of ties, by the oracle."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.oracle import Event, Query, answer, answer_literally, formula_answer, no, one, plus, seq
from tests.oracle.examples import event, rows
from uncertain_cep.testing.model import Clock, Entry

A_B = Query(seq(one("A", "a"), one("B", "b")), window=5)
H, G = Clock(-5, 5), Clock(-5, 5)

Rows = dict[tuple[Entry, ...], tuple[int, int, Fraction]]


def asked(query: Query, *events: Event) -> Rows:
    """Return the answer, which all forms of the oracle give."""
    answer_rows = rows(answer_literally(query, events))
    assert rows(answer(query, events)) == answer_rows
    by_formula = {
        tuple(entry for _, entry in key[1]): row  # type: ignore[index]
        for key, row in formula_answer(query, events).items()
    }
    assert by_formula == answer_rows
    return answer_rows


def test_order_by_one_clock_is_certain() -> None:
    a, b = event("A", 1, 10, clock=H), event("B", 2, 12, clock=H)
    assert asked(A_B, a, b) == {(1, 2): (5, 17, Fraction(1))}
    apart = [replace(each, clock=None) for each in (a, b)]
    assert asked(A_B, *apart)[1, 2][2] == Fraction(40, 121)
    assert asked(Query(seq(one("B", "b"), one("A", "a")), window=5), a, b) == {}


def test_equal_readings_tie_unless_there_are_sequences() -> None:
    events = [event(type, id, 10, clock=H) for id, type in enumerate("AB")]
    assert asked(A_B, *events) == {}
    first, second = (replace(each, sequence=number) for number, each in enumerate(events, 1))
    assert asked(A_B, first, second) == {(0, 1): (5, 15, Fraction(1))}
    assert asked(A_B, replace(first, sequence=3), second) == {}
    assert asked(A_B, replace(first, sequence=None), second) == {}
    assert asked(A_B, first, replace(second, clock=G, sequence=2))[0, 1][2] < 1


def test_a_block_of_one_clock_around_another() -> None:
    query = Query(seq(one("A", "a"), one("M", "m"), one("B", "b")), window=5)
    events = event("A", 1, 10, clock=H), event("M", 2, 11, clock=G), event("B", 3, 12, clock=H)
    assert asked(query, *events)[1, 2, 3][2] == Fraction(11, 121)
    four = Query(seq(*(one(type, type.lower()) for type in "ABCD")), window=9)
    taking_turns = [
        event(type, id, 10 + 2 * (id // 2), clock=(H, G)[id % 2]) for id, type in enumerate("ABCD")
    ]
    assert asked(four, *taking_turns)[0, 1, 2, 3][2] == Fraction(10, 121)


@pytest.mark.parametrize(("shared", "confidence"), [(True, Fraction(1, 4)), (False, Fraction(3, 8))])
def test_forbidden_events_of_one_clock_go_together(shared: bool, confidence: Fraction) -> None:
    z = Clock(0, 3)
    query = Query(seq(one("A", "a"), no("N", "n"), one("B", "b")), window=9)
    forbidden = [event("N", id, 2 * id, clock=z if shared else Clock(0, 3)) for id in range(2)]
    assert asked(query, event("A", "a", 0), event("B", "b", 3), *forbidden)["a", "b"][2] == confidence


def test_neighbouring_pairs_are_no_upper_bound() -> None:
    h, g = Clock(-1, 2), Clock(-1, 2)
    clocks, readings = (h, g, h, g), (0, 0, 9, 9)
    events = [
        event(type, id, reading, clock=clock)
        for id, (type, reading, clock) in enumerate(zip("ABCD", readings, clocks, strict=True))
    ]
    query = Query(seq(*(one(type, type.lower()) for type in "ABCD")), window=100)
    assert asked(query, *events)[0, 1, 2, 3][2] == Fraction(3, 8)
    pairs = Fraction(1)
    for first, second in ("AB", "BC", "CD"):
        pair = Query(seq(one(first, "x"), one(second, "y")), window=100)
        pairs *= next(iter(asked(pair, *events).values()))[2]
    assert pairs == Fraction(9, 64)


def test_records_of_one_day_by_hours() -> None:
    query = replace(A_B, window=24)
    day = Clock(0, 0)
    events = [event(type, id, 0, 23, clock=day, sequence=id) for id, type in enumerate("AB", 1)]
    assert asked(query, *events)[1, 2][2] == Fraction(300, 576)
    in_order = replace(day, ordered=True)
    answer_rows = rows(answer_literally(query, [replace(each, clock=in_order) for each in events]))
    assert answer_rows == {(1, 2): (0, 23, Fraction(1))}


def test_ordered_records_condition_each_other() -> None:
    """Also those outside the match: the first of three is earlier than the first of two."""
    query = Query(seq(one("A", "a"), one("M", "m")), window=24)
    day = Clock(0, 0, ordered=True)
    events = [event(type, id, 0, 2, clock=day, sequence=id) for id, type in enumerate("ABC", 1)]
    noon = event("M", 9, 1)
    assert rows(answer_literally(query, [events[0], noon]))[1, 9][2] == Fraction(1, 3)
    assert rows(answer_literally(query, [*events[:2], noon]))[1, 9][2] == Fraction(3, 6)
    assert rows(answer_literally(query, [*events, noon]))[1, 9][2] == Fraction(6, 10)


def test_no_world_may_be_left() -> None:
    day = Clock(0, 0, ordered=True)
    events = [event("A", 1, 5, clock=day, sequence=2), event("B", 2, 6, clock=day, sequence=1)]
    with pytest.raises(ValueError, match="no world is left"):
        answer_literally(A_B, events)


def test_ties_that_sequences_break_are_inside_gaps() -> None:
    """Three readings of one tick: the middle one spoils, one that ties without a sequence does not."""
    query = Query(seq(one("A", "a"), no("N", "n"), one("B", "b")), window=5)
    a, b = (event(type, id, 7, clock=H, sequence=id) for id, type in ((1, "A"), (3, "B")))
    between = event("N", 2, 7, clock=H, sequence=2)
    assert asked(query, a, b, between) == {}
    for other in (replace(between, sequence=None), replace(between, sequence=3), replace(between, clock=G)):
        assert asked(query, a, b, other)[1, 3][2] == 1


def test_kleene_elements_of_one_tick_stand_by_their_sequences() -> None:
    query = Query(seq(plus("A", "a")), window=5)
    events = [event("A", id, 7, clock=H, sequence=id) for id in (1, 2)]
    answer_rows = asked(query, *events)
    assert answer_rows.keys() == {((1,),), ((2,),), ((1, 2),)}
    assert answer_rows[((1, 2),)][2] == 1


def test_own_intervals_must_be_left() -> None:
    with pytest.raises(ValueError, match="lower > upper"):
        Event("A", 1, 0, 3, clock=Clock(0, 5))
