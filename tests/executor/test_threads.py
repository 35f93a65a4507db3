"""Several threads give the oracle's answer, in an order of their own that is the same in every run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.budget import checkpoint
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_same, rows_of
from tests.cases.cut import REPEATED, THREADS, cut
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from uncertain_cep.candidates.parts import parts_of
from uncertain_cep.config import MOST_AHEAD
from uncertain_cep.executor import candidates
from uncertain_cep.limits import Limits, within
from uncertain_cep.plan import make_plan
from uncertain_cep.threads import available_cores, side_by_side, waited_for

QUERY = "PATTERN SEQ(ANY a, ANY b, ANY c) WITHIN 60"


WAYS: list[dict[str, Any]] = [
    {"planner": "dp_bushy"},
    *({"evaluation": method} for method in ("auto", "any_state", "selectivity", "point")),
]


@given(cases(), THREADS, REPEATED, st.sampled_from(WAYS))
def test_sequences(case: Case, threads: int, most_repeated: float, options: dict[str, Any]) -> None:
    note(case.script())
    table = case.trace.table()
    one = rows_of(uc.match(table, case.text(), threads=1, **options), case)
    with cut(most_repeated):
        assert_same(rows_of(uc.match(table, case.text(), threads=threads, **options), case), one)


@given(language_cases(), THREADS, REPEATED)
def test_the_language(case: LanguageCase, threads: int, most_repeated: float) -> None:
    note(case.text())
    with cut(most_repeated):
        case.check(threads=threads)


@given(nested_cases("OAS"), THREADS, REPEATED)
def test_nested_patterns(case: NestedCase, threads: int, most_repeated: float) -> None:
    note(case.text())
    with cut(most_repeated):
        case.check(threads=threads)


@given(cases(), THREADS, REPEATED)
def test_every_event_of_the_owner_is_in_one_part(case: Case, threads: int, most_repeated: float) -> None:
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text()), table.schema)
    found = candidates(plan, table)
    if found.empty:
        return
    with cut(most_repeated):
        made = [part() for part in parts_of(plan, found, threads)]
    together = np.concatenate([part.rows[plan.owner] for part in made])
    assert set(together.tolist()) <= set(found.rows[plan.owner].tolist())
    assert len(set(together.tolist())) == len(together)


def _events(n: int) -> pa.Table:
    at = np.arange(n) * 3
    return pa.table({"type": ["A"] * n, "id": np.arange(n), "lower": at, "upper": at + 5})


def test_the_order_is_that_of_every_run() -> None:
    events = _events(4000)
    with cut(1.25):
        found = [list(uc.iter_matches(events, QUERY, threads=3, batch_rows=1000)) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    one = uc.match(events, QUERY, threads=1)
    order = [("a", "ascending"), ("b", "ascending"), ("c", "ascending")]
    assert pa.Table.from_batches(found[0]).sort_by(order).equals(one.sort_by(order))


def test_a_limit_takes_the_same_matches_in_every_run() -> None:
    with cut(1.25):
        found = [uc.match(_events(1000), f"{QUERY} LIMIT 700", threads=2) for _ in range(3)]
    assert found[0].num_rows == 700
    assert found[0].equals(found[1])
    assert found[1].equals(found[2])


def test_items_come_in_turn() -> None:
    def of(number: int) -> Iterator[str]:
        yield from (f"{number}{letter}" for letter in "ab"[: number + 1])

    tasks = [partial(of, number) for number in range(4)]
    assert list(side_by_side(2, tasks)) == ["0a", "1a", "2a", "1b", "2b", "3a", "3b"]
    assert list(side_by_side(1, tasks)) == ["0a", "1a", "1b", "2a", "2b", "3a", "3b"]
    assert list(side_by_side(3, [])) == []


def test_threads_are_ahead_by_few_items_and_end_when_nobody_waits() -> None:
    made: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            checkpoint()
            made.append(0)
            yield 0

    before = set(threading.enumerate())
    found = side_by_side(2, [endless, endless])
    assert [next(found) for _ in range(6)] == [0] * 6
    _until(lambda: len(made) == 6 + 2 * (MOST_AHEAD + 1))
    time.sleep(0.1)
    assert len(made) <= 6 + 2 * (MOST_AHEAD + 1)
    assert len(set(threading.enumerate()) - before) == 2
    found.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= before


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.001)


def test_what_a_task_raises_comes_when_its_turn_comes() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise ValueError("of a task")

    def goes_on() -> Iterator[int]:
        for _ in range(10**9):
            checkpoint()
            yield 2

    before = set(threading.enumerate())
    found = side_by_side(2, [fails, goes_on])
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="of a task"):
        next(found)
    assert set(threading.enumerate()) <= before


def test_limits_hold_while_threads_compute() -> None:
    nothing = pa.record_batch({})

    def never() -> Iterator[pa.RecordBatch]:
        for _ in range(10**9):
            checkpoint()
            time.sleep(0.001)
        yield nothing

    def much() -> Iterator[pa.RecordBatch]:
        checkpoint(2**60)
        yield nothing

    before = set(threading.enumerate())
    with pytest.raises(uc.TimeLimitError):
        list(within(Limits(0.2), side_by_side(2, [never, never])))
    with pytest.raises(uc.MemoryLimitError):
        list(within(Limits(memory=2**50), side_by_side(2, [much, much])))
    assert set(threading.enumerate()) <= before


def test_as_many_threads_as_cores_by_default() -> None:
    assert available_cores() >= 1
    with pytest.raises(uc.OptionError, match="threads=0"):
        uc.match(_events(3), QUERY, threads=0)


def test_one_long_call_is_waited_for_within_limits() -> None:
    assert waited_for(lambda: 3) == 3
    with pytest.raises(ValueError, match="of the call"):
        waited_for(partial(int, "of the call"))
    over = threading.Event()
    with pytest.raises(uc.TimeLimitError), Limits(0.2).looked_at():
        waited_for(partial(over.wait, 600.0))
    over.set()
