"""A part of a stream's state: slices of time are held until they are final, then matched and dropped.

Nothing here depends on Spark: a `Store` keeps the state between batches. The state is raw events, which
outlive any change of the engine. Each part counts time itself, from the same rows, instead of Spark's
watermark: so heartbeats and arrival move different bounds, a match comes out with the batch that makes it
final, and Spark has nothing to drop.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.config import EVER
from uncertain_cep.executor import ticks_of
from uncertain_cep.files.blobs import packed, unpacked
from uncertain_cep.streaming.batch_clock import NOTHING_KNOWN, BatchClock, News
from uncertain_cep.streaming.cutting import CLOCK, EVENTS, IDS
from uncertain_cep.streaming.held_ids import BlobStore, HeldIds
from uncertain_cep.streaming.released_rows import ReleasedRows
from uncertain_cep.streaming.slice_matches import Due, HeldSlice, matches_told
from uncertain_cep.streaming.stream_layout import KIND, LATE_ID, LATE_TYPE, StreamLayout, check_fingerprint

__all__ = ["COUNTED", "OneQuery", "Report", "StateParts", "Store", "index_of", "pass_time", "take"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

COUNTED: Final = (
    "events", "matches", "suppressed", "late", "duplicates", "undecided",
    "state_rows", "state_bytes", "bound", "newest",
)  # fmt: skip
"""The counters of a batch. The last two are ticks."""


class Store(BlobStore, Protocol):
    """The store of a part of the state, kept between batches."""

    def read_index(self) -> str | None:
        """Return the text that `write_index` kept."""

    def write_index(self, index: str) -> None:
        """Keep a text."""

    def clear(self) -> None:
        """Drop all that is kept."""


class StateParts(Protocol):
    """The parts of a state, by their buckets."""

    @property
    def idle(self) -> tuple[int, int] | None:
        """Milliseconds without events, and the ticks by which the bound moves on then."""

    def take(self, bucket: int, store: Store, pieces: Iterable[Mapping[str, Any]]) -> Report:
        """Take the pieces of a batch for a part."""

    def pass_time(self, bucket: int, store: Store) -> Report:
        """Move the bound of a part on, as no event has come for a while."""


class Report(NamedTuple):
    """The results of a batch: tables of ``layout.output_schema`` as blobs, and the counters, null for none.

    No match to come ends before ``earliest_end``, ticks: it belongs to a slice that is held, or to come.
    ``rule`` is the place of a rule among those of the stream; None: of one query, or of no rule. ``since`` is
    the tick at which rules changed last. ``clock`` is that behind the batch.
    """

    blobs: list[bytes]
    counts: Mapping[str, int | None]
    earliest_end: int = NOTHING_KNOWN
    rule: int | None = None
    since: int | None = None
    clock: BatchClock | None = None


@dataclass(slots=True)
class _State:
    """A part of the state but for its blobs. ``released`` rows have been told, and are to come again.

    ``note`` is what others keep in the index.
    """

    clock: BatchClock
    slices: dict[int, HeldSlice] = field(default_factory=dict)
    ids: HeldIds = field(default_factory=HeldIds)
    released: int = 0
    note: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, layout: StreamLayout, index: Mapping[str, Any] | None) -> _State:
        if index is None:
            return cls(layout.clock)
        check_fingerprint(index["fingerprint"], layout.fingerprint)
        slices = {int(number): HeldSlice(*held) for number, held in index["slices"].items()}
        # State of an older version has no ids, and has released nothing.
        ids = HeldIds(**index.get("ids", {}))
        clock = BatchClock.read(index["clock"])
        return cls(clock, slices, ids, index.get("released", 0), index.get("note", {}))

    def keep(self, layout: StreamLayout, store: Store) -> None:
        slices = {number: astuple(held) for number, held in self.slices.items()}
        index = {"fingerprint": layout.fingerprint, "clock": self.clock.written(), "slices": slices}
        index |= {"ids": asdict(self.ids), "released": self.released}
        store.write_index(json.dumps(index | ({"note": self.note} if self.note else {})))


@dataclass(slots=True)
class _Arrived:
    """The content of a batch: blobs of new events by slice, tables of ids, and late events as blobs.

    With ``releases`` all that is decided is told.
    """

    new: dict[int, list[bytes]] = field(default_factory=dict)
    ids: list[pa.Table] = field(default_factory=list)
    late: list[bytes] = field(default_factory=list)
    releases: bool = False


def index_of(store: Store) -> dict[str, Any] | None:
    """Return the index that a part of the state has; None if the part is new."""
    text = store.read_index()
    return None if text is None else dict(json.loads(text))


def take(
    layout: StreamLayout,
    store: Store,
    index: Mapping[str, Any] | None,
    pieces: Iterable[Mapping[str, Any]],
) -> Report:
    """Take the pieces of a batch for a part of the state, and return the results.

    Parameters
    ----------
    index : mapping of str to any, or None
        See :func:`index_of`.
    pieces : iterable of mapping
        Rows of ``PIECES`` in any order, the news of all parts of the batch among them.

    Raises
    ------
    TraceError
        If an id is used twice among the events of a slice, or among those whose ids this part knows.
    OptionError
        If the state is that of another stream.
    """
    state = _State.of(layout, index)
    begin = state.clock
    news: list[News] = []
    arrived = _Arrived()
    counts: Counter[str] = Counter()
    for piece in pieces:
        if piece["kind"] == CLOCK:
            news.append(News(**json.loads(piece["blob"])))
            continue
        if piece["kind"] == IDS:
            table, _ = unpacked(piece["blob"])
            if begin.may_be_late(piece["lower"], piece["upper"]):
                table = table.filter(pa.array(~_late(table, begin, layout)[0]))
            arrived.ids.append(table)
            continue
        counts["events"] += piece["own"]
        if begin.may_be_late(piece["lower"], piece["upper"]):
            piece = _on_time(piece, begin, layout, arrived.late, counts)
        if piece["kind"] == EVENTS and piece["rows"]:
            number = piece["slice"]
            arrived.new.setdefault(number, []).append(piece["blob"])
            held = state.slices.setdefault(number, HeldSlice(waiting=EVER))
            held.rows += piece["rows"]
            held.bytes += len(piece["blob"])
            held.owner_upper = max(held.owner_upper, piece["owner_upper"])
            held.waiting = min(held.waiting, piece["waiting"])
    state.clock = begin.learned(news)
    arrived.releases = any(one.releases for one in news)
    return _advanced(layout, store, state, arrived, counts)


def pass_time(layout: StreamLayout, store: Store, index: Mapping[str, Any] | None) -> Report:
    """Move the bound on by the ticks of the layout's idle time, and return the results that become final."""
    state = _State.of(layout, index)
    assert layout.idle is not None
    state.clock = state.clock.moved(layout.idle[1])
    return _advanced(layout, store, state, _Arrived(), Counter())


def _on_time(
    piece: Mapping[str, Any],
    clock: BatchClock,
    layout: StreamLayout,
    blobs: list[bytes],
    counts: Counter[str],
) -> Mapping[str, Any]:
    """Return the events of a piece that are not late; add late ones that begin in this slice to the blobs."""
    plan = layout.plan
    table, _ = unpacked(piece["blob"])
    late, lower, upper = _late(table, clock, layout)
    if not late.any():
        return piece
    begins = late if piece["kind"] != EVENTS else late & (lower // layout.length == piece["slice"])
    if begins.any():
        counts["late"] += int(begins.sum())
        gone = table.filter(pa.array(begins))
        bounds = (("range_lower", lower), ("range_upper", upper))
        columns = {name: plan.domain.times(bound[begins]) for name, bound in bounds}
        columns |= {LATE_TYPE: gone.column(plan.names.type), LATE_ID: gone.column(plan.names.id)}
        blobs.append(_packed_rows("late", columns, gone.num_rows, layout))
    if piece["kind"] != EVENTS:
        return piece
    on_time = table.filter(pa.array(~late))
    return {**piece, "rows": on_time.num_rows, "blob": packed(on_time, layout.mark)}


def _late(table: pa.Table, clock: BatchClock, layout: StreamLayout) -> tuple[Mask, Int64, Int64]:
    """Return a mask of the late events, and the bounds of all, ticks."""
    plan = layout.plan
    lower, upper = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    return clock.late(lower, upper, table.column(plan.names.type)), lower, upper


def _advanced(
    layout: StreamLayout,
    store: Store,
    state: _State,
    arrived: _Arrived,
    counts: Counter[str],
) -> Report:
    """Keep new events, match final slices, and return the results."""
    bound = state.clock.bound(layout.types)
    final = []
    for number, held in sorted(state.slices.items()):
        if layout.is_final(number, held.owner_upper, bound):
            final.append(number)
            continue
        for blob in arrived.new.get(number, ()):
            store.write(number, held.parts, blob)
            held.parts += 1
    blobs = arrived.late
    at_once = layout.tells_at_once or (arrived.releases and not layout.has_buckets)
    due = Due(final, arrived.new, bound, at_once)
    for matches in _matches(layout, store, state, due, counts, releases=arrived.releases):
        counts["matches"] += matches.num_rows
        if matches.num_rows:
            columns = {name: matches.column(name) for name in layout.plan.output_schema.names}
            blobs.append(_packed_rows("match", columns, matches.num_rows, layout))
    state.ids.learn(layout, store, arrived.ids, bound)
    counts["state_rows"] = sum(held.rows for held in state.slices.values())
    counts["state_bytes"] = state.ids.bytes + sum(held.bytes for held in state.slices.values())
    state.keep(layout, store)
    counted = {name: counts[name] for name in COUNTED} | {"bound": bound, "newest": state.clock.now}
    earliest_end = min([bound, *(_earliest(layout, *held) for held in state.slices.items())])
    return Report(blobs, counted, earliest_end, clock=state.clock)


def _matches(
    layout: StreamLayout,
    store: Store,
    state: _State,
    due: Due,
    counts: Counter[str],
    *,
    releases: bool,
) -> Iterator[pa.Table | pa.RecordBatch]:
    """Yield the matches that are told, and drop final slices."""
    matches = matches_told(layout, store, state.slices, due, counts)
    released = None
    if releases or state.released:
        released = ReleasedRows(layout, store, state.released)
        matches = released.untold(matches)
    yield from matches
    for number in due.final:
        for part in range(state.slices.pop(number).parts):
            store.remove(number, part)
    if released is not None:
        if releases:
            yield from released.release(state.slices, due.bound)
            counts["undecided"] += released.undecided
        state.released = released.keep()


def _earliest(layout: StreamLayout, number: int, held: HeldSlice) -> int:
    """Return a tick before which no match of a slice that is to come ends, ticks."""
    begin = number * layout.length
    # It belongs to an event that waits, and ends no earlier than this begins.
    return max(begin, held.waiting - layout.largest) if layout.tells_at_once else begin


@dataclass(frozen=True)
class OneQuery:
    """The parts of the state of one query."""

    layout: StreamLayout

    @property
    def idle(self) -> tuple[int, int] | None:
        """Milliseconds without events, and the ticks by which the bound moves on then."""
        return self.layout.idle

    def take(self, bucket: int, store: Store, pieces: Iterable[Mapping[str, Any]]) -> Report:  # noqa: ARG002
        """Take the pieces of a batch for a part."""
        return take(self.layout, store, index_of(store), pieces)

    def pass_time(self, bucket: int, store: Store) -> Report:  # noqa: ARG002
        """Move the bound on."""
        return pass_time(self.layout, store, index_of(store))


def _packed_rows(kind: str, columns_by_name: Mapping[str, Any], rows: int, layout: StreamLayout) -> bytes:
    """Return rows of the output schema as a blob; columns that are not given are null."""
    columns_by_name = {KIND: pa.repeat(pa.scalar(kind), rows), **columns_by_name}
    columns = [
        columns_by_name[field.name].cast(field.type)
        if field.name in columns_by_name
        else pa.nulls(rows, field.type)
        for field in layout.output_schema
    ]
    return packed(pa.table(columns, schema=layout.output_schema))
