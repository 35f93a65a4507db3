"""Remarks that count stamps: those of several batches of rows become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from uncertain_cep.errors import warn
from uncertain_cep.traces.faulty_rows import IntArray

__all__ = ["Remark", "SharedTicks", "collected_remarks", "say"]


@dataclass(frozen=True, slots=True)
class Remark:
    """A warning about so many stamps.

    ``text`` is a function of a module, which makes the message of ``of`` and of the counts.
    """

    text: Callable[..., str]
    of: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def message(self) -> str:
        """The message of the warning."""
        return self.text(*self.of, *self.counts)


_collected: Final[ContextVar[list[Remark] | None]] = ContextVar("_collected", default=None)


def say(remark: Remark) -> None:
    """Warn of stamps, or note the remark where `collected_remarks` collects them."""
    remarks = _collected.get()
    if remarks is None:
        warn(remark.message)
    else:
        remarks.append(remark)


@contextmanager
def collected_remarks() -> Iterator[list[Remark]]:
    """Collect the remarks of the context, which nobody is warned of."""
    remarks: list[Remark] = []
    token = _collected.set(remarks)
    try:
        yield remarks
    finally:
        _collected.reset(token)


def _nothing() -> IntArray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class SharedTicks:
    """The earliest ticks of certain times, and which of these times differ.

    ``ticks``, (k,) int64, rise; ``lowest`` and ``highest``, likewise, are the nanoseconds that were rounded
    off the times of each, and ``counts`` the numbers of times. ``is_cut`` says that there are later ticks.
    """

    ticks: IntArray = field(default_factory=_nothing)
    lowest: IntArray = field(default_factory=_nothing)
    highest: IntArray = field(default_factory=_nothing)
    counts: IntArray = field(default_factory=_nothing)
    is_cut: bool = False

    @classmethod
    def of(cls, ticks: IntArray, rests: IntArray | None) -> SharedTicks:
        """Return the ticks of times, (n,) int64, and what was rounded off each (None: nothing)."""
        rests = np.zeros(len(ticks), np.int64) if rests is None else rests
        return cls._joined(ticks, rests, rests, np.ones(len(ticks), np.int64))

    @classmethod
    def _joined(cls, ticks: IntArray, lowest: IntArray, highest: IntArray, counts: IntArray) -> SharedTicks:
        if not len(ticks):
            return cls()
        order = np.argsort(ticks, kind="stable")
        ticks, lowest, highest, counts = ticks[order], lowest[order], highest[order], counts[order]
        starts = np.flatnonzero(np.diff(ticks, prepend=ticks[0] - 1))
        return cls(
            ticks[starts],
            np.minimum.reduceat(lowest, starts),
            np.maximum.reduceat(highest, starts),
            np.add.reduceat(counts, starts),
        )

    def __add__(self, other: SharedTicks) -> SharedTicks:
        """Return the ticks of both. O(k log k)."""
        joined = self._joined(
            np.concatenate((self.ticks, other.ticks)),
            np.concatenate((self.lowest, other.lowest)),
            np.concatenate((self.highest, other.highest)),
            np.concatenate((self.counts, other.counts)),
        )
        return replace(joined, is_cut=self.is_cut or other.is_cut)

    def cut(self, limit: int) -> SharedTicks:
        """Return the first ``limit`` ticks."""
        if len(self.ticks) <= limit:
            return self
        return SharedTicks(
            self.ticks[:limit], self.lowest[:limit], self.highest[:limit], self.counts[:limit], True
        )

    @property
    def merged(self) -> int:
        """The number of times that share their tick with a different one; a lower bound if ticks are cut."""
        return int(self.counts[self.lowest != self.highest].sum())
