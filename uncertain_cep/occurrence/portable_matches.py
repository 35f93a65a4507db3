"""Matches that travel to the task where their groups are weighed: all that they depend on, and no table.

A task that has some matches of a group sends them to the part that weighs it, with the variables of the times
that they depend on. There the matches of all tasks are put together. Rows of several tasks are one event if
all columns agree; of rows that agree within a task the first is the first of another one, and so on. That is
so, since such rows matter to the same matches: they differ in nothing, so it does not matter which is which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.flat_lists import counting, starts_of
from uncertain_cep.expressions.codes import codes_of, decoded
from uncertain_cep.occurrence.conditioned_spans import ConditionedSpans, OpenSpans
from uncertain_cep.occurrence.literals import MatchLiterals, joined_literals
from uncertain_cep.occurrence.match_groups import MatchGroups
from uncertain_cep.occurrence.numbered_matches import DescribedMatches, GroupFilter
from uncertain_cep.occurrence.time_variables import TimeVariables
from uncertain_cep.plan import EvaluationPlan

__all__ = ["MergedMatches", "PortableMatches", "filter_of_part"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROW: Final = "row "
_COPY: Final = "copy"
"""Names of lists: those of events behind the first, and which of several rows that agree a row is."""


@dataclass(frozen=True, slots=True)
class PortableMatches:
    """Some matches of some groups.

    Attributes
    ----------
    events : pyarrow.Table
        The columns that tell events apart, among them the attributes of keys.
    copy : (n,) int64
        Which of the rows that agree in all columns each is.
    times : TimeVariables
        Of these events.
    bounds : (2, n) int64
        Lower and upper bounds of their times, ticks.
    confidence : (k,) float64 or None
        Those of the matches, NaN where one is an estimate; None if they are not known.
    rows : (v, k) int64
        For each of ``row_variables`` the row of its event, -1 where there is none.
    literals : MatchLiterals
    spans : OpenSpans
        Those on which the matches depend.
    count : int
        k, how many matches there are.
    refusal : str
        Why no group of several matches can be weighed; empty if any can.
    """

    events: pa.Table
    copy: Int64
    times: TimeVariables
    bounds: Int64
    confidence: Float64 | None
    rows: Int64
    literals: MatchLiterals
    spans: OpenSpans
    count: int
    refusal: str

    @classmethod
    def by_part(
        cls, plan: EvaluationPlan, described: DescribedMatches, refusal: str
    ) -> Iterator[tuple[int, PortableMatches]]:
        """Yield matches by the parts that weigh their groups, ``plan.spread`` in all.

        With EVERY a match is in the parts of all buckets in which it can begin.
        """
        everything = np.ones(described.count, dtype=np.bool_)
        literals = described.literals(everything)
        groups = MatchGroups.of(plan, described)
        first = _hashes(groups)[groups.of_match][literals.number]
        count = np.ones_like(first)
        if plan.bound.every is not None:
            start, (lower, upper) = literals.first_start[:-1], described.bounds
            begin = np.minimum.reduceat(lower[literals.first], start) // plan.bound.every
            end = np.minimum.reduceat(upper[literals.first], start) // plan.bound.every
            first, count = first + begin, np.minimum(end - begin + 1, plan.spread)
        which = np.repeat(np.arange(len(first)), count)
        parts = (first[which] + counting(count)) % plan.spread
        copy = _copies(described.table)
        for part in np.unique(parts).tolist():
            is_chosen = np.zeros(described.count, dtype=np.bool_)
            is_chosen[literals.number[which[parts == part]]] = True
            chosen = literals.some(np.flatnonzero(is_chosen[literals.number]))
            yield part, cls._of(plan, described, copy, chosen, is_chosen, refusal)

    @classmethod
    def _of(
        cls,
        plan: EvaluationPlan,
        described: DescribedMatches,
        copy: Int64,
        literals: MatchLiterals,
        is_chosen: Mask,
        refusal: str,
    ) -> PortableMatches:
        """Return chosen matches, with the events that they depend on."""
        variables = row_variables(plan)
        count = int(is_chosen.sum())
        rows = np.array([described.first_rows(name)[is_chosen] for name in variables], dtype=np.int64)
        rows = rows.reshape(len(variables), count)
        sides = np.concatenate((literals.earlier, literals.later))
        spans, depends = OpenSpans.none(), np.zeros(0, np.int64)
        if described.spans is not None:
            spans = described.spans.open
            depends = np.unique(described.spans.of_variable[sides])
            depends = depends[depends >= 0]
            sides = np.concatenate((sides, spans.begin[depends], spans.end[depends]))
        used = np.unique(
            np.concatenate((described.times.rows_of(np.unique(sides)), literals.first, rows.ravel()))
        )
        used = used[used >= 0]
        place = np.full(described.table.num_rows + 1, -1)
        place[used] = np.arange(len(used))
        times, variable = described.times.of_rows(used)
        confidence = described.confidences
        number = np.cumsum(is_chosen) - 1
        return cls(
            described.table.select(_identity(plan, described.table)).take(pa.array(used)),
            copy[used],
            times,
            np.stack(described.bounds)[:, used],
            None if confidence is None else confidence[is_chosen],
            place[rows],
            literals._replace(
                number=number[literals.number],
                earlier=variable[literals.earlier],
                later=variable[literals.later],
                first=place[literals.first],
            ),
            spans.some(depends, variable),
            count,
            refusal,
        )

    def packed(self) -> pa.Table:
        """Return the matches as a table of one row of lists."""
        arrays: dict[str, NDArray[Any]] = {
            _COPY: self.copy,
            "bounds": self.bounds.ravel(),
            "rows": self.rows.ravel(),
            "confidence": np.zeros(0) if self.confidence is None else self.confidence,
            **{f"times {name}": getattr(self.times, name) for name in TimeVariables.NAMES},
            **{f"literals {name}": getattr(self.literals, name) for name in MatchLiterals._fields},
            **{f"spans {name}": getattr(self.spans, name) for name in OpenSpans._fields},
        }
        lists = {name: _list(pa.array(array)) for name, array in arrays.items()}
        for name in self.events.column_names:
            lists[_ROW + name] = _list(_as_array(decoded(self.events.column(name))))
        lists["refusal"] = pa.array([self.refusal])
        lists["count"] = pa.array([self.count])
        return pa.table(lists)

    @classmethod
    def unpacked(cls, table: pa.Table) -> PortableMatches:
        """Return the matches of a table as :meth:`packed` returns it."""
        lists = {name: table.column(name).combine_chunks() for name in table.column_names}

        def array(name: str) -> NDArray[Any]:
            flat = lists[name].flatten()
            return np.asarray(flat.to_numpy(zero_copy_only=False)).copy()

        events = {name[len(_ROW) :]: part.flatten() for name, part in lists.items() if name.startswith(_ROW)}
        copy, confidence = array(_COPY), array("confidence")
        literals = MatchLiterals(*(array(f"literals {name}") for name in MatchLiterals._fields))
        count = lists["count"][0].as_py()
        return cls(
            pa.table(events),
            copy,
            TimeVariables(*(array(f"times {name}") for name in TimeVariables.NAMES)),
            array("bounds").reshape(2, -1),
            confidence if len(confidence) else None,
            array("rows").reshape(-1, count),
            literals,
            OpenSpans(*(array(f"spans {name}") for name in OpenSpans._fields)),
            count,
            lists["refusal"][0].as_py(),
        )


@dataclass(frozen=True, slots=True)
class MergedMatches:
    """The matches that several tasks have sent to a part, see :class:`GroupableMatches`."""

    table: pa.Table
    times: TimeVariables
    bounds: tuple[Int64, Int64]
    count: int
    confidences: Float64 | None
    refusal: str
    spans: ConditionedSpans | None
    _rows: dict[str | None, Int64]
    _literals: MatchLiterals

    @classmethod
    def of(cls, plan: EvaluationPlan, parts: Sequence[PortableMatches]) -> MergedMatches:
        """Return the matches of some parts, of at least one."""
        table = pa.concat_tables([part.events for part in parts]).combine_chunks()
        event, first = _numbered(table, np.concatenate([part.copy for part in parts]))
        ends = starts_of(np.array([len(part.copy) for part in parts]))
        rows = [event[begin:end] for begin, end in pairwise(ends)]
        clocks = [np.zeros(0, dtype=np.int64) for _ in parts]
        if plan.clocks:
            source = codes_of([table.column(plan.names.source)])[0][0]
            clocks = [
                part.times.clock_codes(source[begin:end])
                for part, begin, end in zip(parts, ends[:-1], ends[1:], strict=True)
            ]
        times, variables = TimeVariables.joined([part.times for part in parts], rows, clocks, len(first))
        numbers = starts_of(np.array([part.count for part in parts]))
        literals = [
            part.literals._replace(
                number=part.literals.number + begin,
                earlier=variable[part.literals.earlier],
                later=variable[part.literals.later],
                first=row[part.literals.first],
            )
            for part, begin, variable, row in zip(parts, numbers[:-1], variables, rows, strict=True)
        ]
        bounds = np.concatenate([part.bounds for part in parts], axis=1)[:, first]
        of_variables = [np.append(row, -1)[part.rows] for part, row in zip(parts, rows, strict=True)]
        together = np.concatenate(of_variables, axis=1)
        spans = OpenSpans.joined(
            [
                part.spans.some(np.arange(len(part.spans.begin)), variable)
                for part, variable in zip(parts, variables, strict=True)
            ]
        )
        confidences = [part.confidence for part in parts if part.confidence is not None]
        return cls(
            table.take(pa.array(first)),
            times,
            (bounds[0], bounds[1]),
            int(numbers[-1]),
            np.concatenate(confidences) if len(confidences) == len(parts) else None,
            next((part.refusal for part in parts if part.refusal), ""),
            ConditionedSpans.among(times, spans) if len(spans.begin) else None,
            dict(zip(row_variables(plan), together, strict=True)),
            joined_literals(literals),
        )

    def first_rows(self, variable: str | None) -> Int64:
        """Return the row of a variable of each match, (k,) int64, -1 where there is none."""
        return self._rows[variable]

    def literals(self, is_chosen: Mask) -> MatchLiterals:
        """Return chosen matches, a mask (k,) bool, as literals of variables."""
        return self._literals.some(np.flatnonzero(is_chosen[self._literals.number]))


def filter_of_part(plan: EvaluationPlan, groups: MatchGroups, part: int) -> GroupFilter | None:
    """Return the filter of the groups and buckets that a part weighs; None: all that it gets."""
    every = plan.bound.every
    if every is None:
        return None
    hashes = _hashes(groups)

    def is_here(group: Int64, bucket: Int64) -> Mask:
        is_of_part: Mask = (hashes[group] + bucket // every) % plan.spread == part
        return is_of_part

    return is_here


def row_variables(plan: EvaluationPlan) -> list[str | None]:
    """Return the variables whose events tell groups, or are counted; None stands for any event of a match."""
    variables: list[str | None] = [key.variable for key in plan.bound.keys]
    if plan.counted_events is not None:
        variables += [plan.counted_events.variable, plan.counted_events.anchor]
    return list(dict.fromkeys(variables))


def _hashes(groups: MatchGroups) -> Int64:
    """Return a number of each group that is the same in every process, (g,) int64."""
    plan, numbers = groups.plan, np.arange(len(groups.sizes))
    if not plan.bound.keys:
        return np.zeros_like(numbers)
    columns = []
    for number in range(len(plan.bound.keys)):
        column = groups.column(number, numbers, plan.output_schema.field(number).type)
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        if pa.types.is_floating(column.type):
            # 0.0 and -0.0 are one group.
            column = pc.add(column, pa.scalar(0.0, column.type))
        columns.append(column.to_pylist())
    return np.array([crc32(repr(key).encode()) for key in zip(*columns, strict=True)], dtype=np.int64)


def _identity(plan: EvaluationPlan, table: pa.Table) -> list[str]:
    """Return the columns that tell events apart: all that are no lists."""
    return [name for name in plan.required_columns if not pa.types.is_nested(table.schema.field(name).type)]


def _as_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _list(array: pa.Array) -> pa.Array:
    """Return an array as the only list of an array of lists."""
    return pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)


def _codes(table: pa.Table) -> Int64:
    """Return the numbers of rows that agree in all columns, (n,) int64."""
    code = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        values = codes_of([column])[0][0]
        code = np.unique(code * (int(values.max(initial=-1)) + 2) + values + 1, return_inverse=True)[1]
    return code.reshape(-1)


def _copies(table: pa.Table) -> Int64:
    """Return numbers from 0 for the rows that agree in all columns, (n,) int64.

    Rows that differ in lists only, such as of probabilities, are numbered in the order of these.
    """
    flat = [name for name in table.column_names if not pa.types.is_nested(table.schema.field(name).type)]
    code = _codes(table.select(flat))
    copy = np.zeros(len(code), dtype=np.int64)
    again = np.flatnonzero(np.bincount(code, minlength=1)[code] > 1)
    if len(again):
        lists = [name for name in table.column_names if name not in flat]
        texts = [repr(row) for row in table.select(lists).take(pa.array(again)).to_pylist()] or None
        text = np.unique(texts, return_inverse=True)[1] if texts else np.zeros(len(again), dtype=np.int64)
        order = again[np.lexsort((text, code[again]))]
        copy[order] = counting(np.unique(code[order], return_counts=True)[1])
    return copy


def _numbered(events: pa.Table, copy: Int64) -> tuple[Int64, Int64]:
    """Return the number of the event of each row, and a row of each event."""
    code = _codes(events.append_column(_COPY + "".join(events.column_names), pa.array(copy)))
    _, first = np.unique(code, return_index=True)
    return code, first
