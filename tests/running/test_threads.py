"""Several threads give the oracle's answer, in an order of their own that is the same in every run."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
import weakref
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
from confidence.uninterrupted import may_end_here
from tests.cases.cases import Case, cases
from tests.cases.comparison import assert_same, rows_of
from tests.cases.cut import REPEATED, THREADS, cut
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from uncertain_cep.candidates.parts import parts_of
from uncertain_cep.executor import candidates
from uncertain_cep.plan import make_plan
from uncertain_cep.running.meter import Meter, metered
from uncertain_cep.running.resource_limits import Limits, within
from uncertain_cep.running.threads import MOST_AHEAD, available_cores, side_by_side, waited_for

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
    all_candidates = candidates(plan, table)
    if all_candidates.empty:
        return
    with cut(most_repeated):
        made = [part() for part in parts_of(plan, all_candidates, threads)]
    # There is no part where none has events for all components.
    together = np.concatenate([np.zeros(0, np.int64), *(part.rows[plan.owner] for part in made)])
    assert set(together.tolist()) <= set(all_candidates.rows[plan.owner].tolist())
    assert len(set(together.tolist())) == len(together)


def _events(n: int) -> pa.Table:
    at = np.arange(n) * 3
    return pa.table({"type": ["A"] * n, "id": np.arange(n), "lower": at, "upper": at + 5})


def test_the_order_is_that_of_every_run() -> None:
    events = _events(4000)
    with cut(1.25):
        batches_of_runs = [list(uc.iter_matches(events, QUERY, threads=3, batch_rows=1000)) for _ in range(3)]
    assert batches_of_runs[0] == batches_of_runs[1] == batches_of_runs[2]
    one = uc.match(events, QUERY, threads=1)
    order = [("a", "ascending"), ("b", "ascending"), ("c", "ascending")]
    assert pa.Table.from_batches(batches_of_runs[0]).sort_by(order).equals(one.sort_by(order))


def test_a_limit_takes_the_same_matches_in_every_run() -> None:
    with cut(1.25):
        tables = [uc.match(_events(1000), f"{QUERY} LIMIT 700", threads=2) for _ in range(3)]
    assert tables[0].num_rows == 700
    assert tables[0].equals(tables[1])
    assert tables[1].equals(tables[2])


_FAULTY: dict[str, Callable[[pa.Table, int], pa.Table]] = {
    "reversed": lambda table, row: _with(table, "upper", row, -9),
    "far": lambda table, row: _with(table, "upper", row, 2**62),
    "no type": lambda table, row: _with(table, "type", row, None),
    "no id": lambda table, row: _with(table, "id", row, None),
    "no time": lambda table, row: _with(table, "lower", row, None),
    "no probability": lambda table, row: _with(table, "probability", row, 1.5),
    "no pmf": lambda table, row: _with(table, "pmf", row, [0.5]),
    "an id again": lambda table, row: _with(table, "id", row, int(table["id"][row - 1].as_py() or 0)),
    "no int64": lambda table, row: _with(table, "x", row, 2**63, pa.uint64()),
}
"""What can be wrong with a row."""


def _with(table: pa.Table, name: str, row: int, value: object, dtype: pa.DataType | None = None) -> pa.Table:
    column = table.column(name)
    values = column.to_pylist()
    values[row] = value
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.array(values, dtype or column.type))


@given(
    st.dictionaries(st.sampled_from(sorted(_FAULTY)), st.lists(st.integers(1, 8), min_size=1, max_size=3)),
    THREADS,
    st.sampled_from(["TRUE", "a.x % 3 = 1", "a.x > b.x"]),
)
def test_faults_are_those_of_the_whole_table(faulty: dict[str, list[int]], threads: int, asked: str) -> None:
    events = _events(9).append_column("x", pa.array(range(9)))
    events = events.append_column("probability", pa.array([1.0] * 9))
    events = events.append_column("pmf", pa.array([None] * 9, pa.list_(pa.float64())))
    for what, rows in faulty.items():
        for row in rows:
            events = _FAULTY[what](events, row)
    text = QUERY.replace(" WITHIN", f" WHERE {asked} WITHIN")

    def told(threads: int) -> object:
        try:
            return uc.match(events, text, threads=threads).num_rows
        except uc.TraceError as error:
            return str(error)

    expected = told(1)
    with cut(1.25):
        assert told(threads) == expected


def test_items_come_in_turn() -> None:
    def of(number: int) -> Iterator[str]:
        yield from (f"{number}{letter}" for letter in "ab"[: number + 1])

    tasks = [partial(of, number) for number in range(4)]
    assert list(side_by_side(2, tasks)) == ["0a", "1a", "2a", "1b", "2b", "3a", "3b"]
    assert list(side_by_side(1, tasks)) == ["0a", "1a", "1b", "2a", "2b", "3a", "3b"]
    assert list(side_by_side(3, [])) == []


@given(st.lists(st.lists(st.none() | st.integers(0, 9), max_size=6), max_size=9), st.integers(1, 4))
def test_items_come_in_turn_whatever_they_are(parts: list[list[int | None]], threads: int) -> None:
    queues = [[item for part in parts[number::threads] for item in part] for number in range(threads)]
    turns = max(map(len, queues), default=0)
    expected = [queue[turn] for turn in range(turns) for queue in queues if turn < len(queue)]
    if threads == 1:
        expected = queues[0]
    assert list(side_by_side(threads, [partial(iter, part) for part in parts])) == expected


def test_another_thread_takes_the_place_of_a_caller_who_is_elsewhere() -> None:
    makers = set()

    def endless() -> Iterator[int]:
        while True:
            makers.add(threading.get_ident())
            yield 0

    items = side_by_side(2, [endless, endless])
    while len(makers - {threading.get_ident()}) < 2:
        next(items)
        time.sleep(0.02)
    items.close()  # type: ignore[attr-defined]


def test_the_caller_makes_items_instead_of_waiting() -> None:
    caller = threading.get_ident()
    makers = set()

    def ends_when_the_caller_comes() -> Iterator[int]:
        for _ in range(100_000):
            makers.add(threading.get_ident())
            yield 0
            if caller in makers:
                return

    items = side_by_side(2, [ends_when_the_caller_comes] * 2)
    assert 2 <= sum(1 for _ in items) < 100_000
    assert caller in makers


@pytest.mark.parametrize("is_caller_fast", [True, False])
def test_a_fast_thread_gets_the_queue_that_is_behind(
    is_caller_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncertain_cep.running.threads._RESERVED_SECONDS", 60.0)
    caller = threading.get_ident()
    slow_begins = threading.Event()
    changes: list[int] = []

    def queue(number: int) -> Iterator[int]:
        was_slow = False
        for _ in range(50):
            if (threading.get_ident() == caller) == is_caller_fast:
                slow_begins.wait()
                if was_slow:
                    changes.append(number)
                was_slow = False
            else:
                slow_begins.set()
                time.sleep(0.02)
                was_slow = True
            if len(changes) >= 4:
                return
            yield number

    assert set(side_by_side(2, [partial(queue, 0), partial(queue, 1)])) == {0, 1}
    assert len(changes) >= 4


def test_a_queue_is_not_left_for_a_caller_who_does_not_come() -> None:
    caller = threading.get_ident()
    other_begins = threading.Event()
    made: list[int] = []

    def queue() -> Iterator[int]:
        while True:
            if threading.get_ident() == caller:
                other_begins.wait()
            else:
                other_begins.set()
                time.sleep(0.02)
            made.append(0)
            yield 0

    items = side_by_side(2, [queue, queue])
    # The caller has to wait for the second one, whose queue is left for it.
    assert [next(items), next(items)] == [0, 0]
    _until(lambda: len(made) == 2 + 2 * MOST_AHEAD)
    items.close()  # type: ignore[attr-defined]


def test_a_caller_who_makes_an_item_says_how_far_the_call_is(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = threading.get_ident()
    looks, by_the_caller = [], []
    monkeypatch.setattr(Meter, "look", lambda _: looks.append(threading.get_ident()))

    def ends_when_the_caller_comes() -> Iterator[pa.RecordBatch]:
        for _ in range(100_000):
            before = len(looks)
            checkpoint()
            if threading.get_ident() == caller:
                by_the_caller.append(looks[before:])
            yield pa.record_batch({})
            if by_the_caller:
                return

    tasks = [ends_when_the_caller_comes] * 2
    list(metered(True, within(Limits(60.0), side_by_side(2, tasks))))
    assert by_the_caller
    assert all(looked == [caller] for looked in by_the_caller)


def test_threads_are_ahead_by_few_items_and_rest_when_nobody_waits() -> None:
    made: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            checkpoint()
            made.append(0)
            yield 0

    items = side_by_side(2, [endless, endless])
    assert [next(items) for _ in range(6)] == [0] * 6
    _until(lambda: len(made) == 6 + 2 * MOST_AHEAD)
    time.sleep(0.1)
    assert len(made) == 6 + 2 * MOST_AHEAD
    items.close()  # type: ignore[attr-defined]
    _stands_still(lambda: len(made))


def test_what_may_end_within_one_item_ends_with_the_caller() -> None:
    steps = [0, 0]

    def compiles(number: int) -> Iterator[int]:
        yield number
        while True:
            steps[number] += 1
            may_end_here()
            time.sleep(0.001)

    items = side_by_side(2, [partial(compiles, number) for number in range(2)])
    assert [next(items), next(items)] == [0, 1]
    # The caller is elsewhere: one thread is left.
    _until(lambda: max(steps) > 0)
    items.close()  # type: ignore[attr-defined]
    _stands_still(lambda: sum(steps))


def _five() -> Iterator[int]:
    yield from range(5)


def test_as_many_threads_stay_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.running.threads.available_cores", lambda: 3)
    monkeypatch.setattr("uncertain_cep.running.threads._Worker._idle", [])
    before = threading.active_count()
    for count in (2, 3, 2, 3, 8, 3):
        assert sum(side_by_side(count, [_five] * 8)) == 80
        _until(lambda: threading.active_count() <= before + 3)
    assert threading.active_count() == before + 3


def test_what_a_thread_has_done_is_not_held() -> None:
    held = pa.array(np.arange(1000))
    gone = weakref.ref(held)

    def of(array: pa.Array) -> Iterator[int]:
        yield len(array)

    tasks = [partial(of, held)] * 4
    assert sum(side_by_side(2, tasks)) == 4000
    del held, tasks
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_has_threads_of_its_own() -> None:
    assert sum(side_by_side(3, [_five] * 6)) == 60
    child = multiprocessing.get_context("fork").Process(target=_ends_well)
    child.start()
    child.join(60.0)
    assert child.exitcode == 7


def _ends_well() -> None:
    os._exit(7 if sum(side_by_side(3, [_five] * 6)) == 60 else 1)


def _stands_still(counter: Callable[[], int]) -> None:
    before = counter()
    time.sleep(0.1)
    assert counter() == before


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.001)


def test_what_a_task_raises_comes_when_its_turn_comes() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise ValueError("of a task")

    went_on = 0

    def goes_on() -> Iterator[int]:
        nonlocal went_on
        for _ in range(10**9):
            checkpoint()
            went_on += 1
            yield 2

    items = side_by_side(2, [fails, goes_on])
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="of a task"):
        next(items)
    _stands_still(lambda: went_on)


def test_limits_hold_while_threads_compute() -> None:
    nothing = pa.record_batch({})

    looked = 0

    def never() -> Iterator[pa.RecordBatch]:
        nonlocal looked
        for _ in range(10**9):
            checkpoint()
            looked += 1
            time.sleep(0.001)
        yield nothing

    def much() -> Iterator[pa.RecordBatch]:
        checkpoint(2**60)
        yield nothing

    with pytest.raises(uc.TimeLimitError):
        list(within(Limits(0.2), side_by_side(2, [never, never])))
    with pytest.raises(uc.MemoryLimitError):
        list(within(Limits(memory=2**50), side_by_side(2, [much, much])))
    _stands_still(lambda: looked)


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
