"""Limits on the time that an evaluation may take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from confidence.budget import looking_at
from uncertain_cep.errors import OptionError, TimeLimitError

__all__ = ["TimeLimit", "within"]


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """How long something may take, in seconds, and when it began, on the clock of ``time.monotonic``.

    Kernels come back to Python several times a second, where the limit is looked at; no thread and no signal
    takes part.
    """

    seconds: float
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, timeout: float | None) -> TimeLimit | None:
        """Return the limit of a timeout, from now on. An OptionError asks for seconds above 0."""
        if timeout is None:
            return None
        given: Any = timeout
        is_number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
        if not is_number or not 0 < given < math.inf:
            raise OptionError(f"timeout={timeout!r}: it must be a number of seconds above 0, or None")
        return cls(float(given))

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.started + self.seconds - time.monotonic())

    def error(self, found: int | None = None) -> TimeLimitError:
        """Return the error that says how far it got."""
        return TimeLimitError(self.seconds, found)

    def check(self, found: int | None = None) -> None:
        """Raise a :class:`TimeLimitError`, with the matches found so far, if the time is over."""
        if time.monotonic() - self.started > self.seconds:
            raise self.error(found)

    @contextmanager
    def looked_at(self, found: int | None = None) -> Iterator[None]:
        """Look at the limit now and at every checkpoint of this thread while the context lasts."""
        self.check(found)
        with looking_at(lambda: self.check(found)):
            yield


def within(limit: TimeLimit | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, each found within a time limit, if there is one.

    The limit is looked at only while a batch is computed, so that what the caller does in between is never
    ended; the time that it takes counts. The TimeLimitError says how many matches were yielded before.
    """
    if limit is None:
        yield from batches
        return
    found = 0
    while True:
        with limit.looked_at(found):
            batch = next(batches, None)
        if batch is None:
            return
        found += batch.num_rows
        yield batch
