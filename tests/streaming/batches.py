"""A stream in batches without Spark: pieces go to parts of a state that are dictionaries."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pyarrow as pa

import uncertain_cep as uc
from tests.cases.sampling import sampled_from
from uncertain_cep.files.blobs import unpacked
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.streaming.batch_clock import NOTHING_KNOWN, BatchClock
from uncertain_cep.streaming.cutting import cut
from uncertain_cep.streaming.held_slices import Report, index_of, pass_time, take
from uncertain_cep.streaming.stream_layout import KIND, StreamLayout, StreamOptions

SLICE_LENGTHS = sampled_from([None, 1, 2, 3, 7, 1000])
BUCKETS = sampled_from([1, 2, 5])


@dataclass
class Kept:
    """One part of a state."""

    index: str | None = None
    blobs: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def read_index(self) -> str | None:
        return self.index

    def write_index(self, index: str) -> None:
        self.index = index

    def clear(self) -> None:
        self.index = None
        self.blobs.clear()

    def read(self, slice: int, part: int) -> bytes:
        return self.blobs[slice, part]

    def write(self, slice: int, part: int, blob: bytes) -> None:
        assert (slice, part) not in self.blobs
        self.blobs[slice, part] = blob

    def remove(self, slice: int, part: int) -> None:
        del self.blobs[slice, part]


class Batches:
    """Evaluates the batches of a stream as Spark does, in one process."""

    def __init__(
        self, query: str, schema: pa.Schema, options: StreamOptions, matching: MatchOptions | None = None
    ) -> None:
        parsed, matching = uc.parse(query), matching or MatchOptions()
        self.plan = make_plan(parsed, schema, matching)
        names = [*self.plan.required_columns]
        if "tick" in schema.names:
            names.append("tick")
        of_events = pa.schema([schema.field(name) for name in names])
        self.layout = StreamLayout.of(self.plan, of_events, options, parsed, matching)
        self.parts: dict[int, Kept] = defaultdict(Kept)
        self.counts: Counter[str] = Counter()
        self.found: list[pa.Table] = []

    def take(self, *tables: pa.Table) -> None:
        """Take a batch whose rows are in several partitions."""
        pieces: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for table in tables:
            for piece in cut(self._hashed(table), self.layout):
                for row in piece.to_pylist():
                    pieces[row["bucket"]].append(row)
        for bucket, rows in pieces.items():
            part = self.parts[bucket]
            self._report(take(self.layout, part, index_of(part), rows))

    def idle(self) -> None:
        """Let the idle time pass."""
        for part in self.parts.values():
            self._report(pass_time(self.layout, part, index_of(part)))

    def _report(self, report: Report) -> None:
        self.found += [unpacked(blob)[0] for blob in report.blobs]
        for name in ("events", "matches", "late", "duplicates", "undecided"):
            self.counts[name] += report.counts[name] or 0

    def rows(self, kind: str) -> pa.Table:
        """Return all rows of a kind so far."""
        table = pa.concat_tables([self.layout.output_schema.empty_table(), *self.found])
        return table.filter(pa.compute.equal(table.column(KIND), kind))

    def _hashed(self, table: pa.Table) -> Sequence[pa.RecordBatch]:
        keys = self.layout.spread_by
        rows = table.select(list(keys)).to_pylist() if keys else [{}] * table.num_rows
        hashes = [crc32(repr(sorted(row.items())).encode()) - 2**31 if keys else 0 for row in rows]
        events = table.select(self.layout.schema.names)
        batches: list[pa.RecordBatch] = events.append_column(
            "hash", pa.array(hashes, pa.int64())
        ).to_batches()
        return batches

    @property
    def bound(self) -> int:
        """No event to come that is not late begins earlier, ticks."""
        indices = [json.loads(part.index) for part in self.parts.values() if part.index is not None]
        if not indices:
            return NOTHING_KNOWN
        return BatchClock.read(indices[0]["clock"]).bound(self.layout.types)

    @property
    def held(self) -> int:
        """How many blobs the state has."""
        return sum(len(part.blobs) for part in self.parts.values())

    @property
    def matches(self) -> pa.Table:
        """The columns that a match has in a table."""
        return self.rows("match").select(self.plan.output_schema.names)


def plain(table: pa.Table) -> pa.Table:
    """Return a table as Spark hands it out: without dictionaries."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def notice(schema: pa.Schema, of_type: str, lower: int | None = None) -> pa.Table:
    """Return a row of a reserved type."""
    row = dict.fromkeys(schema.names) | {"type": of_type, "lower": lower}
    return pa.Table.from_pylist([row], schema=schema)
