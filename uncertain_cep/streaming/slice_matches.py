"""The matches of slices of a stream: of all that are final together, or of each event as soon as it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.config.tuning import CUT_AT_ONCE
from uncertain_cep.executor import Slicing, execute, ticks_of
from uncertain_cep.files.blobs import unpacked
from uncertain_cep.results.order import finished
from uncertain_cep.streaming.batch_clock import NOTHING_KNOWN
from uncertain_cep.streaming.cutting import owners_of
from uncertain_cep.streaming.held_ids import BlobStore
from uncertain_cep.streaming.stream_layout import StreamLayout, check_fingerprint
from uncertain_cep.traces.held_rows import naming_no_rows

__all__ = ["Due", "HeldSlice", "events_of", "matches_told", "waiting_owners"]

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class HeldSlice:
    """A slice: the number of its blobs, their events and bytes, and the largest `upper` of an owner.

    Matches of owners that end before ``told_until`` have been told; the first of the others ends at
    ``waiting``, or later. State of an older version does not know it, and has told none.
    """

    parts: int = 0
    rows: int = 0
    bytes: int = 0
    owner_upper: int = NOTHING_KNOWN
    told_until: int = NOTHING_KNOWN
    waiting: int = NOTHING_KNOWN


class Due(NamedTuple):
    """The slices whose matches a batch tells.

    Attributes
    ----------
    final : list of int
        Those of which all matches are final.
    new : mapping of int to list of bytes
        The blobs that a final slice has beside those in the store.
    bound : int
        No event to come begins before this tick.
    at_once : bool
        Whether no final match waits for others of its slice.
    """

    final: list[int]
    new: Mapping[int, list[bytes]]
    bound: int
    at_once: bool


def matches_told(
    layout: StreamLayout,
    store: BlobStore,
    slices: Mapping[int, HeldSlice],
    due: Due,
    counts: Counter[str],
) -> Iterator[pa.Table | pa.RecordBatch]:
    """Yield the matches of final slices, and those of others that are told at once.

    It notes what is told of slices that are not final, and counts copies.
    """
    final, new = due.final, due.new
    begun = [number for number in final if slices[number].told_until != NOTHING_KNOWN]
    whole = [number for number in final if slices[number].told_until == NOTHING_KNOWN]
    for tables in _groups(layout, store, slices, whole, new):
        yield from _evaluated(layout, tables, counts)
    until = layout.final_until(due.bound)
    open_slices = slices.keys() - {*final} if due.at_once else ()
    partly = sorted(number for number in open_slices if slices[number].waiting < until)
    # All of a slice that is not final is in the store by now.
    for numbers, added, end in ((begun, new, EVER), (partly, {}, until)):
        for number in numbers:
            for tables in _groups(layout, store, slices, [number], added):
                table = tables[number]
                if layout.drops:
                    # Those that begin in a slice are counted once, when all have come.
                    of_slice = counts if end == EVER else Counter()
                    table = _without_copies(layout, number, table, of_slice)
                yield from _told_until(layout, number, slices[number], table, end)


def _told_until(
    layout: StreamLayout, number: int, held: HeldSlice, table: pa.Table, end: int
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of a slice whose owners end before a tick, but for those that were told.

    They are final, as no event to come is within their window; and no owner to come ends before the bound.
    """
    plan = layout.plan
    lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    waits = waiting_owners(layout, number, held, table)
    owned = waits & (upper < end)
    held.told_until, held.waiting = end, int(upper[waits & ~owned].min(initial=EVER))
    if owned.any():
        begin = int(lower[owned].min()) - layout.back
        reached = int(upper[owned].max()) + layout.reach
        near = (upper >= begin) & (lower <= reached)
        with naming_no_rows(plan.names, plan.partition_attributes):
            yield from execute(plan, table.filter(pa.array(near)), owned=owned[near])


def waiting_owners(layout: StreamLayout, number: int, held: HeldSlice, table: pa.Table) -> Mask:
    """Return a mask of the events of a slice whose matches were not told when they became final."""
    plan = layout.plan
    lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    is_waiting: Mask = (lower // layout.length == number) & (upper >= held.told_until)
    return owners_of(table, layout) & is_waiting


def events_of(
    layout: StreamLayout, store: BlobStore, number: int, held: HeldSlice, new: Sequence[bytes] = ()
) -> pa.Table:
    """Return the events of a slice: those in the store, and new ones."""
    tables = []
    for blob in [*(store.read(number, part) for part in range(held.parts)), *new]:
        table, mark = unpacked(blob)
        if mark != layout.mark:
            check_fingerprint(json.loads(mark), layout.fingerprint)
        tables.append(table)
    return pa.concat_tables(tables)


def _groups(
    layout: StreamLayout,
    store: BlobStore,
    slices: Mapping[int, HeldSlice],
    final: list[int],
    new: Mapping[int, list[bytes]],
) -> Iterator[dict[int, pa.Table]]:
    """Yield the events of the final slices, a few slices at a time."""
    group: dict[int, pa.Table] = {}
    rows = 0
    for number in final:
        held = slices[number]
        has_matches = held.owner_upper != NOTHING_KNOWN if layout.has_buckets else held.waiting != EVER
        # A copy is counted in the slice that it begins in, whether this has matches or not.
        if not has_matches and not layout.drops:
            continue
        group[number] = events_of(layout, store, number, held, new.get(number, ()))
        rows += group[number].num_rows
        if rows >= CUT_AT_ONCE:
            yield group
            group, rows = {}, 0
    if group:
        yield group


def _evaluated(
    layout: StreamLayout, slices: Mapping[int, pa.Table], counts: Counter[str]
) -> Iterator[pa.Table | pa.RecordBatch]:
    """Yield the matches of some slices, or the counts of their buckets."""
    plan = layout.plan
    if layout.drops:
        slices = {number: _without_copies(layout, number, table, counts) for number, table in slices.items()}
    with naming_no_rows(plan.names, plan.partition_attributes):
        if plan.counts:
            for number, table in slices.items():
                counts_of_buckets = finished(plan, execute(plan, table))
                bucket = plan.domain.ticks(counts_of_buckets.column("bucket"))
                yield counts_of_buckets.filter(pa.array(bucket // layout.length == number))
            return
        if layout.has_buckets:
            for number, table in slices.items():
                buckets = number * layout.length, (number + 1) * layout.length
                yield from execute(plan, table, buckets=buckets)
            return
        column = layout.slice_column
        numbered = [
            table.append_column(column, pa.repeat(pa.scalar(number, pa.int64()), table.num_rows))
            for number, table in slices.items()
        ]
        yield from execute(plan, pa.concat_tables(numbered), slicing=Slicing(column, 0, layout.length))


def _without_copies(layout: StreamLayout, number: int, table: pa.Table, counts: Counter[str]) -> pa.Table:
    """Return the events of a slice without copies of rows, and count the copies that begin in it."""
    ids = table.column(layout.plan.names.id)
    used = pc.value_counts(ids.combine_chunks())
    again = used.field("values").filter(pc.greater(used.field("counts"), 1))
    if not len(again):
        return table
    places = np.flatnonzero(np.asarray(pc.is_in(ids, again).to_numpy()))
    seen: set[str] = set()
    kept = np.ones(table.num_rows, dtype=np.bool_)
    for place, row in zip(places.tolist(), table.take(pa.array(places)).to_pylist(), strict=True):
        text = repr(row)
        kept[place] = text not in seen
        seen.add(text)
    lower = ticks_of(table, layout.plan.names.lower, layout.plan)
    counts["duplicates"] += int((~kept & (lower // layout.length == number)).sum())
    return table.filter(pa.array(kept))
