"""Worked facts about events that last, and about the time between events: each by exact fractions.

Those of relations and clocks stand in `test_spans`, those of joins in `tests/joining`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.cases.moments import moments


def spans(
    *rows: tuple[str, int, tuple[int, int] | None, tuple[int, int] | None, tuple[int, int] | None],
) -> Any:
    """Return events by type, id and the bounds of begin, end and length; points have an end of None."""
    columns: dict[str, list[Any]] = {"type": [], "id": [], "lower": [], "upper": []}
    columns |= {f"{pair}_{side}": [] for pair in ("begin", "end", "length") for side in ("lower", "upper")}
    for type_, number, begin, end, length in rows:
        assert begin is not None
        longest = 0 if length is None else length[1]
        upper = end[1] if end is not None else begin[1] + longest
        columns["type"].append(type_)
        columns["id"].append(number)
        columns["lower"].append(begin[0])
        columns["upper"].append(upper)
        is_point = end is None and length is None
        for name, pair in (("begin", begin), ("end", end), ("length", length)):
            for side in (0, 1):
                value = None if is_point or pair is None else pair[side]
                columns[f"{name}_{('lower', 'upper')[side]}"].append(value)
    types = {name: pa.string() if name == "type" else pa.int64() for name in columns}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def confidence(events: pa.Table, pattern: str, condition: str = "") -> float:
    """Return the confidence of the one match there is; 0 without one."""
    where = f"WHERE {condition}" if condition else ""
    rows = uc.match(events, f"PATTERN {pattern} {where} WITHIN 100").to_pylist()
    assert len(rows) <= 1
    return float(rows[0]["confidence"]) if rows else 0.0


def test_the_law_of_a_length() -> None:
    """Fact 1: begin and end on 0..9: lengths are triangular, a third of the bounds on average."""
    events = spans(("A", 1, (0, 9), (0, 9), None))
    law = [confidence(events, "SEQ(A a)", f"DURATION(a) = {length}") for length in range(11)]
    assert law == pytest.approx([*(Fraction(10 - length, 55) for length in range(10)), 0])
    assert sum(length * chance for length, chance in enumerate(law)) == pytest.approx(3)


def test_pairs_that_three_bounds_leave() -> None:
    """Fact 1: begin 0..4, end 4..6, length 2..3: six pairs, alike likely."""
    events = spans(("A", 1, (0, 4), (4, 6), (2, 3)))
    law = {
        (begin, end): confidence(events, "SEQ(A a)", f"TIME(a.begin) = {begin} AND TIME(a.end) = {end}")
        for begin, end in product(range(5), range(4, 7))
    }
    possible = {pair: chance for pair, chance in law.items() if chance}
    assert possible.keys() == {(1, 4), (2, 4), (2, 5), (3, 5), (3, 6), (4, 6)}
    assert list(possible.values()) == pytest.approx([1 / 6] * 6)


def test_what_relations_leave_to_others() -> None:
    """Facts 2 to 4: an end at a begin, before, and two spans that are the same."""
    rigid = spans(("A", 1, (0, 4), None, (3, 3)), ("B", 2, (2, 6), None, (2, 2)))
    loose = spans(("A", 1, (0, 4), (3, 7), None), ("B", 2, (2, 6), (5, 8), None))
    alike = spans(("A", 1, (0, 4), (0, 4), None), ("B", 2, (0, 4), (0, 4), None))
    meets = "TIME(a.end) - TIME(b.begin) = 0"
    same = "TIME(a.begin) - TIME(b.begin) = 0 AND TIME(a.end) - TIME(b.end) = 0"
    facts = {
        Fraction(4, 25): (rigid, meets), Fraction(47, 228): (loose, "a BEFORE b"),
        Fraction(7, 45): (alike, "a BEFORE b"), Fraction(1, 15): (alike, same),
    }  # fmt: skip
    for expected, (events, condition) in facts.items():
        assert confidence(events, "AND(A a, B b)", condition) == pytest.approx(expected)


def test_a_request_in_a_minute_that_was_averaged() -> None:
    """Fact 5: an average is of all of its period, a peak at one tick of it."""
    average = spans(("M", 2, (1, 1), (60, 60), None))
    peak = spans(("M", 2, (1, 60), None, None))
    peak = peak.set_column(3, "upper", pa.array([60]))
    request, later = (spans(("R", 1, begin, None, (5, 5))) for begin in ((20, 20), (55, 64)))
    for events, certain in ((average, 1.0), (peak, 1 / 10)):
        both = pa.concat_tables([request, events])
        assert confidence(both, "AND(R r, M m)", "m OVERLAPS r") == pytest.approx(certain)
    # Seconds 20 to 25 are six ticks of sixty.
    both = pa.concat_tables([later, average])
    assert confidence(both, "AND(R r, M m)", "r OVERLAPS m") == pytest.approx(3 / 5)
    (row,) = uc.match(both, "PATTERN AND(R r, M m) WHERE r DURING m WITHIN 100").to_pylist()
    assert (row["range_lower"], row["range_upper"]) == (1, 60)
    assert row["confidence"] == pytest.approx(1 / 10)
    # The same by the uncertainty of a stamp: (0, 60] is all of the minute.
    stamps = pa.table({"type": ["M"], "id": [2], "at": [60]})
    made = uc.to_intervals(stamps, time="at", uncertainty=uc.period(60))
    assert [made[name].to_pylist() for name in ("begin_lower", "end_upper")] == [[1], [60]]


def by_clock(events: pa.Table, clocks: list[str | None]) -> pa.Table:
    """Return certain spans whose clocks may be off by 5 ticks, each moved by its clock's offset."""
    off = pa.array([0 if clock is None else 5 for clock in clocks])
    for name in ("lower", "begin_lower", "end_lower", "upper", "begin_upper", "end_upper"):
        sign = pc.subtract if name.endswith("lower") else pc.add
        place = events.schema.get_field_index(name)
        events = events.set_column(place, name, sign(events[name], off))
    events = events.append_column("source", pa.array(clocks, pa.string()))
    events = events.append_column("offset_lower", pc.negate(off))
    return events.append_column("offset_upper", off)


def test_spans_by_one_clock_and_by_two() -> None:
    """Fact 6: both ends move by one offset, and so do all events of a clock."""
    events = spans(("A", 1, (10, 10), (14, 14), None), ("B", 2, (14, 14), (20, 20), None))
    overlaps, before = "a OVERLAPS b", "a BEFORE b"
    by_one, by_two = by_clock(events, ["h", "h"]), by_clock(events, ["h", "g"])
    assert confidence(by_one, "AND(A a, B b)", overlaps) == 1.0
    assert confidence(by_one, "AND(A a, B b)", before) == 0.0
    assert confidence(by_two, "AND(A a, B b)", overlaps) == pytest.approx(6 / 11)
    alone = spans(("A", 1, (5, 15), (9, 19), None), ("B", 2, (9, 19), (15, 25), None))
    assert confidence(alone, "AND(A a, B b)", overlaps) == pytest.approx(143 / 222)


def test_the_last_sample_by_hand_counts_ties_twice() -> None:
    """Fact 12: no sample between, and ties win both; an as-of join gives them to one."""
    right = moments([2, 3, 4], [3, 4, 0], [6, 5, 2])
    right = right.set_column(0, "type", pa.array(["R"] * 3))
    left = moments([1], [5], [5]).set_column(0, "type", pa.array(["L"]))
    events = pa.concat_tables([left, right])
    rows = uc.match(events, "PATTERN SEQ(R r, !R n, L l) WITHIN 100").to_pylist()
    assert {row["r"]: row["confidence"] for row in rows} == pytest.approx({2: 3 / 8, 3: 1 / 2, 4: 1 / 4})
    assert sum(row["confidence"] for row in rows) == pytest.approx(9 / 8)
    tied = moments([2, 3], [5, 5], [5, 5])
    partners = [uc.join_asof(left, tied, direction=each).to_pylist() for each in ("backward", "forward")]
    assert [[row["right_id"] for row in rows] for rows in partners] == [[3], [2]]
    (row,) = uc.join_asof(left, moments([2, 3], [6, 4], [6, 4]), direction="nearest").to_pylist()
    assert row["right_id"] == 3


def test_the_last_sample_by_independent_clocks() -> None:
    """Fact 14: the same bounds without clocks that two events share."""
    rows = uc.join_asof(moments([1], [5], [15]), moments([2, 3], [3, 7], [13, 17])).to_pylist()
    expected = [Fraction(54, 121), Fraction(397, 1331), Fraction(340, 1331)]
    assert sorted(row["probability"] for row in rows) == pytest.approx(sorted(map(float, expected)))


def test_the_time_between_two_events() -> None:
    """Fact 16."""
    events = spans(("A", 1, (0, 4), None, None), ("B", 2, (3, 6), None, None))
    events = events.select(["type", "id", "lower", "upper"])
    events = events.set_column(3, "upper", pa.array([4, 6]))
    whole = confidence(events, "SEQ(A a, B b)")
    assert whole == pytest.approx(17 / 20)
    law = [
        confidence(events, "SEQ(A a, B b)", f"TIME(b) - TIME(a) = {length}") / whole for length in range(1, 7)
    ]
    assert law == pytest.approx([Fraction(ways, 17) for ways in (3, 4, 4, 3, 2, 1)])
    assert sum(length * chance for length, chance in enumerate(law, 1)) == pytest.approx(3)


CONTAINED: Final = ("AND(A a, B b)", "a CONTAINS b")


def test_the_length_of_a_span_given_a_point_in_it() -> None:
    """Facts 8 and 17: longer spans are likelier to contain it."""
    events = spans(("A", 1, (0, 3), (2, 6), None), ("B", 2, (0, 6), None, None))
    pattern, condition = CONTAINED
    whole = confidence(events, pattern, condition)
    law = [
        confidence(events, pattern, f"{condition} AND DURATION(a) = {length}") / whole for length in range(7)
    ]
    assert law == pytest.approx([Fraction(ways, 70) for ways in (2, 6, 12, 16, 15, 12, 7)])
    alone = [confidence(events, "SEQ(A a)", f"DURATION(a) = {length}") for length in range(7)]
    assert alone == pytest.approx([Fraction(ways, 19) for ways in (2, 3, 4, 4, 3, 2, 1)])


ALLEN: Final = {
    "before": ("e_x < b_y", 9), "meets": ("e_x = b_y", 16),
    "overlaps": ("b_x < b_y AND b_y < e_x AND e_x < e_y", 15),
    "finished-by": ("b_x < b_y AND e_x = e_y", 19), "contains": ("b_x < b_y AND e_y < e_x", 31),
    "starts": ("b_x = b_y AND e_x < e_y", 10), "equal": ("b_x = b_y AND e_x = e_y", 8),
    "started-by": ("b_x = b_y AND e_y < e_x", 15), "finishes": ("b_y < b_x AND e_x = e_y", 7),
    "during": ("b_y < b_x AND e_x < e_y", 5),
    "overlapped-by": ("b_y < b_x AND b_x < e_y AND e_y < e_x", 12), "met-by": ("e_y = b_x", 6),
    "after": ("e_y < b_x", 0),
}  # fmt: skip
"""Allen's thirteen relations, and how many of 153 worlds are in each."""


@pytest.mark.parametrize("relation", ALLEN)
def test_relations_of_allen(relation: str) -> None:
    """Fact 19: with lengths of one tick or more they exclude each other, and are all there is."""
    events = spans(("X", 1, (0, 3), (2, 6), (1, 6)), ("Y", 2, (1, 4), (3, 5), (1, 4)))
    condition, ways = ALLEN[relation]
    for short, time in (("b_x", "x.begin"), ("e_x", "x.end"), ("b_y", "y.begin"), ("e_y", "y.end")):
        condition = condition.replace(short, f"TIME({time})")
    assert confidence(events, "AND(X x, Y y)", condition) == pytest.approx(ways / 153)


def test_relations_of_allen_are_all() -> None:
    assert sum(ways for _, ways in ALLEN.values()) == 153
