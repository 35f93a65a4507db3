"""``RETURN EXPECTED COUNT EVERY`` for events that sequences put in order: matches by when they begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.flat_lists import end_to_end, starts_of
from uncertain_cep.candidates.existence import Existence
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.box_parts import Boxes, Events
from uncertain_cep.results.boxes import groups_in_order

__all__ = ["buckets_in_order"]

Int64 = NDArray[np.int64]


def buckets_in_order(
    plan: EvaluationPlan,
    table: pa.Table,
    sequences: SequencedEvents,
    exists: Existence | None,
    chunks: Iterable[MatchBatch],
) -> Iterator[MatchBatch]:
    """Yield the confidences of matches shared out among the buckets of their first times.

    ``chunks`` are matches, whose events are rows, with confidences. Of what is yielded each match has the
    event of its first component alone, and the bucket's first tick for its range.
    """
    every = plan.bound.every
    assert every is not None
    for chunk in chunks:
        assert chunk.confidence is not None
        if not len(chunk.lower):
            continue
        events = _events_of(chunk, sequences)
        begins = _first_events(events, sequences)
        for some, confidences in groups_in_order(plan, table, events, sequences, exists):
            event = begins[some]
            number = events.lower[event] // every
            counts = events.upper[event] // every - number + 1
            match, each = np.repeat(some, counts), np.repeat(event, counts)
            first = end_to_end(number, counts)[0] * every
            low = np.maximum(first, events.lower[each])
            high = np.minimum(first + every - 1, events.upper[each])
            value = confidences.of(Boxes(match, each, low, high))
            total = np.add.reduceat(value, np.cumsum(counts) - counts)
            # What did not happen, or was spoiled, is a factor of the confidence.
            value *= np.repeat(chunk.confidence[some] / np.where(total > 0.0, total, 1.0), counts)
            yield MatchBatch(chunk.events[:1, match], first, first, value).keep(value > 0.0)


def _events_of(chunk: MatchBatch, sequences: SequencedEvents) -> Events:
    """Return the events of matches, one match behind the other."""
    counts, row = chunk.by_match()
    component = np.repeat(np.tile(np.arange(len(counts)), len(chunk.lower)), counts.T.ravel())
    lower, upper = sequences.lower + sequences.low, sequences.upper + sequences.high
    start = starts_of(counts.sum(axis=0))
    return Events(start, component, row, lower[row], upper[row], sequences.pmfs.offset[row])


def _first_events(events: Events, sequences: SequencedEvents) -> Int64:
    """Return the place of the event that each match begins with."""
    if not sequences.is_total:
        return events.start[:-1]
    match = np.repeat(np.arange(len(events.start) - 1), np.diff(events.start))
    order = np.lexsort((sequences.tie[events.row], sequences.lower[events.row], match))
    return np.asarray(order[events.start[:-1]])
