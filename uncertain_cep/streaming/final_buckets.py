"""A stream's probabilities by buckets of time: each bucket is weighed once, when it is final."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from confidence.config import EVER, NEVER
from uncertain_cep.executor import execute
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.streaming.early_rows import EarlyRows
from uncertain_cep.streaming.micro_batches import EventsInReach, SlicedEvaluation
from uncertain_cep.streaming.single_events import Held
from uncertain_cep.traces.held_rows import naming_no_rows

__all__ = ["BucketedEvaluation"]


class BucketedEvaluation(SlicedEvaluation):
    """The events in reach, and the rows of RETURN PROBABILITY EVERY of the buckets that are final.

    A match counts in the buckets in which it can begin. A bucket is final once no unseen event is within the
    window of its last tick: then none can be first in it, and every match that begins in it is final. Buckets
    that become final together are weighed together, with the events in reach of them.

    Parameters
    ----------
    plan : EvaluationPlan
        With EVERY.
    schema : pyarrow.Schema
        Of the events.
    slice_length : int
        How many ticks of buckets are weighed together, at least, as in `SlicedEvaluation`.
    early : EarlyRows or None
    """

    def __init__(
        self, plan: EvaluationPlan, schema: pa.Schema, slice_length: int, early: EarlyRows | None = None
    ) -> None:
        super().__init__(plan, schema, slice_length, early)
        assert plan.bound.buckets is not None
        self._buckets = plan.bound.buckets
        self._begin = NEVER
        self._earliest = EVER

    def _took(self, events: EventsInReach) -> None:
        self._earliest = min(self._earliest, int(events.lower[events.positive].min(initial=EVER)))

    def _took_alone(self, event: Held) -> None:
        if event.positive:
            self._earliest = min(self._earliest, event.lower)

    def _final(self, safe: int) -> tuple[int, int]:
        """Return where the buckets that are final begin and end, ticks."""
        end = EVER if safe == EVER else self._buckets.begun(safe - self._reach)
        return max(self._begin, self._buckets.begun(self._earliest)), end

    def earliest_end(self, safe: int) -> int:
        """Return a tick before which no bucket to come begins."""
        return min(self._buckets.begun(safe), max(self._begin, self._buckets.begun(self._earliest)))

    def _has_final(self, safe: int) -> bool:
        begin, end = self._final(safe)
        return safe == EVER or (end > begin and (end - begin >= self._length or self.crowded))

    def _final_rows(self, safe: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of buckets that are final."""
        begin, end = self._final(safe)
        if end <= begin and safe != EVER:
            return
        events = self._joined()
        self._keep_from(events, end)
        here = events.positive & (events.lower < end) & (events.upper >= begin)
        if here.any():
            # A match that begins before the end has no event behind its window.
            near = (events.upper >= begin - self._back) & (
                events.lower <= min(end, EVER - self._reach) + self._reach
            )
            table = events.table.filter(pa.array(near))
            with naming_no_rows(self._plan.names, self._plan.partition_attributes):
                yield from execute(self._plan, table, buckets=(begin, end))

    def _certain_rows(self, early: EarlyRows, safe: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are certain, of buckets that are not final."""
        events = self._joined()
        if events.positive.any():
            yield from early.certain(events.table, safe, buckets=(self._begin, EVER))

    def _keep_from(self, events: EventsInReach, end: int) -> None:
        """Keep the events in reach of buckets from a tick on."""
        self._begin = end
        kept = events.keep(np.full(len(events.lower), end != EVER) & (events.upper >= end - self._back))
        self._parts = [kept]
        self.size = self._settled = len(kept.lower)
        self._earliest = EVER
        self._took(kept)
