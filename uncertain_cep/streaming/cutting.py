"""Cuts the events of a batch into pieces: those of one slice and one part of the state, as an Arrow blob."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.config import EVER, NEVER
from confidence.flat_lists import end_to_end
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.candidates.span_candidates import with_some_ends
from uncertain_cep.candidates.span_times import check_spans
from uncertain_cep.config.tuning import CUT_AT_ONCE
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.executor import check_table, constants_hold, ticks_of
from uncertain_cep.expressions.vectorised import Values
from uncertain_cep.files.blobs import packed
from uncertain_cep.streaming.batch_clock import NOTHING_KNOWN, News
from uncertain_cep.streaming.held_ids import id_pieces
from uncertain_cep.streaming.stream_layout import CLOSE, HEARTBEAT, RELEASE, StreamLayout
from uncertain_cep.timeline.domain import TICK_METADATA, with_noted_tick

__all__ = [
    "CLOCK",
    "EVENTS",
    "IDS",
    "OTHERS",
    "PIECES",
    "arrived_piece",
    "clock_pieces",
    "cut",
    "gathered",
    "owners_of",
    "pieces_of",
    "without_heartbeats",
]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

CLOCK: Final = 0
"""A piece that says what is known of events to come. Each part of the state gets all of these."""
EVENTS: Final = 1
"""A piece with events that matter to a slice."""
OTHERS: Final = 2
"""A piece with events that matter to no slice, and are looked at only since they may be late."""
IDS: Final = 3
"""A piece with the ids of events, to be compared with those of other slices."""

PIECES: Final = pa.schema(
    [
        (name, pa.int64())
        for name in ("bucket", "kind", "slice", "rows", "own", "lower", "upper", "owner_upper", "waiting")
    ]
    + [("blob", pa.binary())]
)
"""``rows`` is the number of events, ``own`` the number of those that begin in this slice. The bounds are the
least ones, in ticks; ``owner_upper`` is the largest `upper` of events that matches may belong to, ``waiting``
the least of those whose matches are of the slice."""


def cut(batches: Iterable[pa.RecordBatch], layout: StreamLayout) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of some events of a batch, of the schema ``PIECES``.

    The batches have the columns of ``layout.schema``, under any names, and last the hash of the key.
    Rows of reserved types are heartbeats.

    Raises
    ------
    TraceError
        With the events that are not sound.
    """
    news = News()
    has_rows = False
    for table in gathered(batches, layout.schema.append(pa.field("hash", pa.int64()))):
        has_rows = True
        events, said = without_heartbeats(table, layout)
        news = news.joined(said)
        if events.num_rows:
            place = len(layout.schema)
            hashes = np.asarray(events.column(place).to_numpy())
            pieces, latest = pieces_of(events.remove_column(place), hashes, layout)
            news = news.joined(News(latest))
            yield from pieces
    if has_rows:
        yield clock_pieces(news, range(layout.buckets))


def clock_pieces(news: News, buckets: Iterable[int]) -> pa.RecordBatch:
    """Return the pieces that tell each part of the state what is known of events to come."""
    blob = json.dumps(asdict(news)).encode()
    clocks = [{"bucket": bucket, "kind": CLOCK, "blob": blob} for bucket in buckets]
    return pa.RecordBatch.from_pylist([dict.fromkeys(PIECES.names, 0) | clock for clock in clocks], PIECES)


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield tables of rows that are cut at once; the batches have the columns of a schema, by position."""
    held: list[pa.RecordBatch] = []
    rows = 0
    schema = schema.remove_metadata()

    def table() -> pa.Table:
        return pa.Table.from_batches(held).rename_columns(schema.names).cast(schema)

    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= CUT_AT_ONCE:
            yield table()
            held, rows = [], 0
    if rows:
        yield table()


def without_heartbeats(table: pa.Table, layout: StreamLayout) -> tuple[pa.Table, News]:
    """Return the events of a table, and the news of its heartbeats."""
    names, domain = layout.plan.names, layout.plan.domain
    types = table.column(names.type)
    reserved = pc.or_(
        pc.starts_with(types, HEARTBEAT), pc.is_in(types, pa.array([CLOSE, RELEASE]))
    ).fill_null(False)
    news = News()
    if pc.any(reserved).as_py():
        for row in table.filter(reserved).select([names.type, names.lower]).to_batches():
            for kind, lower in zip(*row.columns, strict=True):
                _, _, of_type = kind.as_py().partition(":")
                if kind.as_py() == CLOSE:
                    news = news.joined(News(said=EVER))
                elif kind.as_py() == RELEASE:
                    news = news.joined(News(releases=True))
                elif not lower.is_valid:
                    message = "a heartbeat has no time: it says before which tick nothing is to come"
                    raise TraceError(TraceFault(message, column=names.lower))
                else:
                    tick = int(domain.ticks(pa.array([lower]))[0])
                    news = news.joined(News(of_type={of_type: tick}) if of_type else News(said=tick))
        table = table.filter(pc.invert(reserved))
    return table, news


def pieces_of(
    table: pa.Table, hashes: Int64, layout: StreamLayout
) -> tuple[Iterator[pa.RecordBatch], dict[str, int]]:
    """Return the pieces of events, and the latest `lower` of each type."""
    plan = layout.plan
    table = with_marginals(plan, table)
    check_table(plan, table)
    if plan.lasting:
        check_spans(plan, table)
    _check_tick(table, layout)
    lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    fits, by_type = _latest(table, lower, upper, layout)
    roles = _roles(with_some_ends(table, plan.names) if plan.lasting else table, layout)
    for mask in (roles.first, roles.later, *roles.used.values()):
        mask &= fits
    return _cut(table, lower, upper, hashes, roles, layout), by_type


def arrived_piece(table: pa.Table, layout: StreamLayout) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Return a piece of all events of a table, to tell late ones, and the latest `lower` of each type."""
    plan = layout.plan
    table = with_marginals(plan, table)
    check_table(plan, table)
    _check_tick(table, layout)
    lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    piece = _unused_piece(table, lower, upper, np.arange(table.num_rows), layout)
    return pa.RecordBatch.from_pylist([piece], PIECES), _latest(table, lower, upper, layout)[1]


def _latest(table: pa.Table, lower: Int64, upper: Int64, layout: StreamLayout) -> tuple[Mask, dict[str, int]]:
    """Return a mask of the events that are not too long, and their latest `lower` of each type."""
    fits = upper - lower <= layout.largest
    types = table.column(layout.plan.names.type).cast(pa.string())
    ticks = pa.table({"type": types, "lower": pa.array(lower)}).filter(pa.array(fits))
    latest = ticks.group_by("type").aggregate([("lower", "max")])
    columns = (latest.column(name).to_pylist() for name in ("type", "lower_max"))
    return fits, dict(zip(*columns, strict=True))


def _check_tick(table: pa.Table, layout: StreamLayout) -> None:
    """Check that the ticks of events, if they say how long these are, are those of the layout."""
    noted = with_noted_tick(table.replace_schema_metadata(None), layout.plan.names).schema.metadata
    if noted is None:
        return
    tick = noted[TICK_METADATA].decode()
    if tick != layout.plan.domain.describe():
        here = layout.plan.domain.describe()
        message = f'the events were made with ticks of {tick}, but a tick is {here} here: give tick="{tick}"'
        raise TraceError(TraceFault(message, column=layout.plan.names.tick))


class _Roles(NamedTuple):
    """The roles of n events in the matches of a stream, each (n,) bool."""

    first: Mask
    """Whether matches may belong to the event."""
    later: Mask
    """Whether the event matters to matches in another way."""
    used: dict[tuple[str, ...], Mask]
    """By the attributes within which ids are unique: whether the event is of a component there."""


def owners_of(table: pa.Table, layout: StreamLayout) -> Mask:
    """Return a mask of the events that matches may belong to, (n,) bool."""
    plan = layout.plan
    return _roles(with_some_ends(table, plan.names) if plan.lasting else table, layout).first


def _roles(table: pa.Table, layout: StreamLayout) -> _Roles:
    plan = layout.plan

    def nobody() -> Mask:
        return np.zeros(table.num_rows, dtype=np.bool_)

    roles = _Roles(nobody(), nobody(), {keys: nobody() for keys in layout.id_keys})
    seen: dict[str, Mask] = {}
    loaded: dict[str, Values] = {}
    for branch in plan.or_free:
        if not constants_hold(branch):
            continue
        for j, component in enumerate(branch.components):
            rows = rows_taken(branch, table, component, seen, loaded)
            roles.used[branch.partition_attributes][rows] = True
            if j == branch.owner:
                roles.first[rows] = True
            if (
                j != branch.owner
                or component.kleene
                or (layout.has_buckets and not branch.event_order.is_chain)
            ):
                roles.later[rows] = True
        for negation in branch.negations:
            roles.later[rows_taken(branch, table, negation.component, seen, loaded)] = True
    if plan.query.strategy.endswith("contiguity"):
        roles.later[:] = True
    return roles


def _unused_piece(
    table: pa.Table, lower: Int64, upper: Int64, places: Int64, layout: StreamLayout
) -> dict[str, Any]:
    """Return the piece of events that no match or count uses, at some places of a table."""
    names = layout.plan.names
    events = table.select([names.type, names.id, names.lower, names.upper]).take(pa.array(places))
    return {
        "bucket": int(lower[places[0]] // layout.length % layout.buckets),
        "kind": OTHERS,
        "slice": 0,
        "rows": len(places),
        "own": len(places),
        "lower": int(lower[places].min()),
        # An event that is too long is late in any case.
        "upper": int(np.where(upper - lower > layout.largest, NEVER, upper)[places].min()),
        "owner_upper": NOTHING_KNOWN,
        "waiting": EVER,
        "blob": packed(events),
    }


def _cut(
    table: pa.Table,
    lower: Int64,
    upper: Int64,
    hashes: Int64,
    roles: _Roles,
    layout: StreamLayout,
) -> Iterator[pa.RecordBatch]:
    length = layout.length
    first, later, used = roles
    first_slice = lower // length
    # A count belongs to a slice by any time within the interval, a match by the begin of the interval.
    begin = np.where(later, (lower - layout.reach) // length, first_slice)
    end = np.where(
        later, (upper + layout.back) // length, upper // length if layout.has_buckets else first_slice
    )
    kept = first | later
    counts = np.where(kept, end - begin + 1, 0)
    rows = np.repeat(np.arange(len(lower)), counts)
    slices = end_to_end(begin, counts)[0]
    buckets = (hashes[rows] % layout.buckets + slices) % layout.buckets
    order = np.lexsort((slices, buckets))
    rows, slices, buckets = rows[order], slices[order], buckets[order]
    events = table.take(pa.array(rows)).combine_chunks()
    changes = np.flatnonzero((np.diff(slices) != 0) | (np.diff(buckets) != 0)) + 1
    bounds = [0, *changes.tolist(), len(rows)] if len(rows) else [0]
    pieces: list[dict[str, Any]] = []
    owners = np.where(first[rows], upper[rows], NOTHING_KNOWN)
    waiting = np.where(first[rows] & (first_slice[rows] == slices), upper[rows], EVER)
    for start, stop in pairwise(bounds):
        part = rows[start:stop]
        pieces.append(
            {
                "bucket": int(buckets[start]),
                "kind": EVENTS,
                "slice": int(slices[start]),
                "rows": stop - start,
                "own": int((first_slice[part] == slices[start]).sum()),
                "lower": int(lower[part].min()),
                "upper": int(upper[part].min()),
                "owner_upper": int(owners[start:stop].max()),
                "waiting": int(waiting[start:stop].min()),
                "blob": packed(events.slice(start, stop - start), layout.mark),
            }
        )
    if not kept.all():
        pieces.append(_unused_piece(table, lower, upper, np.flatnonzero(~kept), layout))
    bounds_of_ids = {"lower": int(lower.min()), "upper": int(upper.min())}
    unused = dict.fromkeys(PIECES.names, 0) | bounds_of_ids | {"kind": IDS}
    pieces += [unused | piece for piece in id_pieces(table, end, used, layout)]
    yield pa.RecordBatch.from_pylist(pieces, PIECES)
