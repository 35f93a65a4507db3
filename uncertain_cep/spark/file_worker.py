"""Matches among the events of files that Spark's Python workers read; nothing here imports pyspark.

A task owns some parts of the files, and a match belongs to the task that owns the part with its first event.
Besides its own parts it reads the events in reach of the first events there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.diagnostics import negated_parts
from uncertain_cep.candidates.selection import reach_of, rows_taken, type_mask
from uncertain_cep.candidates.span_candidates import with_some_ends
from uncertain_cep.candidates.span_times import check_spans
from uncertain_cep.config.tuning import ROWS_PER_PARTITION
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.executor import check_table, execute, ticks_of
from uncertain_cep.expressions.vectorised import Values
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.file_parts import EventFiles
from uncertain_cep.spark.largest_amounts import Largest, largest_in, merged
from uncertain_cep.spark.task_diagnostics import TaskDiagnostics
from uncertain_cep.spark.worker import write_batches
from uncertain_cep.timeline.domain import check_one_tick
from uncertain_cep.traces.checks import RowOrigin, check_ids
from uncertain_cep.traces.faulty_rows import renumbered

__all__ = ["Chunk", "Counts", "FileWork", "check_files", "match_files", "reach_of", "write_files"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Parts that are matched together, by their numbers."""

    owned: tuple[int, ...]
    """The parts whose events the matches begin with."""
    near: tuple[int, ...]
    """Other parts, with events that may be in reach of those."""


@dataclass(frozen=True, slots=True)
class FileWork:
    """The work of all tasks."""

    plan: EvaluationPlan
    files: EventFiles
    tasks: tuple[tuple[Chunk, ...], ...]
    tick: str | None
    """The length of a tick by the events' own column, if they have one."""
    last_tick: int | None = None
    """The last tick of any event, for what is undecided without a known end."""
    roundable: tuple[str, ...] = ()
    """The columns whose largest amounts are reported."""


class Counts:
    """Numbers of candidates: of components, one OR-free pattern after the other, negated variables and types.

    Parameters
    ----------
    plan : EvaluationPlan
    numbers : (c,) int64

    Attributes
    ----------
    sizes : list of list of int
        For each OR-free pattern those of its components.
    negated : dict
        For negated variables with conditions how many events they can be.
    types : dict
        For types that a component names beside others how many events of it there are.
    """

    def __init__(self, plan: EvaluationPlan, numbers: Int64) -> None:
        left = iter(numbers.tolist())
        self.sizes = [[next(left) for _ in branch.components] for branch in plan.or_free]
        self.negated = {part.variable: next(left) for part in negated_parts(plan)}
        self.types = {name: next(left) for name in types_beside_others(plan)}


def types_beside_others(plan: EvaluationPlan) -> list[str]:
    """Return the types that a component names beside others, each once."""
    parts = [part for part in plan.bound.components if len(part.types) > 1]
    return list(dict.fromkeys(name for part in parts for name in part.types))


class _Held(NamedTuple):
    """The events of a part that matter to matches, or the faults of the part."""

    table: pa.Table
    rows: Int64
    """(n,) int64. The rows of the events in the file, from 0."""
    lower: Int64
    upper: Int64
    """Each (n,) int64, ticks."""
    first: Mask
    """(n,) bool. Which events matches may belong to."""
    sizes: Int64
    """(c,) int64. Numbers of candidates, see `Counts`."""
    faults: tuple[TraceFault, ...] = ()

    def keep(self, mask: Mask) -> _Held:
        """Return the events where a mask is true."""
        return self._replace(
            table=self.table.filter(pa.array(mask)),
            rows=self.rows[mask],
            lower=self.lower[mask],
            upper=self.upper[mask],
            first=self.first[mask],
        )

    @classmethod
    def joined(cls, parts: list[_Held]) -> _Held:
        """Return the events of several parts, of at least one."""
        if len(parts) == 1:
            return parts[0]
        tables, rows, lower, upper, first, sizes, _ = zip(*parts, strict=True)
        return cls(
            pa.concat_tables(tables),
            np.concatenate(rows),
            np.concatenate(lower),
            np.concatenate(upper),
            np.concatenate(first),
            np.sum(sizes, axis=0),
        )


def match_files(
    numbers: Iterable[pa.RecordBatch], *, work: FileWork, diagnostics: TaskDiagnostics | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of the tasks numbered in the batches; a TraceError if an event is at fault."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            evaluation = _Evaluation(work, diagnostics)
            yield from evaluation.matches(number)
            if evaluation.faults:
                raise TraceError(evaluation.faults)


def check_files(numbers: Iterable[pa.RecordBatch], *, work: FileWork) -> Iterator[pa.RecordBatch]:
    """Check the files without matching; yields the rows of `write_files`, without files."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            evaluation = _Evaluation(work)
            evaluation.check(number)
            yield evaluation.told(None, 0)


def write_files(
    numbers: Iterable[pa.RecordBatch], *, work: FileWork, folder: str
) -> Iterator[pa.RecordBatch]:
    """Write the matches of each task to a Parquet file in a folder that all machines share.

    Yields the name of the file and its number of matches, None and 0 without any; and as JSON how many events
    each component can take, one OR-free pattern after the other, and the faults of events; and how many
    undecided matches there are.
    """
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            evaluation = _Evaluation(work, TaskDiagnostics(work.last_tick))
            name, rows = write_batches(evaluation.matches(number), work.plan.output_schema, folder)
            yield evaluation.told(name, rows)


_TOLD: Final = pa.schema(
    [
        ("name", pa.string()),
        ("rows", pa.int64()),
        ("candidates", pa.string()),
        ("faults", pa.string()),
        ("undecided", pa.int64()),
        ("largest", pa.map_(pa.string(), pa.string())),
    ]
)


class _Evaluation:
    """The events that a task has read, their faults and matches.

    Attributes
    ----------
    faults : list of TraceFault
        Those of the parts that the task owns. With the first one it stops matching.
    candidates : (c,) int64
        How many of their events each component can take, see `Counts`.
    """

    def __init__(self, work: FileWork, diagnostics: TaskDiagnostics | None = None) -> None:
        self.faults: list[TraceFault] = []
        self._diagnostics = diagnostics
        self._work, self._plan = work, work.plan
        self._branches = self._plan.or_free
        self.candidates = self._nothing().sizes
        self._held: dict[int, _Held] = {}
        self._largest: Largest = {}

    def matches(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the matches of a task."""
        chunks = self._work.tasks[number]
        last = {part: place for place, chunk in enumerate(chunks) for part in (*chunk.owned, *chunk.near)}
        for place, chunk in enumerate(chunks):
            self._own(chunk)
            if not self.faults and any(self._part(part).first.any() for part in chunk.owned):
                yield from self._matches(chunk)
            self._held = {part: held for part, held in self._held.items() if last[part] > place}

    def check(self, number: int) -> None:
        """Check the parts that a task owns."""
        for chunk in self._work.tasks[number]:
            self._own(chunk)
            self._held.clear()

    def told(self, name: str | None, rows: int) -> pa.RecordBatch:
        """Return the report of a task, with the file that it has written and its number of matches."""
        report = {
            "name": name,
            "rows": rows,
            "candidates": json.dumps(self.candidates.tolist()),
            "faults": json.dumps([asdict(fault) for fault in self.faults]),
            "undecided": 0 if self._diagnostics is None else self._diagnostics.left_out,
            "largest": list(self._largest.items()),
        }
        return pa.RecordBatch.from_pylist([report], _TOLD)

    def _own(self, chunk: Chunk) -> None:
        """Count the candidates of the parts that a chunk owns, and note their faults."""
        for part in chunk.owned:
            held = self._part(part)
            self.faults += held.faults or self._used_twice(part, held)
            self.candidates += held.sizes

    def _matches(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        held_parts = [held for part in chunk.owned if (held := self._part(part)).first.any()]
        back, reach = reach_of(self._plan)
        begin = min(int(held.lower[held.first].min()) for held in held_parts) - back
        end = max(int(held.upper[held.first].max()) for held in held_parts) + reach
        files = self._work.files
        numbers, parts = [], []
        for number in sorted((*chunk.owned, *chunk.near)):
            earliest, latest = self._plan.domain.ticks_of_units(np.array(files.parts[number].times))
            if latest < begin or earliest > end:
                continue
            held = self._part(number)
            if held.faults:
                # The owner of the part reports them.
                return
            near = (held.upper >= begin) & (held.lower <= end)
            if near.any():
                numbers.append(number)
                parts.append(held if near.all() else held.keep(near))
        lengths = tuple(len(held.rows) for held in parts)
        paths = tuple(files.paths[files.parts[number].file] for number in numbers)
        origin = RowOrigin(paths, lengths, tuple(held.rows for held in parts))
        whole = _Held.joined(parts)
        owned = np.repeat(np.isin(numbers, chunk.owned), lengths)
        try:
            yield from self._in_turns(whole, owned)
        except TraceError as error:
            self.faults += [origin.placed(fault) for fault in error.faults]

    def _in_turns(self, held: _Held, owned: Mask) -> Iterator[pa.RecordBatch]:
        """Yield the matches of the events owned; many events are matched in turns of neighbours in time."""
        turns = math.ceil(len(held.rows) / ROWS_PER_PARTITION)
        if turns == 1:
            yield from execute(self._plan, held.table, owned=owned, diagnostics=self._diagnostics)
            return
        back, reach = reach_of(self._plan)
        lower = held.lower[owned & held.first]
        edges = np.quantile(lower, np.linspace(0, 1, turns + 1)[1:-1], method="lower")
        for turn in range(turns):
            first_in_turn = owned & held.first & (np.searchsorted(edges, held.lower, side="right") == turn)
            if first_in_turn.any():
                begin, end = (
                    int(held.lower[first_in_turn].min()) - back,
                    int(held.upper[first_in_turn].max()) + reach,
                )
                near = (held.upper >= begin) & (held.lower <= end)
                try:
                    yield from execute(
                        self._plan,
                        held.table.filter(pa.array(near)),
                        owned=first_in_turn[near],
                        diagnostics=self._diagnostics,
                    )
                except TraceError as error:
                    raise TraceError(renumbered(error.faults, np.flatnonzero(near))) from None

    def _used_twice(self, number: int, held: _Held) -> list[TraceFault]:
        """Return a fault for each id that is used twice in a part; the driver compares the parts."""
        ids = held.table.column(self._plan.names.id) if len(held.rows) else None
        if ids is None or (pa.types.is_int64(ids.type) and bool((np.diff(ids.to_numpy()) > 0).all())):
            return []
        files = self._work.files
        path = files.paths[files.parts[number].file]
        faults: list[TraceFault] = []
        table = with_some_ends(held.table, self._plan.names) if self._plan.lasting else held.table
        for branch in self._branches:
            taken = np.zeros(len(held.rows), np.bool_)
            for component in branch.components:
                taken[rows_taken(branch, table, component)] = True
            events_taken = held.table.filter(pa.array(taken))
            faults_of_ids = check_ids(events_taken, branch.names, partition=branch.partition_attributes)
            faults += [replace(fault, file=path) for fault in renumbered(faults_of_ids, held.rows[taken])]
        return list(dict.fromkeys(faults))

    def _part(self, number: int) -> _Held:
        """Return the events of a part, which are kept as long as chunks to come need them."""
        if number not in self._held:
            self._held[number] = self._read(number)
        return self._held[number]

    def _read(self, number: int) -> _Held:
        plan, files = self._plan, self._work.files
        part = files.parts[number]
        names = plan.names
        ticks = [names.tick] if names.tick in files.schema.names else []
        needed = list(plan.required_columns)
        held: list[_Held] = []
        faults: list[TraceFault] = []
        try:
            for table, rows in files.read(part, names, list(dict.fromkeys([*needed, *ticks]))):
                try:
                    check_table(plan, table, files.paths[part.file])
                    if plan.lasting:
                        check_spans(plan, table)
                except TraceError as error:
                    faults += renumbered(error.faults, rows)
                    continue
                for name in ticks:
                    texts = pc.unique(table.column(name)).to_pylist()
                    check_one_tick(list(dict.fromkeys([self._work.tick, *texts])), name)
                self._largest = merged((self._largest, largest_in(table, self._work.roundable)))
                held.append(self._needed(table.select(needed), rows))
        except TraceError as error:
            faults += error.faults
        if faults or not held:
            return self._nothing()._replace(faults=tuple(faults))
        return _Held.joined(held)

    def _needed(self, table: pa.Table, rows: Int64) -> _Held:
        """Return the events of a table that can take part in a match, or forbid one."""
        plan = self._plan
        events = table
        table = with_some_ends(events, plan.names) if plan.lasting else events
        seen: dict[str, Mask] = {}
        loaded: dict[str, Values] = {}
        agreed = np.ones(table.num_rows, np.bool_)
        for name in plan.shared_keys:
            column = table.column(name)
            if column.null_count or pa.types.is_floating(column.type):
                agreed &= ~np.asarray(column.is_null(nan_is_null=True).to_numpy())
        first, needed = np.zeros((2, table.num_rows), np.bool_)
        sizes = []
        for branch in self._branches:
            for j, component in enumerate(branch.components):
                taken = rows_taken(branch, table, component, seen, loaded)
                needed[taken] = True
                if j == branch.owner:
                    first[taken] = True
                sizes.append(int(agreed[taken].sum()))
            for negation in branch.negations:
                needed[rows_taken(branch, table, negation.component, seen, loaded)] = True
        sizes += [len(rows_taken(plan, table, part, seen, loaded)) for part in negated_parts(plan)]
        for name in types_beside_others(plan):
            mask = type_mask(table, plan.names.type, (name,), seen)
            sizes.append(table.num_rows if mask is None else int(np.count_nonzero(mask)))
        if plan.query.strategy.endswith("contiguity"):
            needed[:] = True
        needed &= agreed
        lower, upper = (ticks_of(table, name, plan)[needed] for name in (plan.names.lower, plan.names.upper))
        events = events.filter(pa.array(needed)).combine_chunks()
        return _Held(events, rows[needed], lower, upper, first[needed], np.array(sizes, np.int64))

    def _nothing(self) -> _Held:
        whole, flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        components = sum(len(branch.components) for branch in self._branches)
        beside = len(negated_parts(self._plan)) + len(types_beside_others(self._plan))
        sizes = np.zeros(components + beside, np.int64)
        return _Held(pa.table({}), whole, whole, whole, flags, sizes)
