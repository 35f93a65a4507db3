"""Rules over events that are cut into pieces, by rule, slice of time and hash of keys.

Nothing here imports pyspark. Each rule of a table has the layout of a stream that has ended: all slices are
final.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.config import EVER
from uncertain_cep.errors import UncertainCepError
from uncertain_cep.executor import check_table
from uncertain_cep.files.blobs import unpacked
from uncertain_cep.rule_sets.events_by_type import EventsByType
from uncertain_cep.rule_sets.named_rules import Rule
from uncertain_cep.rule_sets.rule_matching import RULE, rows_of
from uncertain_cep.rule_sets.told_alerts import told_alerts
from uncertain_cep.streaming.batch_clock import News
from uncertain_cep.streaming.cutting import (
    CLOCK,
    PIECES,
    arrived_piece,
    clock_pieces,
    gathered,
    pieces_of,
    without_heartbeats,
)
from uncertain_cep.streaming.held_slices import take
from uncertain_cep.streaming.stream_layout import StreamLayout

__all__ = [
    "LATE_BUCKET",
    "SpreadRule",
    "cut_for_rules",
    "matches_in_pieces",
    "named_rule",
    "rule_of",
    "told_of_rules",
]

LATE_BUCKET: Final = 0
"""The part of the state that has all events, to tell late ones; those of rules are behind it."""


@dataclass(frozen=True)
class SpreadRule:
    """A rule whose events are spread over tasks.

    Attributes
    ----------
    rule : Rule
    layout : StreamLayout
    hash : str
        The column with the hash of its keys.
    types : frozenset of str or None
        The types of the events that matter to it; None: all.
    apart : int
        Ticks between alerts that are told; 0 where none are suppressed.
    first : int
        Its first bucket; the others follow.
    leaves : bool
        Whether other rules follow it, see :class:`uncertain_cep.rule_sets.rule_changes.HeldRule`.
    """

    rule: Rule
    layout: StreamLayout
    hash: str
    types: frozenset[str] | None
    apart: int
    first: int
    leaves: bool = False

    @property
    def end(self) -> int:
        """The bucket behind its last one."""
        return self.first + self.layout.buckets


def cut_for_rules(
    batches: Iterable[pa.RecordBatch],
    *,
    rules: Sequence[SpreadRule],
    schema: pa.Schema,
    of_stream: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of some events for all rules, of the schema ``PIECES``.

    The batches have the columns of ``schema``, by position. With ``of_stream`` ``LATE_BUCKET`` gets all
    events, and all buckets learn what is known of events to come.
    """
    news, has_rows = News(), False
    first = rules[0].layout
    for table in gathered(batches, schema):
        has_rows = True
        if of_stream:
            table, said = without_heartbeats(table, first)
            news = news.joined(said)
        if not table.num_rows:
            continue
        check_table(first.plan, table)
        if of_stream:
            piece, latest = arrived_piece(table, first)
            news = news.joined(News(latest))
            yield _in_buckets(piece, pa.scalar(LATE_BUCKET))
        by_type = EventsByType(table, first.plan.names.type)
        for one in rules:
            part, _ = by_type.of(one.types)
            if part.num_rows:
                hashes = np.asarray(part.column(one.hash).to_numpy())
                with named_rule(one):
                    pieces, _ = pieces_of(part.select(one.layout.schema.names), hashes, one.layout)
                    for batch in pieces:
                        yield _in_buckets(batch, pc.add(batch.column("bucket"), one.first))
    if of_stream and has_rows:
        yield clock_pieces(
            news, [LATE_BUCKET, *(bucket for one in rules for bucket in range(one.first, one.end))]
        )


def _in_buckets(pieces: pa.RecordBatch, bucket: Any) -> pa.RecordBatch:
    column = pa.repeat(bucket, pieces.num_rows) if isinstance(bucket, pa.Scalar) else bucket
    return pieces.set_column(0, "bucket", column)


def rule_of(rules: Sequence[SpreadRule], bucket: int) -> SpreadRule | None:
    """Return the rule that a bucket is of; None for ``LATE_BUCKET``."""
    return next((one for one in rules if one.first <= bucket < one.end), None)


def matches_in_pieces(
    batches: Iterable[pa.RecordBatch], *, rules: Sequence[SpreadRule], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of rules in all pieces of some buckets, as rows of the joint schema of all rules."""
    pieces: dict[int, list[dict[str, Any]]] = {}
    for batch in batches:
        for piece in batch.rename_columns(PIECES.names).to_pylist():
            pieces.setdefault(piece["bucket"], []).append(piece)
    end = {"kind": CLOCK, "blob": json.dumps(asdict(News(said=EVER)))}
    for bucket in sorted(pieces):
        one = rule_of(rules, bucket)
        assert one is not None
        with named_rule(one):
            report = take(one.layout, _Nothing(), None, [*pieces.pop(bucket), end])
        for blob in report.blobs:
            matches = unpacked(blob)[0].select(one.layout.plan.output_schema.names)
            yield from rows_of(one.rule.name, matches, schema).to_batches()


def told_of_rules(
    batches: Iterable[pa.RecordBatch], *, rules: Sequence[SpreadRule], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the alerts that are told among all matches of some rules, of the joint schema by position."""
    tables = [pa.Table.from_batches([batch]).rename_columns(schema.names) for batch in batches]
    if not tables:
        return
    whole = pa.concat_tables(tables).cast(schema)
    for one in rules:
        part = whole.filter(pc.equal(whole.column(RULE), one.rule.name))
        if part.num_rows and one.rule.suppress is not None:
            plan = one.layout.plan
            matches = part.select(plan.output_schema.names)
            alerts = told_alerts(plan, matches, one.apart, one.rule.suppress.by)
            part = rows_of(one.rule.name, alerts, schema)
        yield from part.to_batches()


class _Nothing:
    """The store of a stream that has ended with its first batch: it has held nothing, and holds nothing."""

    def read_index(self) -> None:
        """Return that there is no state yet."""

    def write_index(self, index: str) -> None:
        """Keep nothing."""

    def clear(self) -> None:
        """Drop nothing, as nothing is kept."""

    def read(self, slice: int, part: int) -> bytes:
        raise AssertionError(f"part {part} of slice {slice} was never kept")

    def write(self, slice: int, part: int, blob: bytes) -> None:
        raise AssertionError(f"slice {slice} is final: part {part} of {len(blob)} bytes is not kept")

    def remove(self, slice: int, part: int) -> None:
        raise AssertionError(f"part {part} of slice {slice} was never kept")


@contextmanager
def named_rule(one: SpreadRule) -> Iterator[None]:
    """Note the name of the rule that an error is of."""
    try:
        yield
    except UncertainCepError as error:
        error.add_note(f"in rule {one.rule.name!r}")
        raise
