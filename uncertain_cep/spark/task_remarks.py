"""Remarks about stamps that tasks of Spark make, and their sum; nothing here imports pyspark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from uncertain_cep.traces.intervals import Rounding, merged_message
from uncertain_cep.traces.stamp_remarks import Remark, SharedTicks

__all__ = ["TaskRemarks"]

_MOST_TICKS: Final = 1024
"""Ticks of a task that the driver compares with those of others: some 32 kB."""

Kind = tuple[Callable[..., str], tuple[str, ...]]
"""The text of a remark, and the names in it."""


@dataclass(slots=True)
class TaskRemarks:
    """The remarks about the stamps of some rows.

    Attributes
    ----------
    counts : dict
        The numbers of stamps, by the kind of remark.
    merged : int
        The certain times that share a tick with different ones of the same batch of rows.
    ticks : SharedTicks
        The earliest ticks of all rows, to be compared with those of other tasks.
    """

    counts: dict[Kind, tuple[int, ...]] = field(default_factory=dict)
    merged: int = 0
    ticks: SharedTicks = field(default_factory=SharedTicks)

    def note(self, remarks: Sequence[Remark], rounding: Rounding | None) -> None:
        """Add the remarks about a batch of rows, and what its ticks did; None: nothing."""
        for remark in remarks:
            self._count((remark.text, remark.of), remark.counts)
        if rounding is not None:
            ticks = SharedTicks.of(rounding.ticks, rounding.rests)
            self.merged += ticks.merged
            self.ticks = (self.ticks + ticks.cut(_MOST_TICKS)).cut(_MOST_TICKS)

    def add(self, other: TaskRemarks) -> None:
        """Add the remarks of another task."""
        for kind, counts in other.counts.items():
            self._count(kind, counts)
        self.merged += other.merged
        self.ticks = (self.ticks + other.ticks).cut(_MOST_TICKS)

    def _count(self, kind: Kind, counts: tuple[int, ...]) -> None:
        before = self.counts.get(kind, (0,) * len(counts))
        self.counts[kind] = tuple(a + b for a, b in zip(before, counts, strict=True))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell the driver."""
        return not self.counts and not len(self.ticks.ticks)

    def total(self) -> Counter[str]:
        """Return how many stamps each kind of remark is about."""
        totals = Counter({text.__qualname__: counts[0] for (text, _), counts in self.counts.items()})
        totals["merged"] = max(self.merged, self.ticks.merged)
        return +totals

    def messages(self, tick: str | None) -> list[str]:
        """Return the warnings."""
        messages = [Remark(text, of, counts).message for (text, of), counts in self.counts.items()]
        merged = max(self.merged, self.ticks.merged)
        if merged:
            messages.append(merged_message(merged, tick, at_least=self.ticks.is_cut))
        return messages
