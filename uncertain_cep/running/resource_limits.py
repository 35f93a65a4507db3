"""Limits on the time that an evaluation may take, and on the memory of its process."""

from __future__ import annotations

import math
import mmap
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from confidence.budget import looking_at
from uncertain_cep.errors import MemoryLimitError, OptionError, TimeLimitError

__all__ = ["Limits", "held_memory", "looked_at", "parse_size", "within"]

_SIZE: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_POWERS: Final = ("", "k", "m", "g", "t")

_BETWEEN_LOOKS: Final = 0.01
"""Seconds for which what was seen of the memory is taken to hold, where nothing large is about to be made."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long something may take, since when, and how much memory this process may hold meanwhile.

    Kernels come back to Python several times a second, where the limits are looked at; no thread and no
    signal takes part.

    Attributes
    ----------
    seconds : float or None
    memory : int or None
        Bytes.
    started : float
        On the clock of ``time.monotonic``, seconds.
    """

    seconds: float | None = None
    memory: int | None = None
    started: float = field(default_factory=lambda: time.monotonic())

    @classmethod
    def of(cls, timeout: float | None, memory_limit: str | int | None = None) -> Limits | None:
        """Return the limits that options ask for, from now on; None for none.

        Raises
        ------
        OptionError
            If one is no number of seconds above 0, or the other no size.
        """
        if timeout is None and memory_limit is None:
            return None
        seconds: Any = timeout
        if timeout is not None:
            number = isinstance(seconds, int | float | np.integer | np.floating)
            if not number or isinstance(seconds, bool) or not 0 < seconds < math.inf:
                raise OptionError(f"timeout={timeout!r}: it must be a number of seconds above 0, or None")
            seconds = float(seconds)
        return cls(seconds, None if memory_limit is None else parse_size(memory_limit, what="memory_limit"))

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        if self.seconds is None:
            return math.inf
        return max(0.0, self.started + self.seconds - time.monotonic())

    def check(self, matches: int | None = None, needed: int = 0) -> None:
        """Raise an error of ours if the time is over, or the process holds too much.

        Parameters
        ----------
        matches : int, optional
            Matches found so far.
        needed : int
            Bytes that are about to be held besides.
        """
        if self.seconds is not None and time.monotonic() - self.started > self.seconds:
            raise TimeLimitError(self.seconds, matches)
        if self.memory is not None:
            held = held_memory()
            if held + needed > self.memory:
                raise MemoryLimitError(self.memory, held, needed, matches)

    @contextmanager
    def looked_at(self, matches: int | None = None) -> Iterator[None]:
        """Look at the limits now and at every checkpoint of this thread while the context lasts."""
        self.check(matches)
        seen = time.monotonic()

        def look(needed: int) -> None:
            nonlocal seen
            now = time.monotonic()
            if needed or self.memory is None or now - seen > _BETWEEN_LOOKS:
                seen = now
                self.check(matches, needed)

        with looking_at(look):
            yield


@contextmanager
def looked_at(limits: Limits | None) -> Iterator[None]:
    """Look at limits, if there are any, now and at every checkpoint while the context lasts."""
    with nullcontext() if limits is None else limits.looked_at():
        yield


def within(limits: Limits | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, each found within limits, if there are any.

    They are looked at only while a batch is computed, so that what the caller does in between is never
    ended; the time that it takes counts.

    Raises
    ------
    TimeLimitError, MemoryLimitError
        With the number of matches yielded before.
    """
    if limits is None:
        yield from batches
        return
    matches = 0
    while True:
        with limits.looked_at(matches):
            batch = next(batches, None)
        if batch is None:
            return
        matches += batch.num_rows
        yield batch


def held_memory() -> int:
    """Return the bytes that this process holds in memory; where only their peak is known, that.

    Raises
    ------
    OptionError
        If the operating system tells neither.
    """
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        try:
            import resource
        except ImportError:
            raise OptionError("memory_limit= needs a system that tells what a process holds") from None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return int(pages) * mmap.PAGESIZE


def parse_size(size: str | int, *, what: str) -> int:
    """Return the bytes of a text such as ``4GB`` or ``512 MiB``, or of a number of bytes.

    >>> parse_size("1.5 KiB", what="size"), parse_size("2MB", what="size")
    (1536, 2000000)

    Raises
    ------
    OptionError
        If it is neither, or not above 0.
    """
    value: Any = size
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        base = 1024 if match[3] else 1000
        value = int(float(match[1]) * base ** _POWERS.index(match[2].lower()))
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise OptionError(
            f"{what}={size!r}: it must be a size above 0, such as 4GB, 512MiB or a number of bytes"
        )
    return int(value)
