"""Things that would decide answers, against worlds in which one time, clock or event is known."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import beside_cases
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, groupings
from tests.cases.language import language_cases
from tests.cases.negated_groups import group_cases
from tests.cases.nested import nested_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases
from uncertain_cep.testing.counted_worlds import Group, probabilities
from uncertain_cep.testing.model import Clock, Event, Query

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=4),
    "skip till next": language_cases("skip_till_next_match", most=4),
    "sets": nested_cases("SA", 4),
    "options": option_cases(most=4),
    "times": timed_cases(most=4),
    "negations beside sets": beside_cases(3),
    "negated groups": group_cases(),
    "doubtful": doubtful(language_cases(most=4)),
    "clocks": by_clocks(language_cases(most=4)),
    "doubtful clocks": doubtful(by_clocks(language_cases(most=3))),
}

Thing = tuple[str, str]
"""A kind and a name."""


def _at(event: Event, bounds: tuple[int, int], clock: Clock | None, pmf: Any = None) -> Event:
    """Return an event with another law of its own time, by another clock."""
    low, high = (0, 0) if clock is None else (clock.lower, clock.upper)
    return replace(event, lower=bounds[0] + low, upper=bounds[1] + high, clock=clock, pmf=pmf)


def _own(event: Event) -> tuple[int, int]:
    clock = event.clock
    return event.lower - (clock.lower if clock else 0), event.upper - (clock.upper if clock else 0)


def _known(
    events: tuple[Event, ...], names: list[str | None]
) -> Iterator[tuple[Thing, list[tuple[Fraction, list[Event]]]]]:
    """Yield each thing that can be known: for each value its probability, and the events once it is known.

    ``names`` are those of the events' clocks.
    """
    for number, event in enumerate(events):
        before, behind = events[:number], events[number + 1 :]
        yield (
            ("time", str(event.id)),
            [
                (weight, [*before, _at(event, (tick, tick), event.clock), *behind])
                for tick, weight in event.own_ticks()
            ],
        )
        if event.probability < 1:
            certain = replace(event, probability=Fraction(1))
            yield (
                ("existence", str(event.id)),
                [
                    (event.probability, [*before, certain, *behind]),
                    (1 - event.probability, [*before, *behind]),
                ],
            )
    clocks = {id(event.clock): (name, event.clock) for name, event in zip(names, events, strict=True)}
    for name, clock in clocks.values():
        if clock is None or name is None:
            continue
        choices = []
        for tick, weight in clock.offsets():
            settled = replace(clock, lower=tick, upper=tick, pmf=None)
            moved = [_at(one, _own(one), settled, one.pmf) if one.clock is clock else one for one in events]
            choices.append((weight, moved))
        yield ("clock", name), choices


def taken_off(
    query: Query, events: tuple[Event, ...], names: list[str | None], grouping: Grouping
) -> dict[Thing, Fraction]:
    """Return how much knowing each thing takes off the Brier scores of all answers."""

    def answers(of: Any) -> dict[Group, Fraction]:
        return probabilities(query, of, by=grouping.by, every=grouping.every, at_least=grouping.at_least)

    before = answers(events)
    off: dict[Thing, Fraction] = defaultdict(Fraction)
    for thing, values in _known(events, names):
        square: dict[Group, Fraction] = defaultdict(Fraction)
        for weight, settled in values:
            for group, chance in answers(settled).items():
                square[group] += weight * chance * chance
        off[thing] += sum((square[group] - chance * chance for group, chance in before.items()), Fraction(0))
    return {thing: value for thing, value in off.items() if value}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_what_is_taken_off_is_that_of_worlds(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    grouping: Grouping = data.draw(groupings(case.query()))
    text = case.text(grouping.clause)
    note(f"{text}\n{case.trace.events}")
    table = case.trace.table()
    result = uc.deciding(table, text, by="event")
    events = case.trace.events
    names = table["source"].to_pylist() if "source" in table.column_names else [None] * len(events)
    expected = taken_off(case.query(), events, names, grouping)
    have = {(row["kind"], row["name"]): row["brier_off"] for row in result.sources.to_pylist()}
    for thing in have.keys() | expected.keys():
        value = have.get(thing, 0.0)
        assert math.isclose(value, expected.get(thing, 0), rel_tol=1e-9, abs_tol=1e-12), thing
    open_before = sum(chance * (1 - chance) for chance in grouping.answer(case).values())
    assert math.isclose(result.open, open_before, rel_tol=1e-9, abs_tol=1e-12)


@FEWER
@given(case=language_cases(most=4))
def test_of_a_query_for_matches_each_match_is_an_answer(case: Any) -> None:
    table = case.trace.table()
    result = uc.deciding(table, case.text(), by="event", doubtful=1_000)
    confidences = [row["confidence"] for row in uc.match(table, case.text()).to_pylist()]
    assert result.count == len(confidences)
    open_before = sum(chance * (1.0 - chance) for chance in confidences)
    assert math.isclose(result.open, open_before, rel_tol=1e-9, abs_tol=1e-12)
    doubtful_ones = sorted(chance for chance in confidences if chance * (1.0 - chance) > 1e-12)
    have = sorted(row["probability"] for row in result.answers.to_pylist())
    assert have == pytest.approx(doubtful_ones, rel=1e-9)


def _events() -> pa.Table:
    """Return a sampled metric and a task of one clock: the window of the metric is wide, the clock good."""
    return pa.table(
        {
            "type": ["Task", "Peak", "Task", "Peak"],
            "id": ["t1", "p1", "t2", "p2"],
            "lower": [998, 0, 4998, 4000],
            "upper": [1002, 14_999, 5002, 18_999],
            "source": ["n1", "n2", "n1", "n2"],
            "offset_lower": [-2, 0, -2, 0],
            "offset_upper": [2, 0, 2, 0],
        }
    )


def test_it_says_what_to_do() -> None:
    query = "PATTERN SEQ(Task t, Peak p) WITHIN 20000 RETURN PROBABILITY BY t"
    result = uc.deciding(_events(), query, by="type")
    assert [(row["kind"], row["name"]) for row in result.sources.to_pylist()] == [
        ("time", "Peak"),
        ("clock", "n1"),
    ]
    assert "Most depends on when events of type Peak happened" in result.sentence
    assert result.sentence.endswith("would decide most; better clocks would change little.")
    assert result.count == 2
    shown = str(result)
    assert "brier_off" in shown
    assert "the most doubtful answers" in shown
    assert "<table>" in result._repr_html_()
    (first, *_) = result.answers.to_pylist()
    assert (first["kind"], first["name"]) == ("time", "p2")


@pytest.mark.parametrize(("by", "name"), [("source", "n2"), ("type", "Peak"), ("event", "p2")])
def test_times_are_summed_by_what_is_asked(by: str, name: str) -> None:
    result = uc.deciding(_events(), "PATTERN SEQ(Task t, Peak p) WITHIN 20000", by=by)
    assert name in {row["name"] for row in result.sources.to_pylist() if row["kind"] == "time"}


def test_what_is_in_the_trace_steers_no_terminal() -> None:
    events = _events().set_column(0, "type", pa.array(["Task", "Pe\x1b[2Jak"] * 2))
    events = events.set_column(1, "id", pa.array(["t1", "p\x1b[2J", "t2", "<b>"]))
    query = "PATTERN SEQ(Task t, ANY p) WITHIN 20000 RETURN PROBABILITY BY p"
    result = uc.deciding(events, query, by="type")
    assert any("\x1b" in row["name"] for row in result.sources.to_pylist())
    assert "\x1b" not in str(result)
    assert "<b>" not in result._repr_html_()


def test_nothing_is_open() -> None:
    events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 5], "upper": [0, 5]})
    certain = uc.deciding(events, "PATTERN SEQ(A a, B b) WITHIN 9")
    assert certain.sentence == "The one answer is certain."
    assert (certain.count, certain.open, certain.sources.num_rows) == (1, 0.0, 0)
    none = uc.deciding(events, "PATTERN SEQ(B b, A a) WITHIN 9 RETURN PROBABILITY BY a")
    assert none.sentence == "There is no match, so nothing is open."
    assert none.answers.column_names == ["a", "probability", "kind", "name", "brier_off", "made_certain"]
    assert str(none) == none.sentence


def test_frames_are_those_of_the_caller() -> None:
    pandas = pytest.importorskip("pandas")
    result = uc.deciding(_events().to_pandas(), "PATTERN SEQ(Task t, Peak p) WITHIN 20000")
    assert isinstance(result.sources, pandas.DataFrame)
    assert isinstance(result.answers, pandas.DataFrame)


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("PATTERN SEQ(A a) WITHIN 9 RETURN EXPECTED COUNT", {}, "expected counts"),
        ("PATTERN SEQ(A a) WITHIN 9", {"by": "clock"}, "use source, type or event"),
        ("PATTERN SEQ(A a) WITHIN 9", {"doubtful": -1}, "doubtful=-1"),
    ],
)
def test_what_is_refused(query: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=said):
        uc.deciding(_events(), query, **options)
