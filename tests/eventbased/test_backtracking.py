"""The backtracking search on plain arrays, beside trying everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.predicates.conditions import scratch
from eventbased.gaps.gap_events import UNLIMITED, ForbiddenEvents, contiguity_limits
from eventbased.search.backtracking import DEEPER, EXHAUSTED, FULL, TOO_LONG, search
from eventbased.search.negation_pruning import NegationPruning
from eventbased.search.sequences import completions
from eventbased.search.state import (
    FoundMatches,
    SearchCandidates,
    SearchPattern,
    SequenceLimits,
    Wanted,
    start_search,
)
from tests.cases.language import LanguageCase, language_cases
from tests.cases.layouts import candidates_of
from uncertain_cep.expressions.conditions import compile_conditions

Match = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Events:
    """Intervals, which of them each component takes, which components are Kleene ones, and the window."""

    intervals: list[tuple[int, int]]
    takes: list[list[int]]
    kleene: list[bool]
    window: int


@st.composite
def _events(draw: st.DrawFn) -> Events:
    count = draw(st.integers(1, 5))
    intervals = []
    for _ in range(count):
        lower = draw(st.integers(0, 5))
        intervals.append((lower, lower + draw(st.integers(0, 2))))
    length = draw(st.integers(1, 3))
    numbers = st.lists(st.integers(0, count - 1), min_size=1, unique=True)
    takes = [draw(numbers) for _ in range(length)]
    return Events(intervals, takes, [draw(st.booleans()) for _ in takes], draw(st.integers(1, 7)))


BUDGETS = st.sampled_from([1, 2, 7, 2**22])


def _possible(events: Events, chosen: Sequence[int]) -> bool:
    ticks = (range(low, high + 1) for low, high in (events.intervals[i] for i in chosen))
    return any(
        all(s < t for s, t in pairwise(times)) and times[-1] - times[0] <= events.window - 1
        for times in product(*ticks)
    )


def _tried(events: Events) -> set[Match]:
    options = [
        [
            chosen
            for size in (range(1, len(takes) + 1) if many else (1,))
            for chosen in permutations(takes, size)
        ]
        for takes, many in zip(events.takes, events.kleene, strict=True)
    ]
    found = set()
    for choice in product(*options):
        whole = [event for part in choice for event in part]
        if len(set(whole)) == len(whole) and _possible(events, whole):
            found.add(choice)
    return found


def _searched(events: Events, most: int, depth: int, room: int, steps: int) -> list[Match]:
    low = [np.array([events.intervals[i][0] for i in takes]) for takes in events.takes]
    high = [np.array([events.intervals[i][1] for i in takes]) for takes in events.takes]
    window = min(events.window, 9)
    laid = candidates_of(low, high, step=0)
    count = int(laid.first[-1])
    row = np.concatenate(
        [
            np.array(takes)[laid.source[laid.first[j] : laid.first[j + 1]]]
            for j, takes in enumerate(events.takes)
        ]
    )
    latest, reach = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    variables = [f"v{j}" for j in range(len(low))]
    conditions = compile_conditions([], variables, events.kleene, [], laid.first[:-1], lambda column: column)  # type: ignore[arg-type,return-value]
    candidates = SearchCandidates(
        laid.first_class, laid.class_start, laid.class_stop, laid.class_longest, laid.lower[:count],
        laid.upper[:count], row, np.full(count, -1), laid.upper[:count], laid.class_longest,
    )  # fmt: skip
    chain = SequenceLimits(latest, reach, none, candidates.lower, candidates.upper)
    completions(candidates, chain, window)
    is_set = np.zeros(len(low), dtype=np.bool_)
    pattern = SearchPattern(np.array(events.kleene), is_set, none.reshape(0, 0), window, False)
    state, work = start_search(depth, len(events.intervals), len(low)), scratch(conditions, depth)
    none_negated = ForbiddenEvents(*(none,) * 8, none.reshape(0, 0))
    pruning = NegationPruning(none_negated, none, none, none, none, none, none)
    everything = Wanted(0.0, none, UNLIMITED, np.zeros(0), np.zeros(0))
    choices = np.full((len(low), 1), -1)
    kernel: Any = search
    found: list[Match] = []
    status = FULL
    while status != EXHAUSTED:
        out = FoundMatches(np.empty(most + 1, dtype=np.int64), *np.empty((2, room), dtype=np.int64))
        status, size = kernel(
            candidates,
            pattern,
            chain,
            None,
            conditions,
            pruning,
            everything,
            state,
            work,
            choices,
            steps,
            most,
            out,
        )
        start, place, component = out
        for n in range(size):
            own = range(start[n], start[n + 1])
            found.append(
                tuple(tuple(int(row[place[k]]) for k in own if component[k] == j) for j in range(len(low)))
            )
        if status == DEEPER:
            depth += 1
            state, work = state.deeper(depth), work.deeper(conditions, depth)
        elif status == TOO_LONG:
            assert size == 0
            room += 1
    return found


@given(_events(), st.sampled_from([1, 3, 1000]), st.integers(1, 6), st.sampled_from([1, 4, 1000]), BUDGETS)
def test_every_possible_match_is_found_once(
    events: Events, most: int, depth: int, room: int, steps: int
) -> None:
    found = _searched(events, most, depth, room, steps)
    assert len(found) == len(set(found))
    assert set(found) == _tried(events)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8),
    st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 1)), max_size=5),
)
def test_nothing_starts_behind_the_limit_without_something_in_between(
    pool: list[tuple[int, int]], candidates: list[tuple[int, int]]
) -> None:
    halves = [sorted(pool[::2]), sorted(pool[1::2])]
    lower = np.array([low for half in halves for low, _ in half], dtype=np.int64)
    upper = np.array([low + size for half in halves for low, size in half], dtype=np.int64)
    starts = np.array([0, len(halves[0]), len(pool)])
    out = np.empty(len(candidates), dtype=np.int64)
    contiguity_limits(
        np.array([time for time, _ in candidates], dtype=np.int64),
        np.array([group for _, group in candidates], dtype=np.int64),
        lower, upper, starts, out,
    )  # fmt: skip
    for n, (time, group) in enumerate(candidates):
        between = [] if group < 0 else [low + size for low, size in halves[group] if low > time]
        assert out[n] == min(between, default=UNLIMITED)


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "strict_contiguity"])
@settings(max_examples=15)
@given(data=st.data())
def test_with_conditions_and_gaps(strategy: Any, data: st.DataObject) -> None:
    case: LanguageCase = data.draw(language_cases(strategy, most=4))
    note(case.text())
    case.check()


@pytest.mark.compiled
@pytest.mark.parametrize("events", [8, 9, 10])
def test_matches_may_be_longer_than_the_work_arrays_of_their_confidences(events: int) -> None:
    """With a leading gap too, which takes one event more; without JIT a place that is missing is an error."""
    times = np.arange(events + 1)
    table = pa.table({
        "type": ["X"] + ["A"] * (events - 1) + ["B"],
        "id": times,
        "lower": 3 * times,
        "upper": 3 * times + 3,
    })  # fmt: skip
    for pattern in ("SEQ(A+ a[], B b)", "SEQ(!X x, A+ a[], B b)"):
        variables = "x, a[], b" if "X" in pattern else "a[], b"
        query = f"PATTERN {pattern} WHERE skip_till_next_match({variables}) {{}} WITHIN 100"
        longest = max(len(row["a"]) for row in uc.match(table, query).to_pylist())
        assert longest + 1 == events
