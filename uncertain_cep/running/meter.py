"""How far a call is: how many matches there are, how fast they come, when the end is expected."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Final, TypeVar

import pyarrow as pa

from uncertain_cep.config.tuning import BETWEEN_LINES
from uncertain_cep.errors import OptionError
from uncertain_cep.plurals import counted

__all__ = ["current_meter", "meter_for", "metered"]

ItemT = TypeVar("ItemT")

_meter: Final[ContextVar[Meter | None]] = ContextVar("meter", default=None)

LONG_CALL: Final = 2.0
"""Seconds from which on a call says how far it is, if somebody sees it."""


class Meter:
    """The meter of a call, and its line of progress: after each batch, and while threads compute one."""

    def __init__(self, after: float) -> None:
        self.found: int | None = 0
        self._after = after
        self._started = time.monotonic()
        self._said: float | None = None
        self._parts = self._done = 0

    def count(self, tasks: Sequence[Callable[[], Iterator[ItemT]]]) -> list[Callable[[], Iterator[ItemT]]]:
        """Return tasks that say when they are done; they are all there is to do."""
        self._parts += len(tasks)

        def counted_task(task: Callable[[], Iterator[ItemT]]) -> Callable[[], Iterator[ItemT]]:
            def run() -> Iterator[ItemT]:
                yield from task()
                self._done += 1

            return run

        return [counted_task(task) for task in tasks]

    def tasks(self, done: int, parts: int) -> None:
        """Learn how many tasks are done of all that Spark has, which tells nothing of matches."""
        self.found = None
        self._done, self._parts = done, parts
        self.look()

    def look(self) -> None:
        """Write the line anew, if it is time to."""
        now = time.monotonic()
        last = self._started + self._after - BETWEEN_LINES if self._said is None else self._said
        if now - last >= BETWEEN_LINES:
            self._said = now
            self._write(self.line(now - self._started))

    def line(self, seconds: float) -> str:
        """Return the line of progress after so many seconds."""
        if self.found is None:
            said = [f"{self._done:,} of {counted(self._parts, 'task')} done"]
        else:
            rate = self.found / max(seconds, 1e-9)
            said = [counted(self.found, "match", "matches"), f"{rate:,.0f} a second"]
        if 0 < self._done < self._parts:
            remaining = seconds * (self._parts - self._done) / self._done
            said += [f"{100 * self._done // self._parts}%", f"about {remaining:,.0f} s left"]
        return ", ".join(said)

    def close(self) -> None:
        """Take the line away."""
        if self._said is not None:
            self._write("")

    def _write(self, line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def current_meter() -> Meter | None:
    """Return the meter of this call; None if nobody measures."""
    return _meter.get()


def meter_for(progress: bool | None) -> Meter | None:
    """Return the meter of a call by its option ``progress``, see `metered`; None if nobody sees it."""
    if progress is not None and not isinstance(progress, bool):
        raise OptionError(f"progress={progress!r}: it must be True, False or None")
    if progress or (progress is None and _is_watched()):
        return Meter(0.0 if progress else LONG_CALL)
    return None


def metered(progress: bool | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return batches that say, while they are asked for, how far the call is.

    Parameters
    ----------
    progress : bool or None
        Whether to say so on stderr; None: on a terminal and in a notebook, if a call takes longer than
        ``LONG_CALL``.
    """
    meter = meter_for(progress)
    return batches if meter is None else _metered(meter, batches)


def _metered(meter: Meter, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        while True:
            token = _meter.set(meter)
            try:
                batch = next(batches, None)
            finally:
                _meter.reset(token)
            if batch is None:
                return
            meter.found = (meter.found or 0) + batch.num_rows
            meter.look()
            yield batch
    finally:
        meter.close()


def _is_watched() -> bool:
    """Return whether somebody sees stderr as it is written."""
    if "ipykernel" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()
