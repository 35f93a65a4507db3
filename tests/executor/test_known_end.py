"""known_until=: matches with a gap that can end behind the known end are left out, as the worlds tell."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import BESIDE, beside_cases
from tests.cases.clocks import by_clocks, in_sequence
from tests.cases.comparison import assert_answer, assert_same
from tests.cases.existence import doubtful
from tests.cases.language import PatternCase, language_cases
from tests.cases.negated_groups import group_cases
from tests.cases.nested import nested_cases, reading_cases
from tests.cases.options import option_cases
from tests.cases.repeats import repeated_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases
from uncertain_cep.testing.model import Event, Key
from uncertain_cep.testing.patterns import Binding, Candidate, World, candidates, components
from uncertain_cep.testing.worlds import key_of, range_in, worlds

WAYS: Final[list[dict[str, Any]]] = [
    {"threads": 3},
    {"evaluation": "point"},
    {"confidence": False},
    {"approximate": 0.01},
]

_CONDITION = re.compile(
    r"TIME\((?P<later>[^)]*)\)(?: - TIME\((?P<earlier>[^)]*)\))? (?P<relation>\S+) (?P<ends>.*)"
)
_BOTH_SIDES = re.compile(r" - TIME\((?P<mention>[^)]*)\)$")
_BOUND = re.compile(r"(?:(?P<bound>\S+)\.x \+ )?(?P<number>-?\d+)")


def mentioned(mention: str, binding: Binding) -> list[Event]:
    """Return the events that ``v``, ``v[i]``, ``v[i-1]``, ``v[1]`` or ``v[v.LEN]`` stands for."""
    name, _, index = mention.removesuffix("]").partition("[")
    bound = binding[name]
    if isinstance(bound, Event):
        return [bound]
    return list({"1": bound[:1], "i-1": bound[:-1], f"{name}.LEN": bound[-1:]}.get(index, bound))


def cuts(case: PatternCase, negated: str, binding: Binding, world: World) -> Iterator[int]:
    """Yield the ticks behind which conditions on the time of a negated event let it forbid nothing."""
    for asked in case.times:
        text, mentioned_alone = asked.text, None
        cancelled = _BOTH_SIDES.search(text)
        if cancelled is not None:
            # A time on both sides says nothing, but the condition mentions it.
            text, mentioned_alone = text.replace(cancelled[0], "", 1), cancelled["mention"]
            text = "".join(part.removesuffix(cancelled[0]) for part in re.split("( AND )", text))
        found = _CONDITION.fullmatch(text)
        assert found is not None
        later, earlier = found["later"], found["earlier"]
        bounds = list(_BOUND.finditer(found["ends"]))
        relations = [found["relation"]] if len(bounds) == 1 else [">=", "<="]
        mentions = [later, earlier, mentioned_alone, *(each["bound"] for each in bounds)]
        names = {mention.partition("[")[0] for mention in mentions if mention is not None}
        if negated not in (later, earlier) or not names - {negated} <= binding.keys():
            continue
        if mentioned_alone not in (None, negated) and not mentioned(str(mentioned_alone), binding):
            continue
        for relation, each in zip(relations, bounds, strict=True):
            if each["bound"] == negated:
                continue
            if relation not in (("<", "<=", "=") if later == negated else (">", ">=", "=")):
                continue
            limits = [int(each["number"])]
            if each["bound"] is not None:
                values: list[Any] = [event["x"] for event in mentioned(each["bound"], binding)]
                if None in values:
                    # Then nothing is forbidden.
                    yield -10_000
                limits = [value + limits[0] for value in values if value is not None]
            other = earlier if later == negated else later
            for limit in limits:
                if other is None:
                    yield limit - (relation == "<")
                    continue
                for event in mentioned(other, binding):
                    if later == negated:
                        yield world[event] + limit - (relation == "<")
                    else:
                        yield world[event] - limit - (relation == ">")


def gap_ends(case: PatternCase, candidate: Candidate, world: World, first: int) -> Iterator[int]:
    """Yield the last tick of each gap of a match in a world."""
    if case.strategy != "skip_till_any_match":
        yield from (world[event] - 1 for event in candidate.events[1:])
    elif not case.times:
        for gap in candidate.gaps:
            trailing = gap.place == "trailing"
            yield first + case.window - 1 if trailing else min(world[event] for event in gap.before) - 1
        return
    behind = list(candidate.events)
    parts = components(candidate.pattern)
    # An event of a negated group forbids with one of its last component.
    last_of = {part.joint: part.variable for part in parts if part.joint}
    for component in parts:
        if not component.negated:
            bound = candidate.binding[component.variable]
            behind = behind[1 if isinstance(bound, Event) else len(bound) :]
            continue
        if last_of.get(component.joint, component.variable) != component.variable:
            continue
        end = world[behind[0]] - 1 if behind else first + case.window - 1
        if component.variable in BESIDE and not component.joint:
            # Beside a set conditions alone end it.
            end = 10_000
        yield min([end, *cuts(case, component.variable, candidate.binding, world)])


def undecided(case: PatternCase, end: int) -> set[Key]:
    """Return the signatures of the matches with a gap that ends behind a tick in one of their worlds."""
    query, events = case.query(), case.trace.events
    choices = list(candidates(query, events))
    found = set[Key]()
    for _, world in worlds(events):
        for candidate in choices:
            times = range_in(candidate, case.window, world)
            if times is not None and any(last > end for last in gap_ends(case, candidate, world, times[0])):
                found.add(key_of(candidate, query))
    return found


def warned(call: Any) -> tuple[Any, int]:
    """Return the result of a call, and how many matches it warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = call()
    numbers = [re.match(r"([\d,]+) match(es)? (left out|with a negation)", str(one.message)) for one in said]
    return result, sum(int(found[1].replace(",", "")) for found in numbers if found is not None)


def check(case: PatternCase, end: int, **options: Any) -> None:
    """Assert that the engine leaves out what is undecided, and counts it."""
    note(f"{case.text()} known_until={end}")
    absent = undecided(case, end)
    wanted = [match for match in case.answer() if (match.partition, match.signature) not in absent]
    table = case.trace.table()
    result, count = warned(lambda: uc.match(table, case.text(), known_until=end, **options))
    assert_answer(case.rows(result), wanted)
    assert count == len(absent)


@given(case=language_cases(), end=st.integers(-3, 12))
def test_of_sequences_the_worlds_tell_what_is_undecided(case: PatternCase, end: int) -> None:
    check(case, end)


@given(case=timed_cases(), end=st.integers(-3, 12))
def test_conditions_on_times_cut_gaps(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=option_cases(), end=st.integers(-3, 12))
def test_of_options_each_reading_has_its_gaps(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=group_cases(repeated=False), end=st.integers(-3, 12))
def test_the_last_of_a_negated_group_ends_its_gap(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=repeated_cases(largest=4), end=st.integers(-3, 12))
def test_of_repeated_groups_each_iteration_has_its_gaps(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=beside_cases(4), end=st.integers(-3, 12))
def test_beside_a_set_conditions_alone_end_a_gap(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=nested_cases("SAO"), end=st.integers(-3, 12))
def test_of_sets_the_earliest_event_ends_a_gap(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=reading_cases(), end=st.integers(-3, 12))
def test_of_readings_any_may_be_undecided(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(
    case=st.sampled_from([by_clocks, in_sequence]).flatmap(lambda kind: kind(language_cases(most=4))),
    end=st.integers(-3, 12),
)
def test_clocks_move_the_events_that_end_a_gap(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=doubtful(timed_cases(most=4)), end=st.integers(-3, 12))
def test_what_may_not_have_happened_spoils_less(case: PatternCase, end: int) -> None:
    check(case, end)


@FEWER
@given(case=timed_cases("skip_till_any_match"), end=st.integers(0, 8), way=st.sampled_from(WAYS))
def test_every_way_leaves_out_the_same(case: PatternCase, end: int, way: dict[str, Any]) -> None:
    table, text = case.trace.table(), case.text()
    whole, count = warned(lambda: uc.match(table, text, known_until=end))
    found, also = warned(lambda: uc.match(table, text, known_until=end, **way))
    assert also == count
    if way.get("confidence", True):
        assert_same(case.rows(found), case.rows(whole))
    else:
        assert case.rows(found).keys() == case.rows(whole).keys()
    batches, also = warned(lambda: list(uc.iter_matches(table, text, known_until=end, batch_rows=1)))
    assert (sum(batch.num_rows for batch in batches), also) == (whole.num_rows, count)


@given(case=language_cases(), end=st.integers(0, 10), every=st.sampled_from(["", "EVERY 2 ticks"]))
def test_expected_counts_are_of_decided_matches(case: PatternCase, end: int, every: str) -> None:
    note(case.text())
    absent = undecided(case, end)
    wanted: dict[int, Fraction] = defaultdict(Fraction)
    for match in case.answer():
        if (match.partition, match.signature) not in absent:
            for first, mass in match.first_times.items():
                wanted[first // 2 * 2 if every else 0] += mass
    text = case.text(f"RETURN EXPECTED COUNT {every}")
    found, _ = warned(lambda: uc.match(case.trace.table(), text, known_until=end))
    rows = {row.get("bucket", 0): row["expected_count"] for row in found.to_pylist()}
    if not every:
        wanted[0] += 0
    assert rows.keys() == wanted.keys()
    assert all(math.isclose(rows[key], wanted[key], rel_tol=1e-9, abs_tol=1e-12) for key in wanted)


@given(case=language_cases(), end=st.integers(0, 10), most=st.integers(1, 3))
def test_what_is_undecided_takes_no_place_among_the_best(case: PatternCase, end: int, most: int) -> None:
    table = case.trace.table()
    decided, _ = warned(lambda: uc.match(table, case.text("ORDER BY CONFIDENCE DESC"), known_until=end))
    best, _ = warned(
        lambda: uc.match(table, case.text(f"ORDER BY CONFIDENCE DESC LIMIT {most}"), known_until=end)
    )
    assert best.equals(decided.slice(0, most))
    apart, _ = warned(lambda: uc.match(table, case.text("OUTPUT NON OVERLAPPING"), known_until=end))
    if decided.num_rows:
        assert decided.slice(0, 1).to_pylist()[0]["confidence"] in apart.column("confidence").to_pylist()


@given(case=st.one_of(language_cases(), timed_cases()))
def test_without_a_known_end_the_last_event_is_one_for_the_warning(case: PatternCase) -> None:
    note(case.text())
    ticks = [[tick for tick, _ in event.own_ticks()] for event in case.trace.events]
    if not ticks:
        return
    behind = undecided(case, max(map(max, ticks)))
    found, count = warned(lambda: uc.match(case.trace.table(), case.text()))
    assert_answer(case.rows(found), case.answer())
    # Of uncertain times bounds alone are looked at.
    assert count >= len(behind)
    if all(len(each) == 1 for each in ticks):
        assert count == len(behind)


DOWN = "PATTERN SEQ(Down d, !Up u) WHERE [host] WITHIN 10 minutes"


def hosts(unit: str, zone: str | None = None) -> pa.Table:
    """Return two hosts that go down, at 8:00 and 8:03; a third event shows how far the trace goes."""
    start = datetime(2026, 1, 5, 8)
    times = [start, start + timedelta(minutes=3), start + timedelta(minutes=5)]
    column = pa.array(times, pa.timestamp(unit, zone))
    return pa.table(
        {
            "type": ["Down", "Down", "Up"], "id": [1, 2, 3], "lower": column, "upper": column,
            "host": ["a", "b", "c"],
        }
    )  # fmt: skip


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("tick", ["1s", "1us"])
def test_a_time_is_one_of_the_events_whatever_their_unit(unit: str, zone: str | None, tick: str) -> None:
    table = hosts(unit, zone)
    moment = datetime(2026, 1, 5, 8, 10)
    for end in (
        "2026-01-05T08:10:00", "2026-01-05 08:10", "2026-01-05T09:10:00+01:00", moment,
        moment.replace(tzinfo=UTC), pd.Timestamp(moment), np.datetime64(moment),
    ):  # fmt: skip
        # The gap of 8:00 ends one tick before 8:10.
        found, count = warned(lambda end=end: uc.match(table, DOWN, tick=tick, known_until=end))
        assert (found.column("d").to_pylist(), count) == ([1], 1)
    found, count = warned(lambda: uc.match(table, DOWN, tick=tick, known_until="2026-01-05T08:09:58.5"))
    assert (found.num_rows, count) == (0, 2)


def test_without_a_known_end_a_warning_counts_gaps_behind_the_last_event() -> None:
    with pytest.warns(uc.UncertainCepWarning, match="^2 matches with a negation.*2026-01-05T08:05:00: no"):
        assert uc.match(hosts("us"), DOWN).num_rows == 2
    with pytest.warns(uc.UncertainCepWarning, match="^1 match with a negation"):
        assert uc.match(hosts("us"), DOWN.replace("10", "4")).num_rows == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert uc.match(hosts("us"), DOWN.replace("10", "2")).num_rows == 2
        # It ends with an event, so not behind the last one.
        assert uc.match(hosts("us"), "PATTERN SEQ(Down d, !Down n, Up u) WITHIN 1 hour").num_rows == 1


def test_the_limit_says_that_there_may_be_more() -> None:
    table = pa.table({"type": ["A", "A", "N"], "id": [1, 2, 3], "lower": [1, 2, 9], "upper": [1, 2, 9]})
    query = "PATTERN SEQ(A a, !N n) WITHIN 50 ORDER BY CONFIDENCE DESC LIMIT 1"
    with pytest.warns(uc.UncertainCepWarning, match=r"^at least \d match(es)? left out as undecided"):
        assert not uc.match(table, query.replace("!N", "!M"), known_until=20).num_rows


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("yesterday", "known_until='yesterday': it must be a time"),
        (True, "known_until=True: it must be a time"),
        (1.5, "known_until=1.5: it must be a time"),
        (float("nan"), "known_until=nan"),
        (pd.NaT, "known_until=NaT"),
        (17, "known_until=17: the times of these events are timestamps"),
    ],
)
def test_what_is_no_time_of_the_events_is_refused(end: Any, said: str) -> None:
    with pytest.raises(uc.OptionError, match=said):
        uc.match(hosts("us"), DOWN, known_until=end)


def test_a_time_is_none_of_ticks() -> None:
    table = pa.table({"type": ["A"], "id": [1], "lower": [1], "upper": [1]})
    with pytest.raises(uc.OptionError, match="give a number of ticks"):
        uc.match(table, "PATTERN SEQ(A a, !N n) WITHIN 5", known_until="2026-01-05")


def test_explain_says_up_to_when_events_are_known() -> None:
    text = uc.explain(DOWN, hosts("us"), known_until="2026-01-05T08:10Z")
    assert "known until" in text
    assert "2026-01-05T08:10:00: matches with a gap" in text
    found = json.loads(uc.explain(DOWN, hosts("us", "UTC"), known_until="2026-01-05T08:10Z", format="json"))
    assert found["known_until"] == "2026-01-05T08:10:00Z"


def test_a_report_says_up_to_when_events_are_known() -> None:
    page, count = warned(lambda: uc.report(hosts("us"), DOWN, known_until="2026-01-05T08:10Z"))
    assert "All events are known until 2026-01-05T08:10:00" in str(page)
    assert count == 1
