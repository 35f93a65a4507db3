"""Tasks in several threads, whose results come in an order that depends on nothing but their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, TypeVar

from confidence.budget import checkpoint, looking_at
from confidence.uninterrupted import Abandoned, Failure, ending_when
from uncertain_cep.config import MOST_AHEAD
from uncertain_cep.meter import current_meter

__all__ = ["available_cores", "side_by_side", "waited_for"]

ItemT = TypeVar("ItemT")

_WAIT_SECONDS: Final = 0.05
"""For so long a thread waits for another one before it looks whether it is to end."""


def available_cores() -> int:
    """Return on how many cores this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def side_by_side(threads: int, tasks: Sequence[Callable[[], Iterator[ItemT]]]) -> Iterator[ItemT]:
    """Yield what tasks yield, computed by several threads.

    Thread t takes the tasks t, t + threads and so on, one after the other. Their items come in turn: one of
    each thread that has some left. So their order is the same in every run. A thread is ahead of the caller
    by at most ``MOST_AHEAD`` items. It looks at the caller's limits (:func:`confidence.budget.checkpoint`)
    as they were when the caller last asked for an item.

    Parameters
    ----------
    threads : int
        At least 1; with 1 the tasks run in the thread of the caller.
    tasks : sequence of callable
        Each returns an iterator, and shares nothing with the others that one of them changes.

    Raises
    ------
    Exception
        What a task raises, when its turn comes. No thread works on then, nor when the caller has closed the
        iterator.
    """
    lanes = [tasks[number::threads] for number in range(min(threads, len(tasks)))]
    if len(lanes) < 2:
        for task in tasks:
            yield from task()
        return
    crew = _Crew(lanes)
    try:
        yield from crew.items()
    finally:
        crew.end()


def waited_for(work: Callable[[], ItemT]) -> ItemT:
    """Return what some work returns, done in a thread; meanwhile interrupts and limits are minded.

    It is for one call of another library that takes seconds and that nothing ends. If an interrupt or a limit
    ends the caller, the thread goes on for nobody until the call is over.
    """
    done: SimpleQueue[ItemT | Failure] = SimpleQueue()

    def run() -> None:
        try:
            done.put(work())
        except BaseException as error:
            done.put(Failure(error))

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return _taken(done)


def _taken(queue: SimpleQueue[ItemT | Failure]) -> ItemT:
    """Return what a thread hands over next, or raise what it raised; meanwhile limits are minded."""
    meter = current_meter()
    while True:
        checkpoint()
        if meter is not None:
            meter.look()
        try:
            item = queue.get(timeout=_WAIT_SECONDS)
        except Empty:
            continue
        if isinstance(item, Failure):
            raise item.error
        return item


class _Worker:
    """A thread that stays for the next call: a new one takes milliseconds to get memory of its own.

    As many stay as there are cores.
    """

    _idle: Final[list[_Worker]] = []

    def __init__(self) -> None:
        self._given: SimpleQueue[tuple[Callable[[], None], Event]] = SimpleQueue()
        Thread(target=self._run, daemon=True).start()

    @classmethod
    def run(cls, work: Callable[[], None]) -> Event:
        """Have an idle worker, or a new one, do what raises nothing; return what is set when it is done."""
        try:
            worker = cls._idle.pop()
        except IndexError:
            worker = cls()
        over = Event()
        worker._given.put((work, over))
        return over

    def _run(self) -> None:
        while True:
            work, over = self._given.get()
            work()
            # What it holds must not wait for the next call.
            del work
            stays = len(self._idle) < available_cores()
            if stays:
                self._idle.append(self)
            over.set()
            if not stays:
                return


if hasattr(os, "register_at_fork"):
    # A child has none of the threads of its parent.
    os.register_at_fork(after_in_child=_Worker._idle.clear)


class _Lane(Generic[ItemT]):
    """What a thread hands over: made of locks alone, which wake nobody but who waits for an item or for room.

    A ``Queue`` takes three for each item, and threads wait for the interpreter at every one of them.
    """

    def __init__(self) -> None:
        self.items: SimpleQueue[ItemT | Failure | None] = SimpleQueue()
        """None says that no more come."""
        self.room: SimpleQueue[None] = SimpleQueue()
        """One of nothing for each item there is room for."""
        for _ in range(MOST_AHEAD):
            self.room.put(None)


class _Crew(Generic[ItemT]):
    """Threads, each with a lane of what it has found."""

    def __init__(self, lanes: Sequence[Sequence[Callable[[], Iterator[ItemT]]]]) -> None:
        self._ended = False
        self._limits: Context = copy_context()
        self._lanes: list[_Lane[ItemT]] = [_Lane() for _ in lanes]
        self._over = [
            _Worker.run(partial(copy_context().run, self._work, tasks, lane))
            for tasks, lane in zip(lanes, self._lanes, strict=True)
        ]

    def items(self) -> Iterator[ItemT]:
        """Yield one item of each thread in turn, until none has any left."""
        running = list(self._lanes)
        while running:
            for lane in tuple(running):
                self._limits = copy_context()
                item = _taken(lane.items)
                if item is None:
                    running.remove(lane)
                    continue
                lane.room.put(None)
                yield item

    def end(self) -> None:
        """End the work of all threads, and wait until it has ended."""
        self._ended = True
        for lane in self._lanes:
            lane.room.put(None)
        for over in self._over:
            over.wait()

    def _work(self, tasks: Sequence[Callable[[], Iterator[ItemT]]], lane: _Lane[ItemT]) -> None:
        last: Failure | None = None
        try:
            with looking_at(self._look), ending_when(lambda: self._ended):
                for task in tasks:
                    for item in task():
                        lane.room.get()
                        if self._ended:
                            return
                        lane.items.put(item)
        except Abandoned:
            return
        except BaseException as error:
            last = Failure(error)
        lane.items.put(last)

    def _look(self, needed: int) -> None:
        if self._ended:
            raise Abandoned
        if needed:
            # A context can be entered once at a time.
            self._limits.copy().run(checkpoint, needed)
