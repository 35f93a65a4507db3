"""Calls in several threads, processes and tasks at once give the answers that each gives alone."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from confidence.kernel import always_compiled

QUERIES = (
    "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9",
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < c.x WITHIN 12 RETURN a, c.x AS x "
    "ORDER BY CONFIDENCE DESC LIMIT 50",
)
ENDLESS = "PATTERN SEQ(A a, B b, C c, A d, B e) WHERE a.x + b.x + c.x + d.x + e.x < -1 WITHIN 900"
LONGEST = 3600.0
"""Seconds after which a loaded machine counts as one that hangs."""


@cache
def events() -> pa.Table:
    """Return enough events for kernels to be compiled, as far as the profile compiles."""
    count = 3000
    rng = np.random.default_rng(5)
    lower = np.arange(count)
    return pa.table(
        {
            "type": np.array(list("ABC"))[rng.integers(0, 3, count)],
            "id": lower,
            "lower": lower,
            "upper": lower + rng.integers(0, 5, count),
            "x": rng.integers(0, 100, count),
            "k": rng.integers(0, 3, count),
        }
    )


def answer(query: str) -> pa.Table:
    with always_compiled():
        return uc.match(events(), query)


@pytest.fixture(scope="module")
def alone() -> list[pa.Table]:
    answers = [answer(query) for query in QUERIES]
    assert all(table.num_rows for table in answers)
    return answers


def test_eight_threads(alone: list[pa.Table]) -> None:
    """One of them is ended by its time limit, which is nobody else's."""

    def endless() -> str:
        with pytest.raises(uc.TimeLimitError), always_compiled():
            uc.match(events(), ENDLESS, timeout=0.3)
        return "ended"

    with ThreadPoolExecutor(8) as pool:
        limited = pool.submit(endless)
        futures = [pool.submit(answer, QUERIES[number % 2]) for number in range(14)]
        for number, one in enumerate(futures):
            assert one.result(LONGEST).equals(alone[number % 2])
        assert limited.result(LONGEST) == "ended"


def test_threads_that_read_their_batches_in_turns(alone: list[pa.Table]) -> None:
    def batches(query: str) -> Iterator[pa.RecordBatch]:
        return uc.iter_matches(events(), query, batch_rows=100)

    readers = [batches(QUERIES[0]) for _ in range(4)]
    columns: list[list[pa.RecordBatch]] = [[] for _ in readers]
    with ThreadPoolExecutor(4) as pool:
        while any(batches_of_turn := list(pool.map(lambda reader: next(reader, None), readers))):
            for column, batch in zip(columns, batches_of_turn, strict=True):
                if batch is not None:
                    column.append(batch)
    for column in columns:
        assert pa.Table.from_batches(column).sort_by([("a", "ascending"), ("b", "ascending")]) == alone[
            0
        ].sort_by([("a", "ascending"), ("b", "ascending")])


@pytest.mark.compiled
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_pools_of_processes(alone: list[pa.Table], start: str) -> None:
    """Also once this process has compiled kernels and run threads."""
    with ProcessPoolExecutor(2, multiprocessing.get_context(start)) as pool:
        futures = [pool.submit(answer, query) for query in QUERIES]
        for one, expected in zip(futures, alone, strict=True):
            assert one.result(LONGEST).equals(expected)


def test_tasks_of_asyncio(alone: list[pa.Table]) -> None:
    """The loop goes on meanwhile: kernels run without the interpreter's lock."""

    async def ask() -> tuple[list[pa.Table], int]:
        turns, done = 0, asyncio.Event()

        async def count() -> None:
            nonlocal turns
            while not done.is_set():
                turns += 1
                await asyncio.sleep(0.001)

        counting = asyncio.create_task(count())
        answers = await asyncio.gather(*(asyncio.to_thread(answer, query) for query in QUERIES * 2))
        done.set()
        await counting
        return answers, turns

    # A browser that a test has left open keeps an event loop running in this thread.
    with ThreadPoolExecutor(1) as thread:
        answers, turns = thread.submit(asyncio.run, asyncio.wait_for(ask(), LONGEST)).result()
    assert all(one.equals(expected) for one, expected in zip(answers, alone * 2, strict=True))
    assert turns > 1
