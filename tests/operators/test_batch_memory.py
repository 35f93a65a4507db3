"""Memory of batches: given out again when nothing refers to a batch, and not before, however it is held."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.kernel import always_compiled
from tests.cases.cut import THREADS
from uncertain_cep.config import MOST_KEPT_BATCHES
from uncertain_cep.operators.batch import MatchBatch, Packed
from uncertain_cep.operators.batch_memory import BatchMemory
from uncertain_cep.plan import make_plan
from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query import parse
from uncertain_cep.results.projection import to_batch

NUMBERS: Final = 24

HELD: Final[list[Callable[[pa.Buffer], Any]]] = [
    lambda memory: memory,
    lambda memory: np.frombuffer(memory, np.int64),
    lambda memory: np.frombuffer(memory, np.int64)[2:5],
    lambda memory: np.frombuffer(memory, np.int64).reshape(3, 8)[1].view(np.float64),
    lambda memory: memory.slice(8, 16),
    lambda memory: memoryview(memory),
    lambda memory: pa.Array.from_buffers(pa.int64(), 8, [None, memory], 0, 16),
    lambda memory: pa.Array.from_buffers(pa.int64(), 8, [None, memory], 0, 16).to_numpy()[3:],
    lambda memory: pa.Array.from_buffers(pa.int64(), NUMBERS, [None, memory], 0).slice(5, 2),
    lambda memory: pa.record_batch(
        [pa.Array.from_buffers(pa.int64(), NUMBERS, [None, memory], 0)], names=["a"]
    ).__arrow_c_array__(),
]
"""Ways to hold memory of a batch."""


def numbers(memory: pa.Buffer) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.frombuffer(memory, np.int64)


@given(st.lists(st.tuples(st.sampled_from(HELD), st.integers(0, 9)), max_size=40))
def test_what_is_held_is_not_given_out(steps: list[tuple[Callable[[pa.Buffer], Any], int]]) -> None:
    """Each step takes memory, holds it in some way, and lets go of what was held some steps ago."""
    given_out = BatchMemory()
    held: list[tuple[Any, int]] = []
    for hold, kept in steps:
        memory = given_out.room(8 * NUMBERS)
        address = memory.address
        assert all(address != other for _, other in held)
        held.append((hold(memory), address))
        del memory
        del held[: max(len(held) - kept, 0)]


def test_memory_is_given_out_again_to_the_thread_that_had_it() -> None:
    given_out = BatchMemory()
    memory = given_out.room(8 * NUMBERS)
    first = memory.address
    column = pa.Array.from_buffers(pa.int64(), NUMBERS, [None, memory], 0)
    del memory
    others: list[pa.Buffer] = []

    def elsewhere() -> None:
        # The last one who holds it is another thread.
        column_there = held.pop()
        del column_there
        others.append(given_out.room(8 * NUMBERS))

    held = [column]
    del column
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert others[0].address != first
    assert given_out.room(16 * NUMBERS).address != first
    again = given_out.room(8 * NUMBERS)
    assert again.address == first
    assert given_out.room(8 * NUMBERS).address != first
    assert again.is_mutable


@pytest.mark.parametrize("more", [-1, 0, 1, 16])
def test_little_memory_is_kept(more: int) -> None:
    given_out, count = BatchMemory(), MOST_KEPT_BATCHES + more
    pieces = [given_out.room(1 << 20) for _ in range(count)]
    addresses = {piece.address for piece in pieces}
    before = pa.total_allocated_bytes()
    del pieces
    assert before - pa.total_allocated_bytes() >= max(more, 0) << 20
    again = [given_out.room(1 << 20) for _ in range(min(count, MOST_KEPT_BATCHES))]
    assert {piece.address for piece in again} <= addresses
    assert pa.total_allocated_bytes() <= before - (max(more, 0) << 20)
    del again, given_out
    assert before - pa.total_allocated_bytes() >= count << 20


def events() -> pa.Table:
    lower = np.repeat(np.arange(60), 2)
    return pa.table(
        {
            "id": np.arange(100, 220),
            "type": ["A", "B"] * 60,
            "lower": lower,
            "upper": lower + np.arange(120) % 4,
        }
    )


QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 20"

KEPT: Final[list[Callable[[pa.RecordBatch], Any]]] = [
    lambda batch: batch,
    lambda batch: batch.slice(1, 3),
    lambda batch: batch.column(0),
    lambda batch: batch.column("confidence").to_numpy(),
    lambda batch: batch.column(2).to_numpy()[2:],
    lambda batch: pa.table([batch.column(3)], names=["latest"]),
]


def values(held: Any) -> list[Any]:
    return list(held.to_pylist()) if hasattr(held, "to_pylist") else [held.tolist()]


@given(THREADS, st.integers(1, 40), st.lists(st.sampled_from([*KEPT, None]), min_size=1, max_size=8))
def test_batches_stay_as_they_were(
    threads: int, batch_rows: int, ways: list[Callable[[pa.RecordBatch], Any] | None]
) -> None:
    """A batch that a caller holds is never overwritten by later ones."""
    held = []
    with always_compiled():
        for number, batch in enumerate(
            uc.iter_matches(events(), QUERY, batch_rows=batch_rows, threads=threads)
        ):
            way = ways[number % len(ways)]
            if way is not None:
                part = way(batch)
                held.append((part, values(part)))
            del batch
    assert all(values(part) == as_it_was for part, as_it_was in held)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_is_pickled_and_counted_without_the_room_behind_it(threads: int) -> None:
    with always_compiled():
        batch = next(iter(uc.iter_matches(events(), QUERY, threads=threads)))
    assert 0 < batch.num_rows < 2000
    held = 8 * batch.num_rows * batch.num_columns
    assert batch.nbytes == batch.get_total_buffer_size() == held
    pickled = pickle.dumps(batch)
    assert held < len(pickled) < held + 4000
    assert pickle.loads(pickled).equals(batch)


@pytest.mark.parametrize("confidence", [True, False])
@pytest.mark.parametrize(
    ("kind", "tick"),
    [(pa.int64(), None), (pa.timestamp("us"), None), (pa.timestamp("us"), "1ms"), (pa.timestamp("s"), None)],
)
def test_packed_columns_become_the_same_arrays(kind: pa.DataType, tick: str | None, confidence: bool) -> None:
    times = pa.array([0, 86_400_000] if tick == "1ms" else [0, 1], pa.int64())
    times = times.cast(kind)
    table = pa.table({"id": [1, 2], "type": ["A", "B"], "lower": times, "upper": times})
    query = "PATTERN SEQ(A a, B b) WITHIN 3 days" if kind != pa.int64() else "PATTERN SEQ(A a, B b) WITHIN 20"
    plan = make_plan(parse(query), table.schema, MatchOptions(tick=tick, confidence=confidence))
    room = 5 + 8
    memory = BatchMemory().room(8 * (4 + confidence) * room)
    whole = np.frombuffer(memory, np.int64).reshape(4 + confidence, room)
    whole[:4, :5] = np.arange(20).reshape(4, 5)
    found = whole[4, :5].view(np.float64) if confidence else None
    if found is not None:
        found[:] = [0.0, 0.25, 0.5, 1.0 / 3.0, 1.0]
    columns = whole[:2, :5], whole[2, :5], whole[3, :5], found
    chunk = MatchBatch(*columns, at_most_one=True, packed=Packed(memory, room, columns))
    assert chunk.still_packed is chunk.packed
    apart = replace(chunk, packed=None)
    assert apart.still_packed is None
    batch = to_batch(plan, table, chunk, True)
    assert batch.equals(to_batch(plan, table, apart, True))
    assert batch.schema == plan.batch_schema
    batch.validate(full=True)


@pytest.mark.parametrize("column", ["events", "lower", "upper", "confidence"])
def test_what_is_put_in_place_of_a_column_is_not_taken_for_it(column: str) -> None:
    table = pa.table({"id": [1, 2], "type": ["A", "B"], "lower": [0, 1], "upper": [0, 1]})
    plan = make_plan(parse(QUERY), table.schema, MatchOptions())
    memory = BatchMemory().room(8 * 5 * 4)
    whole = np.frombuffer(memory, np.int64).reshape(5, 4)
    whole[:] = 0
    columns = whole[:2], whole[2], whole[3], whole[4].view(np.float64)
    chunk = MatchBatch(*columns, at_most_one=True, packed=Packed(memory, 4, columns))
    # Also another view of the same memory, such as events in another order.
    other = np.ones_like(getattr(chunk, column))
    moved = replace(chunk, **{column: other})
    assert moved.still_packed is None
    assert replace(chunk, **{column: getattr(chunk, column)[:]}).still_packed is None
    batch = to_batch(plan, table, moved, True)
    ones = {"events": (0, 1), "lower": (2,), "upper": (3,), "confidence": (4,)}[column]
    assert [batch.column(j).to_pylist() for j in range(5)] == [[int(j in ones)] * 4 for j in range(5)]
