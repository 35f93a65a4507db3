"""The parts in which workers read files of events, and what is known of a part before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uncertain_cep.config.limits import BATCH_ROWS
from uncertain_cep.errors import TraceError
from uncertain_cep.spark.file_reading import Reading, raw_table, row_groups, step_events, with_types
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.faulty_rows import renumbered
from uncertain_cep.traces.formats import TraceFile

__all__ = ["EventFiles", "FilePart", "described_files", "parquet_parts"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FilePart:
    """Neighbouring rows of a file, which are read together."""

    file: int
    """The number of the file, or of a span of one."""
    groups: tuple[int, int] | None
    """The first row group of a Parquet file, and that behind the last one; None: the whole file or span."""
    before: int
    """The number of rows of the file before these."""
    rows: int
    times: tuple[int, int]
    """Smallest `lower` and largest `upper`, in the unit of the time columns."""
    ids: tuple[int, int] | None
    """Smallest and largest id; None if that is not known, or ids are text."""


@dataclass(frozen=True, slots=True)
class EventFiles:
    """Files of events that all workers can read."""

    paths: tuple[str, ...]
    """Of each file, or span of one."""
    parts: tuple[FilePart, ...]
    schema: pa.Schema
    """Of the events, as Spark would keep them."""
    reading: Reading | None = None
    """How rows become events; None if the files are Parquet files of the model."""
    days: bool = True
    firsts: tuple[int, ...] = ()
    """The running number of the first row of each file, or span of one."""
    numbered: bool = False
    """Whether all ids are running numbers."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(part.rows for part in self.parts)

    @property
    def ids_apart(self) -> bool:
        """Whether no id can be in two parts."""
        if self.numbered or len(self.parts) == 1:
            return True
        ranges = sorted(part.ids for part in self.parts if part.ids is not None)
        return len(ranges) == len(self.parts) and all(one[1] < two[0] for one, two in pairwise(ranges))

    def read(self, part: FilePart, names: Names, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Int64]]:
        """Yield the events of a part and the number of each event's row in its file, from 0.

        The tables have the columns named, with the types of the schema; types of events may be encoded by a
        dictionary.

        Raises
        ------
        TraceError
            With files and rows, if a row does not give an event.
        """
        batches = self._scanned(part, names, columns) if self.reading is None else self._made(part, columns)
        try:
            yield from batches
        except TraceError as error:
            path = self.paths[part.file]
            raise TraceError([replace(fault, file=fault.file or path) for fault in error.faults]) from None

    def _scanned(
        self, part: FilePart, names: Names, columns: Sequence[str]
    ) -> Iterator[tuple[pa.Table, Int64]]:
        assert part.groups is not None
        schema = pa.schema([self.schema.field(name) for name in columns])
        begin = part.before
        with (
            Path(self.paths[part.file]).open("rb") as file,
            pq.ParquetFile(file, read_dictionary=[names.type]) as parquet,
        ):
            for batch in parquet.iter_batches(
                BATCH_ROWS, row_groups=list(range(*part.groups)), columns=list(columns), use_threads=False
            ):
                table = pa.Table.from_batches([batch])
                yield (
                    with_types(table, schema, encoded=names.type),
                    np.arange(begin, begin + table.num_rows),
                )
                begin += table.num_rows

    def _made(self, part: FilePart, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Int64]]:
        assert self.reading is not None
        schema = pa.schema([self.schema.field(name) for name in columns])
        _, steps = self.reading.work[part.file]
        stamp = self.reading.stamp if self.reading.stamp in columns else None
        reading = replace(self.reading, used=frozenset(columns), stamp=stamp)
        raw = raw_table(part.file, reading, part.groups)
        # Spans are read like files of their own.
        skipped = 0 if part.groups is None else part.before
        whole = (self.firsts[part.file + 1] - self.firsts[part.file]) // len(steps)
        for place, step in enumerate(steps):
            first = self.firsts[part.file] + place * whole + skipped
            try:
                events = step_events(
                    raw, step, reading, number=part.file, days=self.days, first_id=first, before=part.before
                )
            except TraceError as error:
                raise TraceError(
                    renumbered(error.faults, np.arange(part.before, part.before + raw.num_rows))
                ) from None
            rows = np.arange(raw.num_rows) if events.rows is None else events.rows
            yield with_types(events.table, schema), rows + part.before


def described_files(
    described: Mapping[int, Mapping[str, Any] | None],
    schema: pa.Schema,
    reading: Reading,
    days: bool,
    firsts: tuple[int, ...],
) -> EventFiles | None:
    """Return the files by the descriptions of `describe_files`; None if one of them has a fault.

    ``days`` says whether the default tick is a day, by all files together.
    """
    descriptions = [one for number in range(len(reading.work)) if (one := described[number]) is not None]
    # The types of a file without events are a guess.
    if len(descriptions) < len(described) or any(
        one["parts"] and one["days"] != days for one in descriptions
    ):
        return None
    begins: dict[TraceFile, int] = {}
    skipped = [
        first - begins.setdefault(replace(file, span=None), first)
        for (file, _), first in zip(reading.work, firsts, strict=False)
    ]
    parts = [
        FilePart(
            number,
            None if groups is None else tuple(groups),
            skipped[number] + before,
            rows,
            (earliest, latest),
            ids and tuple(ids),
        )
        for number, one in enumerate(descriptions)
        for groups, before, rows, earliest, latest, ids in one["parts"]
    ]
    paths = tuple(str(file.path) for file, _ in reading.work)
    numbered = all(one["numbered"] for one in descriptions)
    return EventFiles(paths, tuple(parts), schema, reading, days, firsts, numbered)


def parquet_parts(number: int, metadata: pq.FileMetaData, schema: pa.Schema, names: Names) -> list[FilePart]:
    """Return the parts of a Parquet file of the model, by its footer; none if that has no bounds of times."""
    places = {metadata.schema.column(place).path: place for place in range(metadata.num_columns)}
    parts = []
    for groups, before, rows in row_groups(metadata):
        lower, upper, ids = (
            _extremes(metadata, range(*groups), places[name], schema.field(name).type)
            for name in (names.lower, names.upper, names.id)
        )
        if lower is None or upper is None:
            return []
        parts.append(FilePart(number, groups, before, rows, (lower[0], upper[1]), ids))
    return parts


def _extremes(
    metadata: pq.FileMetaData, groups: Sequence[int], place: int, dtype: pa.DataType
) -> tuple[int, int] | None:
    """Return the least and the largest value of a column in some row groups, as whole numbers."""
    if not (pa.types.is_signed_integer(dtype) or pa.types.is_timestamp(dtype)):
        return None
    values: list[Any] = []
    for group in groups:
        row_group = metadata.row_group(group)
        if not row_group.num_rows:
            continue
        statistics = row_group.column(place).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        values += [statistics.min, statistics.max]
    try:
        extremes = pa.array(values, dtype).cast(pa.int64()).to_pylist()
    except MemoryError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Decimals, for example, which Spark reads as whole numbers.
        return None
    return min(extremes), max(extremes)
