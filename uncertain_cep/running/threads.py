"""Tasks in several threads, whose results come in an order that depends on nothing but their number.

Python stops daemon threads before it closes the iterators that are left. So all work here ends at exit, and
waits for nothing later, nor in a forked child.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from itertools import chain, pairwise
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any, ClassVar, Final, Generic, TypeVar

from confidence.budget import checkpoint, looking_at
from confidence.uninterrupted import Abandoned, Failure, ending_when, in_a_thread
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.running.meter import Meter, current_meter

__all__ = ["available_cores", "equal_ranges", "side_by_side", "threads_or_all", "waited_for"]

ItemT = TypeVar("ItemT")

_WAIT_SECONDS: Final = 0.05
"""For so long a thread waits for another one before it looks whether it is to end."""

_RESERVED_SECONDS: Final = 0.001
"""For so long a queue is left for the caller."""

MOST_AHEAD: Final = 2
"""Batches of a queue that are ready and not taken yet."""

_AWAY_SHARE: Final = 0.25
"""Share of its time spent elsewhere from which on the caller has another thread do its part of the work."""

WORTH_A_THREAD: Final = 0.02
"""Seconds that it has to be away before that."""


def available_cores() -> int:
    """Return on how many cores this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_or_all(threads: int | None) -> int:
    """Return how many threads an option ``threads`` asks for: by default one for each core."""
    return available_cores() if threads is None else threads


def equal_ranges(total: int, count: int) -> list[slice]:
    """Return the ranges that cut so many things into ``count`` parts of about as many each."""
    edges = [total * number // count for number in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(edges)]


def side_by_side(threads: int, tasks: Sequence[Callable[[], Iterator[ItemT]]]) -> Iterator[ItemT]:
    """Yield the items of tasks, computed by several threads, of which the caller's is one.

    Tasks lie in as many queues: the tasks t, t + threads and so on, one after the other, in queue t. Items
    come in turn: one of each queue that has some left. So their order is the same in every run. The caller's
    thread makes items while it would have to wait for one. Meanwhile others make those that will be wanted
    first, of any queue that no thread works on; who had to wait gets the queue that is behind, so that one
    slow core does not slow down the others. If the caller spends much of its time elsewhere, one more thread
    takes its place.

    A queue is ahead of the caller by at most ``MOST_AHEAD`` items. Threads look at the caller's limits
    (:func:`confidence.budget.checkpoint`) as they were when the caller last asked for an item.

    Parameters
    ----------
    threads : int
        At least 1; with 1 the tasks run one after the other.
    tasks : sequence of callable
        Each returns an iterator, and shares nothing with the others that one of them changes. Between two
        items another thread may go on with it, in another context.

    Raises
    ------
    Exception
        What a task raises, when its turn comes. No thread works on then, nor when the caller has closed the
        iterator.
    RuntimeEnvironmentError
        If the iterator goes on in a forked process, which has none of its threads.
    SystemExit
        If the iterator goes on while the process ends.
    """
    if threads < 2 or len(tasks) < 2 or _WorkerPool.process_ends:
        for task in tasks:
            yield from task()
        return
    pool = _WorkerPool([_TaskQueue(tasks[number::threads]) for number in range(min(threads, len(tasks)))])
    try:
        yield from pool.items()
    finally:
        pool.end()


def waited_for(work: Callable[[], ItemT]) -> ItemT:
    """Do some work in a thread and return its result; meanwhile interrupts and limits are minded.

    It is for one call of another library that takes seconds and that nothing ends. If an interrupt or a limit
    ends the caller, the thread goes on for nobody until the call is over.
    """
    meter = current_meter()

    def look() -> None:
        checkpoint()
        if meter is not None:
            meter.look()

    return in_a_thread(work, daemon=True, meanwhile=look)


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


class _TaskQueue(Generic[ItemT]):
    """Tasks one after the other, and what they have yielded that nobody has taken yet."""

    def __init__(self, tasks: Sequence[Callable[[], Iterator[ItemT]]]) -> None:
        # Unlike a loop, this holds no item that it has yielded.
        self._items = chain.from_iterable(task() for task in tasks)
        self.ready: deque[ItemT | Failure] = deque()
        self.made = 0
        """How many items there were."""
        self.is_busy = False
        """Whether a thread makes the next one."""
        self.is_over = False

    @property
    def is_open(self) -> bool:
        """Whether a thread may make the next item."""
        return not self.is_busy and not self.is_over and len(self.ready) < MOST_AHEAD

    def make(self) -> None:
        """Make the next item while the queue is busy, or learn that there is none."""
        try:
            self.ready.append(next(self._items))
            self.made += 1
        except StopIteration:
            self.is_over = True
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Have no more items, and raise an error behind those that are ready."""
        self.ready.append(Failure(error))
        self.is_over = True


class _WorkerPool(Generic[ItemT]):
    """Threads that make the items of as many queues, the caller's among them.

    Nobody is woken who has nothing to do, as whoever wakes may have to wait for the interpreter.

    Queues keep in step, so that a fast thread has to wait for a slow one in the end. Then the two change
    queues: the fast one gets the queue that is behind as soon as its item is made. All are busy until it is
    as far ahead with that one. With two threads, one of them half as fast, a call takes a tenth to a fifth
    longer than their speeds ask for, instead of half as long again.

    A process that ends stops its daemon threads before it closes the iterators that are left. To wait for a
    thread then would take for ever, so all pools are ended before.
    """

    process_ends = False
    """Whether this process ends, so that no threads are to be begun."""

    _running: ClassVar[set[_WorkerPool[Any]]] = set()

    def __init__(self, queues: Sequence[_TaskQueue[ItemT]]) -> None:
        self._queues = queues
        self._ended = False
        self._lock = Lock()
        """For what is said of queues, and who waits for which."""
        self._awaited: _TaskQueue[ItemT] | None = None
        self._there: SimpleQueue[None] = SimpleQueue()
        """Gets one of nothing when the queue that the caller waits for has what it waits for."""
        self._callers: _TaskQueue[ItemT] | None = None
        """The queue that stays the caller's until it has taken the item that it has made there."""
        self._reserved: _TaskQueue[ItemT] | None = None
        """A queue that is left for the caller to work on, as soon as it has taken what it waits for."""
        self._resting: deque[SimpleQueue[_TaskQueue[ItemT] | None]] = deque()
        """Where workers wait for a queue, or for nothing if they are to look whether they are wanted."""
        self._limits: Context = copy_context()
        self._helps = True
        """Whether the caller makes items."""
        self._over: list[Event] = []
        self._process = os.getpid()
        _WorkerPool._running.add(self)
        for _ in range(len(queues) - 1):
            self._hire()

    @classmethod
    def end_all(cls) -> None:
        """End all work, as the process ends."""
        cls.process_ends = True
        for pool in tuple(cls._running):
            pool.end()

    def _hire(self) -> bool:
        """Have one more thread work, and return whether there is one."""
        try:
            self._over.append(_Worker.run(partial(copy_context().run, self._work)))
        except RuntimeError:
            # The system allows no more threads, or Python none as the process ends.
            return False
        return True

    def items(self) -> Iterator[ItemT]:
        """Yield one item of each queue in turn, until none has any left."""
        began, away = perf_counter(), 0.0
        running = list(self._queues)
        while running:
            for queue in tuple(running):
                if not self._waits_for(queue):
                    running.remove(queue)
                    continue
                item = queue.ready.popleft()
                if isinstance(item, Failure):
                    raise item.error
                with self._lock:
                    if self._callers is not None:
                        self._callers.is_busy = False
                        self._callers = None
                    self._share_out()
                left_at = perf_counter()
                yield item
                # Its memory may be wanted for the next one.
                del item
                now = perf_counter()
                away += now - left_at
                if self._helps and away > max(WORTH_A_THREAD, _AWAY_SHARE * (now - began)) and self._hire():
                    self._helps = False
                    self._give_back()

    def _waits_for(self, queue: _TaskQueue[ItemT]) -> bool:
        """Wait until a queue has an item, or return that it has none left; meanwhile make others."""
        self._limits = copy_context()
        meter, last = current_meter(), queue
        self._check_running()
        while not queue.ready:
            self._check_running()
            checkpoint()
            if meter is not None:
                meter.look()
            with self._lock:
                if queue.ready:
                    return True
                if queue.is_over:
                    return False
                callers_queue = self._queue_for_caller(queue, last) if self._helps else None
                if callers_queue is None:
                    self._awaited = queue
            if callers_queue is None:
                with suppress(Empty):
                    self._there.get(timeout=_WAIT_SECONDS)
            else:
                last = callers_queue
                if meter is None:
                    callers_queue.make()
                else:
                    with self._telling(meter):
                        callers_queue.make()
                if callers_queue is queue and queue.ready:
                    self._callers = queue
                else:
                    self._announce(callers_queue)
        return True

    def _check_running(self) -> None:
        """Raise an error if the threads have ended before their work has."""
        if self._process != os.getpid():
            raise RuntimeEnvironmentError(
                "an iterator of matches does not go on in a forked process, which has none of its threads: "
                "make the iterator in that process, or with threads=1"
            )
        if self._ended:
            # In a thread this ends it without a traceback.
            raise SystemExit("no more matches are found: the process ends")

    @contextmanager
    def _telling(self, meter: Meter) -> Iterator[None]:
        """Have a meter say how far the call is while the caller makes an item."""

        def look(needed: int) -> None:
            meter.look()
            self._within_limits(needed)

        with looking_at(look):
            yield

    def _queue_for_caller(
        self, awaited: _TaskQueue[ItemT], last: _TaskQueue[ItemT]
    ) -> _TaskQueue[ItemT] | None:
        """Return the queue that the caller works on now, if there is one. Needs the lock."""
        kept = self._release_reserved()
        callers_queue = awaited if awaited.is_open else self._open_queue(kept or last)
        if callers_queue is not None:
            callers_queue.is_busy = True
        if kept is not None:
            self._share_out()
        return callers_queue

    def _open_queue(self, last: _TaskQueue[ItemT] | None) -> _TaskQueue[ItemT] | None:
        """Return the open queue whose item is wanted first; rather the last one, whose data is at hand."""
        fewest_made = min((queue.made for queue in self._queues if not queue.is_over), default=0)
        if last is not None and last.is_open and last.made <= fewest_made + 1:
            return last
        return min(
            (queue for queue in self._queues if queue.is_open), key=lambda queue: queue.made, default=None
        )

    def _announce(self, queue: _TaskQueue[ItemT]) -> None:
        """Have others know that a queue has another item, or none left."""
        with self._lock:
            queue.is_busy = False
            if queue is self._awaited:
                self._awaited = None
                self._there.put(None)
                if self._helps and queue.is_open and self._is_behind(queue):
                    queue.is_busy = True
                    self._reserved = queue
            self._share_out()

    def _is_behind(self, queue: _TaskQueue[ItemT]) -> bool:
        return queue.made < max(other.made for other in self._queues)

    def _release_reserved(self) -> _TaskQueue[ItemT] | None:
        """Leave no queue for the caller; return the one that was left for it. Needs the lock."""
        kept, self._reserved = self._reserved, None
        if kept is not None:
            kept.is_busy = False
        return kept

    def _give_back(self) -> None:
        """Have others work on the queue that was left for the caller."""
        with self._lock:
            self._release_reserved()
            self._share_out()

    def _share_out(self) -> None:
        """Give open queues to workers that rest, to the first one the queue furthest behind. Needs the lock.

        If they are wanted no more, all are told to look.
        """
        while self._resting:
            queue = None if self._ended else self._open_queue(None)
            if queue is None and not self._is_over():
                return
            if queue is not None:
                queue.is_busy = True
            self._resting.popleft().put(queue)

    def _is_over(self) -> bool:
        """Return whether workers are wanted no more."""
        return self._ended or all(queue.is_over for queue in self._queues)

    def end(self) -> None:
        """End the work of all threads, and wait until it has ended."""
        if not self._over:
            # Maybe so late in the end of the process that nothing of this module is left.
            return
        # Otherwise there is no thread that could still end its work.
        if self._process == os.getpid() and not sys.is_finalizing():
            with self._lock:
                self._ended = True
                self._share_out()
            for over in self._over:
                over.wait()
        self._over = []
        _WorkerPool._running.discard(self)

    def _work(self) -> None:
        desk: SimpleQueue[_TaskQueue[ItemT] | None] = SimpleQueue()
        queue: _TaskQueue[ItemT] | None = None
        with looking_at(self._look), ending_when(lambda: self._ended):
            while not self._ended:
                with self._lock:
                    queue = self._open_queue(queue)
                    if queue is not None:
                        queue.is_busy = True
                    elif self._is_over():
                        return
                    else:
                        self._resting.append(desk)
                queue = self._rest(desk) if queue is None else queue
                if queue is None:
                    continue
                try:
                    queue.make()
                except Abandoned:
                    return
                except BaseException as error:
                    queue.fail(error)
                self._announce(queue)

    def _rest(self, desk: SimpleQueue[_TaskQueue[ItemT] | None]) -> _TaskQueue[ItemT] | None:
        """Wait for a queue, but not long for a caller who does not come for the one that was left for it."""
        if self._reserved is not None:
            try:
                return desk.get(timeout=_RESERVED_SECONDS)
            except Empty:
                self._give_back()
        return desk.get()

    def _look(self, needed: int) -> None:
        if self._ended:
            raise Abandoned
        if needed:
            self._within_limits(needed)

    def _within_limits(self, needed: int) -> None:
        # A context can be entered once at a time.
        self._limits.copy().run(checkpoint, needed)


atexit.register(_WorkerPool.end_all)
