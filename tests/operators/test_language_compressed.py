"""kleene="compressed": what it says of each choice of the other events is so in the possible worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Trace
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.language import RELATIONS, language_cases
from uncertain_cep.executor import Slicing, execute
from uncertain_cep.plan import make_plan
from uncertain_cep.testing.model import Component, Event
from uncertain_cep.testing.patterns import agree, is_type
from uncertain_cep.testing.worlds import worlds
from uncertain_cep.weighers import explicit

TIMES = {name: test for name, test in RELATIONS.items() if name != "!="}


@dataclass(frozen=True)
class Case:
    """A trace and a query with one Kleene component; conditions are pairs of variables with a relation."""

    trace: Trace
    components: tuple[Component, ...]
    conditions: tuple[tuple[str, str, str], ...]
    agree: tuple[str, ...]
    window: int
    times: tuple[tuple[str, str | None, str, int], ...] = ()
    """Conditions on the difference of the times of two variables, or on that of one."""

    def text(self, tail: str = "") -> str:
        items = [
            f"({'|'.join(part.types)}){'+' * part.kleene} {part.variable}{'[]' * part.kleene}"
            for part in self.components
        ]
        kleene = {part.variable for part in self.components if part.kleene}
        asked = [f"[{name}]" for name in self.agree]
        for one, relation, other in self.conditions:
            sides = [f"{name}[i].x" if name in kleene else f"{name}.x" for name in (one, other)]
            asked.append(f"{sides[0]} {relation} {sides[1]}")
        for later, earlier, relation, number in self.times:
            shown = [f"TIME({name})" for name in (later, earlier) if name is not None]
            asked.append(f"{' - '.join(shown)} {relation} {number}")
        where = f"WHERE {' AND '.join(asked)}" if asked else ""
        return f"PATTERN SEQ({', '.join(items)}) {where} WITHIN {self.window} {tail}"

    def in_time(self, times: dict[str, int]) -> bool:
        """Return whether all conditions on the times of some variables hold."""
        found = []
        for one, other, relation, number in self.times:
            if one in times and (other is None or other in times):
                found.append(TIMES[relation](times[one] - (0 if other is None else times[other]), number))
        return all(found)

    def holds(self, bound: dict[str, Event]) -> bool:
        for one, relation, other in self.conditions:
            if one in bound and other in bound:
                values: list[Any] = [bound[one]["x"], bound[other]["x"]]
                if None in values or not RELATIONS[relation](*values):
                    return False
        return agree(list(bound.values()), self.agree)

    def answer(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Return for each choice of the others: events, range, confidence and the three expectations."""
        place = next(j for j, part in enumerate(self.components) if part.kleene)
        series = self.components[place]
        others = [part for part in self.components if not part.kleene]
        found = {}
        for chosen in permutations(self.trace.events, len(others)):
            bound = dict(zip((part.variable for part in others), chosen, strict=True))
            if not all(is_type(*pair) for pair in zip(others, chosen, strict=True)) or not self.holds(bound):
                continue
            able = [
                event
                for event in self.trace.events
                if event not in chosen
                and is_type(series, event)
                and self.holds({**bound, series.variable: event})
            ]
            row = self._row(place, chosen, able)
            if row is not None:
                key = tuple(chosen[0][name] for name in self.agree), tuple(event.id for event in chosen)
                found[key] = row
        return found

    def _row(self, place: int, chosen: tuple[Event, ...], able: list[Event]) -> tuple[Any, ...] | None:
        apart = some = sets = elements = Fraction(0)
        present: set[Any] = set()
        first: list[int] = []
        last: list[int] = []
        names = [part.variable for part in self.components if not part.kleene]
        series = self.components[place].variable
        for probability, world in worlds([*chosen, *able]):
            if not all(event in world for event in chosen):
                continue
            times = [world[event] for event in chosen]
            if any(s >= t for s, t in pairwise(times)) or times[-1] - times[0] >= self.window:
                continue
            known = dict(zip(names, times, strict=True))
            if not self.in_time(known):
                continue
            after = times[place - 1] if place > 0 else times[-1] - self.window
            before = times[place] if place < len(times) else times[0] + self.window
            inside = [
                event
                for event in able
                if event in world
                and after < world[event] < before
                and self.in_time({**known, series: world[event]})
            ]
            apart += probability
            sets += probability * (2 ** len(inside) - 1)
            elements += probability * len(inside)
            if inside:
                some += probability
                present.update(event.id for event in inside)
                whole = times + [world[event] for event in inside]
                first.append(min(whole))
                last.append(max(whole))
        if not some:
            return None
        return present, min(first), max(last), some, some / apart, sets / apart, elements / apart


@st.composite
def compressed_cases(draw: st.DrawFn) -> Case:
    """Draw a case with one Kleene component."""
    drawn = draw(language_cases("skip_till_any_match", most=5, asked=False))
    types = st.sampled_from([("A",), ("B",), ("A", "B"), ("A", "B", "C")])
    length = draw(st.integers(2, 3))
    place = draw(st.integers(0, length - 1))
    components = tuple(Component("abc"[j], draw(types), kleene=j == place) for j in range(length))
    names = st.sampled_from([part.variable for part in components])
    conditions = draw(st.lists(st.tuples(names, st.sampled_from(sorted(RELATIONS)), names), max_size=2))
    return Case(drawn.trace, components, tuple(conditions), (*drawn.agree, *drawn.chained), drawn.window)


@st.composite
def timed_cases(draw: st.DrawFn) -> Case:
    """Draw a case with conditions on times."""
    case = draw(compressed_cases())
    names = [part.variable for part in case.components]
    asked = []
    for _ in range(draw(st.integers(1, 2))):
        one, *others = draw(st.permutations(names))
        other = draw(st.sampled_from([None, *others]))
        asked.append((one, other, draw(st.sampled_from(sorted(TIMES))), draw(st.integers(-3, 5))))
    return replace(case, times=tuple(asked))


@given(compressed_cases())
def test_rows_are_what_the_worlds_hold(case: Case) -> None:
    check(case)


@given(timed_cases())
def test_rows_meet_conditions_on_times(case: Case) -> None:
    check(case)


def test_small_probabilities_keep_their_digits() -> None:
    events = pa.table(
        {
            "type": ["A", "B", "B", "C"],
            "id": [1, 2, 3, 4],
            "lower": [0, 0, 0, 10_000_000],
            "upper": [0, 9_999_999, 4_999_999, 10_000_000],
        }
    )
    query = "PATTERN SEQ(A a, B+ b[], C c) WHERE TIME(b) - TIME(a) <= 1 WITHIN 20000000"
    (row,) = uc.match(events, query, kleene="compressed").to_pylist()
    assert math.isclose(row["confidence"], 1e-7 + 2e-7 - 2e-14, rel_tol=1e-12)
    assert math.isclose(row["expected_elements"], 3e-7, rel_tol=1e-12)


@given(doubtful(compressed_cases()))
def test_rows_of_events_that_may_not_have_happened(case: Case) -> None:
    check(case)


@given(by_clocks(compressed_cases()))
def test_rows_of_events_that_share_clocks(case: Case) -> None:
    check(case)


@given(doubtful(by_clocks(compressed_cases())))
def test_rows_of_doubtful_events_that_share_clocks(case: Case) -> None:
    check(case)


@given(by_clocks(timed_cases()))
def test_rows_of_events_that_share_clocks_meet_conditions_on_times(case: Case) -> None:
    check(case)


@given(doubtful(by_clocks(timed_cases())))
def test_rows_of_doubtful_events_that_share_clocks_meet_conditions_on_times(case: Case) -> None:
    check(case)


def test_many_candidates_are_listed_in_parts() -> None:
    count = 40
    columns = {
        "type": ["A", *["B"] * count, "C", "C"],
        "id": list(range(count + 3)),
        "lower": [0, *[1] * count, 9, 9],
        "upper": [0, *[8] * count, 9, 9],
    }
    query = "PATTERN SEQ(A a, B+ b[], C c) WHERE TIME(b) - TIME(a) <= 4 WITHIN 20"
    with patch.object(explicit, "_MOST_SPOILERS", count):
        rows = uc.match(pa.table(columns), query, kleene="compressed").to_pylist()
    assert [row["c"] for row in rows] == [count + 1, count + 2]
    for row in rows:
        assert row["b"] == list(range(1, count + 1))
        assert math.isclose(row["confidence"], 1.0 - 0.5**count, rel_tol=1e-12)
        assert math.isclose(row["expected_elements"], count / 2, rel_tol=1e-12)


def check(case: Case) -> None:
    """Assert that the rows are what the worlds hold."""
    note(case.text())
    series = next(part.variable for part in case.components if part.kleene)
    single = [part.variable for part in case.components if not part.kleene]
    rows = {}
    for record in uc.match(case.trace.table(), case.text(), kleene="compressed").to_pylist():
        key = tuple(record[name] for name in case.agree), tuple(record[name] for name in single)
        assert key not in rows
        rows[key] = record
    expected = case.answer()
    assert rows.keys() == expected.keys()
    for key, (present, first, last, *numbers) in expected.items():
        row = rows[key]
        assert set(row[series]) == present
        assert len(row[series]) == len(present)
        assert (row["range_lower"], row["range_upper"]) == (first, last)
        names = ("confidence", "p_nonempty", "expected_subsets", "expected_elements")
        for name, number in zip(names, numbers, strict=True):
            assert math.isclose(row[name], number, rel_tol=1e-9), name


@given(compressed_cases(), st.sampled_from([0.1, 0.5, 1.0]))
def test_output_controls(case: Case, least: float) -> None:
    note(case.text())
    table = case.trace.table()
    whole = uc.match(table, case.text("ORDER BY CONFIDENCE DESC"), kleene="compressed").to_pylist()
    kept = case.text(f"HAVING CONFIDENCE >= {least} ORDER BY CONFIDENCE DESC")
    expected = [row for row in whole if row["confidence"] >= least]
    assert uc.match(table, kept, kleene="compressed").to_pylist() == expected
    without = uc.match(table, case.text(), kleene="compressed", confidence=False)
    assert without.num_rows == len(whole)
    assert "p_nonempty" not in without.column_names
    batches = uc.iter_matches(table, case.text(), kleene="compressed", batch_rows=2)
    assert sum(batch.num_rows for batch in batches) == len(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SEQ(A a, B b) WITHIN 5", "one Kleene component, not 0"),
        ("SEQ(A+ a[], B+ b[]) WITHIN 5", "one Kleene component, not 2"),
        ("SEQ(A+ a[]) WITHIN 5", "a component besides"),
        ("SEQ(A a, B+ b[], !C n) WITHIN 5", "without negated components"),
        ("SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) WITHIN 5", "not skip_till_next_match"),
        ("SEQ(A a, B+ b[]) WHERE b[i].lower > b[i-1].lower WITHIN 5", r"conditions on b\[i\] alone"),
        ("SEQ(A a, B+ b[]) WHERE count(b[]) > 2 WITHIN 5", r"conditions on b\[i\] alone"),
        ("SEQ(A a, B+ b[]) WHERE TIME(b[1]) - TIME(a) <= 2 WITHIN 5", r"conditions on b\[i\] alone"),
        ("SEQ(A a, B+ b[]) WITHIN 5 RETURN b[1].id AS first", r"conditions on b\[i\] alone"),
    ],
)
def test_what_cannot_be_compressed_is_refused(text: str, message: str) -> None:
    table = Trace((), {}).table()
    with pytest.raises(uc.OptionError, match=message):
        uc.match(table, f"PATTERN {text}", kleene="compressed")


def test_other_options_are_refused() -> None:
    table = Trace((), {}).table()
    with pytest.raises(uc.OptionError, match="kleene='short' is unknown"):
        uc.match(table, "PATTERN SEQ(A a, B+ b[]) WITHIN 5", kleene="short")
    with pytest.raises(uc.OptionError, match="leave approximate= out"):
        uc.match(table, "PATTERN SEQ(A a, B+ b[]) WITHIN 5", kleene="compressed", approximate=0.1)


@given(compressed_cases(), st.integers(-3, 3), st.sampled_from([1, 2, 5, 100]))
def test_slices_together_are_the_answer(case: Case, origin: int, length: int) -> None:
    """A row belongs to one slice, that of the first event besides those of a leading Kleene component."""
    note(case.text())
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text()), table.schema, kleene="compressed")
    back = case.window - 1 if plan.owner else 0
    events = case.trace.events
    longest = max((event.upper - event.lower for event in events), default=0)
    lowers = [event.lower for event in events] or [0]
    parts = []
    for number in range((min(lowers) - origin) // length, (max(lowers) - origin) // length + 1):
        begin = origin + number * length
        end = begin + length - 1 + longest + case.window - 1
        near = [event.lower <= end and event.upper >= begin - back for event in events]
        part = table.filter(pa.array(near, pa.bool_()))
        parts.append(part.append_column("slice", pa.array([number] * part.num_rows, pa.int64())))
    batches = execute(plan, pa.concat_tables(parts), slicing=Slicing("slice", origin, length))
    found = pa.Table.from_batches(batches, plan.output_schema).to_pylist()
    expected = uc.match(table, case.text(), kleene="compressed").to_pylist()
    assert len(found) == len(expected)
    kleene = next(part.variable for part in case.components if part.kleene)

    def key(row: dict[str, Any]) -> list[str]:
        return [str(value) for name, value in row.items() if len(name) == 1 and name != kleene]

    for one, other in zip(sorted(found, key=key), sorted(expected, key=key), strict=True):
        assert key(one) == key(other)
        assert set(one.pop(kleene)) == set(other.pop(kleene))
        for name in ("range_lower", "range_upper", "confidence", "p_nonempty", "expected_elements"):
            assert math.isclose(one[name], other[name], rel_tol=1e-9)
