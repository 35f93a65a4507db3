"""Things that would decide answers about events that last, against worlds in which one of them is known."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import Lasting, SpanCase, span_cases
from tests.operators.test_span_facts import spans

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")

Thing = tuple[str, str]


def taken_off(case: SpanCase) -> dict[Thing, Fraction]:
    """Return how much knowing begins, ends, times of one length, and existence take off all scores."""
    whole: dict[Any, Fraction] = defaultdict(Fraction)
    # Of each thing and value how likely it is, and each match with it.
    chance: dict[tuple[Any, Any], Fraction] = defaultdict(Fraction)
    given_value: dict[tuple[Any, Any, Any], Fraction] = defaultdict(Fraction)
    rigid = {one.id: len({e - b for b, e in one.pairs()}) == 1 for one in case.events}
    for weight, world in case.worlds():
        facts: list[tuple[Any, Any]] = []
        for event in case.events:
            facts.append((("existence", event.id, 0), event in world))
            sides = range(1 if rigid[event.id] else 2) if event in world else ()
            facts += [(("time", event.id, side), world[event][side]) for side in sides]
        keys = {key for key, _ in case.matches(world)}
        for key in keys:
            whole[key] += weight
        for thing, value in facts:
            chance[thing, value] += weight
            for key in keys:
                given_value[thing, value, key] += weight
    off: dict[Thing, Fraction] = defaultdict(Fraction)
    exists = {one.id: one.probability for one in case.events}
    for thing in {thing for thing, _ in chance}:
        kind, number, _ = thing
        values = [value for one, value in chance if one == thing]
        for key, probability in whole.items():
            square = Fraction(0)
            for value in values:
                # A time is known whether or not the event happened.
                share = chance[thing, value] / (exists[number] if kind == "time" else 1)
                if share:
                    answer = given_value[thing, value, key] / share
                    if kind == "time":
                        answer += given_value[("existence", number, 0), False, key]
                    square += share * answer * answer
            off[kind, str(number)] += square - probability * probability
    return {thing: value for thing, value in off.items() if value}


@pytest.mark.parametrize("negating", [False, True])
@FEWER
@given(data=st.data())
def test_what_is_taken_off_is_that_of_worlds(negating: bool, data: st.DataObject) -> None:
    case = data.draw(span_cases(negating=negating))
    # Groups of matches do not know two sides.
    conditions = tuple(one for one in case.conditions if not one.text.startswith("NOT ("))
    case = replace(case, events=tuple(map(untied, case.events)), conditions=conditions)
    note(f"{case.text()}\n{case.events}")
    result = uc.deciding(case.table(), case.text(), by="event")
    have = {(row["kind"], row["name"]): row["brier_off"] for row in result.sources.to_pylist()}
    expected = taken_off(case)
    for thing in have.keys() | expected.keys():
        assert math.isclose(have.get(thing, 0.0), expected.get(thing, 0), rel_tol=1e-9, abs_tol=1e-12), thing
    before = sum((p * (1 - p) for _, _, p in case.answer().values()), Fraction(0))
    assert math.isclose(result.open, before, rel_tol=1e-9, abs_tol=1e-12)


def untied(event: Lasting) -> Lasting:
    """Return an event of a certain length in place of one whose ends tell of each other."""
    pairs = event.pairs()
    begins, ends = {begin for begin, _ in pairs}, {end for _, end in pairs}
    if len(pairs) == len(begins) * len(ends):
        return event
    length = min(end - begin for begin, end in pairs)
    return replace(event, begin=(min(begins), max(begins)), end=None, length=(length, length))


def test_long_times_cost_no_ticks() -> None:
    million = 1_000_000
    minute = (60 * million, 60 * million)
    events = spans(
        ("M", 1, (1, million), None, minute),
        ("R", 2, (30 * million, 90 * million), None, None),
    )
    query = f"PATTERN AND(M m, R r) WHERE m CONTAINS r WITHIN {1000 * million}"
    rows = uc.deciding(events, query, by="event").sources.to_pylist()
    assert [row["name"] for row in rows] == ["2", "1"]
    assert rows[0]["share"] > 0.9


def test_tied_ends_are_refused() -> None:
    events = spans(("A", 1, (0, 5), (3, 9), None), ("B", 2, (0, 9), None, None))
    with pytest.raises(uc.OptionError, match="tied by bounds of the length"):
        uc.deciding(events, "PATTERN AND(A a, B b) WHERE a CONTAINS b WITHIN 100")
