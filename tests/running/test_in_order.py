"""Work by several threads, in the order of the items."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from confidence.budget import checkpoint
from uncertain_cep.running.in_order import in_order


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(in_order(threads, range(20), work)) == [item * item for item in range(20)]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_the_work_raises_is_raised_in_its_turn(threads: int) -> None:
    def work(item: int) -> int:
        if item >= 3:
            raise TimeoutError(str(item))
        return item

    results = in_order(threads, range(10), work)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(TimeoutError, match="3"):
        next(results)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_an_item_raises_comes_behind_the_results_before(threads: int) -> None:
    def items() -> Iterator[int]:
        yield from range(2)
        raise TimeoutError("of an item")

    def work(item: int) -> int:
        time.sleep(0.01)
        return item

    results = in_order(threads, items(), work)
    assert [next(results) for _ in range(2)] == [0, 1]
    with pytest.raises(TimeoutError, match="of an item"):
        next(results)


def test_few_items_are_made_before_they_are_wanted() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for item in range(100):
            made.append(item)
            yield item

    results = in_order(2, items(), lambda item: item)
    next(results)
    time.sleep(0.05)
    assert len(made) <= 4
    results.close()
    assert len(made) <= 4


def test_no_thread_works_on_when_the_caller_ends() -> None:
    before = threading.active_count()
    results = in_order(2, iter(range(5)), lambda item: time.sleep(0.01))
    next(results)
    results.close()
    assert threading.active_count() == before
    checkpoint()
