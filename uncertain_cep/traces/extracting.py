"""Columns cut out of the text of other columns, such as a number at the end of a name."""

from __future__ import annotations

import difflib
import re
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault, warn
from uncertain_cep.plurals import counted
from uncertain_cep.running.compiling import spent_reading
from uncertain_cep.traces.faulty_rows import ROW
from uncertain_cep.traces.log_presets import DASHED, PRESETS, REST, RESTS
from uncertain_cep.traces.nested import roots_of
from uncertain_cep.traces.searching import searched
from uncertain_cep.traces.text_lines import LINE

__all__ = [
    "Extraction",
    "ExtractionUses",
    "extracted_names",
    "extraction_groups",
    "sources_of",
    "with_extracted",
]

Extraction = tuple[str, str]
"""A column and a regular expression whose named groups are the new columns; of several for a column the first
that is found in a row counts there."""


def extraction_groups(pattern: str) -> list[str]:
    """Return the groups' names of a regular expression; ValueError if Python or Arrow (RE2) take none."""
    try:
        names = list(_names_in(pattern))
        if names:
            pc.extract_regex(pa.array([""]), pattern)
    except (re.error, pa.ArrowInvalid) as error:
        raise ValueError(str(error)) from None
    return names


@cache
def _names_in(pattern: str) -> tuple[str, ...]:
    """Return the groups' names of a regular expression, which Arrow searches for; re.error if it is none."""
    with warnings.catch_warnings():
        # What a later Python may take for something else, such as [[, is nothing to Arrow.
        warnings.simplefilter("ignore", FutureWarning)
        return tuple(re.compile(pattern).groupindex)


def extracted_names(extract: Sequence[Extraction], present: Collection[str]) -> list[str]:
    """Return the columns that extraction adds to those present, also out of columns that it makes."""
    names: dict[str, None] = {}
    waiting = list(extract)
    while ready := [each for each in waiting if each[0] in present or each[0] in names]:
        waiting = [each for each in waiting if each not in ready]
        names |= dict.fromkeys(name for _, pattern in ready for name in _names_of(pattern))
    return list(names)


def sources_of(extract: Sequence[Extraction], columns: Set[str]) -> set[str]:
    """Return the columns that some of the wanted ones are cut out of, and what those are cut out of."""
    sources: set[str] = set()
    while (
        more := {
            column for column, pattern in extract if not (columns | sources).isdisjoint(_names_of(pattern))
        }
        - sources
    ):
        sources |= more
    return sources


_COUNTS: Final = ("untaken", "taken", "joined", "rows")
_SETS: Final = ("present", "tried", "matched", "exploded")


@dataclass(slots=True)
class ExtractionUses:
    """The tally of extraction over the files that were read.

    ``present`` are the columns that some file has, ``tried`` those with rows to cut something out of,
    ``matched`` those where an expression was found in a row; ``untaken`` counts the records of text in which
    none was found, which are left out, ``taken`` the others; ``joined`` counts the lines that an expression
    fits, and that were joined to the line before nevertheless. ``exploded`` are the columns of lists,
    ``rows`` the rows in which they were looked for. ``whole`` tells that all columns are known.
    """

    present: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    matched: set[str] = field(default_factory=set)
    untaken: int = 0
    taken: int = 0
    joined: int = 0
    exploded: set[str] = field(default_factory=set)
    rows: int = 0
    whole: bool = True

    def read(self, columns: Iterable[str], *, whole: bool = True) -> None:
        """Learn of the columns of a file; of all of them, if this is the ``whole``."""
        self.present.update(name for name in columns if name != ROW)
        self.whole &= whole

    def add(self, tallies: Mapping[str, Any]) -> None:
        """Learn what another process has learnt of other files, as `told` there."""
        for name in _SETS:
            getattr(self, name).update(tallies[name])
        self.whole &= tallies["whole"]
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + tallies[name])

    def told(self) -> dict[str, Any]:
        """Return the tally as a dict that JSON can hold."""
        sets = {name: sorted(getattr(self, name)) for name in _SETS}
        return {**sets, "whole": self.whole, **{name: getattr(self, name) for name in _COUNTS}}

    def count_joined(self, lines: pa.Array, extract: Sequence[Extraction]) -> None:
        """Learn of lines that were joined to those before."""
        fits = np.zeros(len(lines), np.bool_)
        for column, pattern in extract:
            if column == LINE and pattern not in RESTS:
                unnamed = re.sub(r"\(\?P<\w+>", "(?:", pattern)
                fits |= np.asarray(pc.match_substring_regex(lines, unnamed))
        self.joined += int(fits.sum())

    def faults(self, explode: Sequence[str]) -> list[TraceFault]:
        """Return a fault for each list that no file has."""
        if not self.rows:
            return []
        return [
            TraceFault(f"explode: no file has a list {path!r}; {self._hint(path, self.present)}")
            for path in explode
            if path not in self.exploded
        ]

    @staticmethod
    def _hint(name: str, present: Collection[str]) -> str:
        near = difflib.get_close_matches(name, present, 1)
        return f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(present))}"

    def warn(
        self, extract: Sequence[Extraction], types: Sequence[str] = (), values: Sequence[str] = ()
    ) -> None:
        """Warn of columns that no file has, and of expressions that were not found anywhere.

        ``types`` are columns whose types are given, ``values`` columns or patterns of such.
        """
        if self.untaken:
            warn(
                f"no expression of [extract] fits {self.untaken:,} of {self.untaken + self.taken:,} records "
                "of text: they are left out; add an expression, or say which lines go on with the one before"
            )
        if self.joined:
            lines = counted(self.joined, "line that fits", "lines that fit")
            warn(
                f"{lines} an expression of [extract] went on with the line before, as indented lines "
                "and stack traces do: say continuation = false if each line is a record, or which lines go on"
            )
        columns = self.present.union(extracted_names(extract, self.present))
        for column, pattern in dict(reversed(extract)).items():
            if self.present and column not in columns:
                warn(f"[extract] {column}: no file has such a column; {self._hint(column, self.present)}")
            elif column in self.tried and column not in self.matched:
                warn(f"[extract] {column}: {pattern!r} is not found in any row: correct the expression")
        if not self.whole or not self.present:
            return
        for name in types:
            if columns.isdisjoint(roots_of([name])):
                warn(f"[types] {name}: no file has such a column; {self._hint(name, columns)}")
        for name in values:
            if columns.isdisjoint(roots_of([name])) and not any(
                fnmatchcase(column, name) for column in columns
            ):
                warn(f"value_columns {name}: no file has such a column; {self._hint(name, columns)}")


def with_extracted(
    table: pa.Table,
    extract: Sequence[Extraction],
    file: str,
    uses: ExtractionUses | None = None,
    columns: Set[str] | None = None,
) -> pa.Table:
    """Return a table with the extracted columns, as text; null where no expression is found.

    Those that are not in ``columns`` (None: all are) may be left out. A TraceError says that the table has
    such a column already, or that the source cannot be read as text.
    """
    waiting = list(dict.fromkeys(column for column, _ in extract))
    # A column may be cut out of one that is itself cut out of another.
    while (column := next((name for name in waiting if name in table.column_names), None)) is not None:
        waiting.remove(column)
        patterns = [pattern for source, pattern in extract if source == column]
        names = dict.fromkeys(name for pattern in patterns for name in _names_of(pattern))
        taken = [name for name in names if name in table.column_names]
        if taken:
            message = (
                f"[extract] makes a column of this name out of {column!r}, but the file has one: rename it"
            )
            raise TraceError([TraceFault(message, file=file, column=name) for name in taken])
        try:
            text = table.column(column).cast(pa.string())
        except pa.ArrowNotImplementedError:
            message = f"its type is {table.column(column).type}, and [extract] needs text"
            raise TraceError(TraceFault(message, file=file, column=column)) from None
        used_names = [name for name in names if columns is None or name in columns]
        at_once = _at_once(patterns, lines=column == LINE)
        nulls = column == LINE or len(patterns) > 1
        begun = time.thread_time()
        groups_and_fits = searched(text, at_once, used_names, nulls=nulls) if at_once else None
        if groups_and_fits is None:
            groups_and_fits = _found(text, patterns, used_names, nulls=column == LINE)
            spent_reading(time.thread_time() - begun)
        groups, fits = groups_and_fits
        if uses is not None and table.num_rows:
            uses.tried.add(column)
            if pc.any(fits).as_py():
                uses.matched.add(column)
        for name, values in groups.items():
            table = table.append_column(name, values)
        if column == LINE and ROW in table.column_names:
            kept = table.filter(fits)
            if uses is not None:
                uses.taken += kept.num_rows
                uses.untaken += table.num_rows - kept.num_rows
            table = kept
    return table


@cache
def _names_of(pattern: str) -> tuple[str, ...]:
    """Return the names of the columns that an expression makes."""
    names = tuple(name for name in _names_in(pattern) if name != REST)
    return names + (_names_of(RESTS[pattern]) if pattern in RESTS else ())


def _at_once(patterns: Sequence[str], *, lines: bool) -> dict[str, tuple[str, ...]]:
    """Return the expressions that find in one pass what some find in stages, with their groups; or none."""
    whole = [pattern for pattern in patterns if pattern not in RESTS]
    staged = {pattern for pattern in patterns if pattern in RESTS}
    for preset in PRESETS.values():
        if {*preset.patterns} <= {*patterns}:
            staged.difference_update(preset.patterns)
    # A record may have several lines.
    return {} if staged else {f"(?s){each}" if lines else each: _names_in(each) for each in whole}


def _groups(
    text: pa.ChunkedArray, pattern: str, columns: Sequence[str], *, lines: bool
) -> tuple[dict[str, pa.ChunkedArray], pa.ChunkedArray]:
    """Return the wanted groups of an expression, null where it is not found, and where it is."""
    names = set(_names_in(pattern))
    # Each group costs time.
    kept = names.intersection((*columns, REST)) or {min(names)}
    plain = pattern
    for name in names - kept:
        plain = plain.replace(f"(?P<{name}>", "(?:")
    # A record may have several lines.
    match = pc.extract_regex(text, f"(?s){plain}" if lines else plain)
    valid = match.is_valid()
    groups = {name: pc.struct_field(match, name) for name in kept.intersection(columns)}
    nothing = pa.scalar(None, pa.string())
    if pattern in DASHED:
        groups = {name: pc.if_else(pc.equal(values, "-"), nothing, values) for name, values in groups.items()}
    if pattern in RESTS:
        more, valid = _groups(pc.struct_field(match, REST), RESTS[pattern], columns, lines=lines)
        groups |= more
        if not pc.all(valid).as_py():
            groups = {name: pc.if_else(valid, values, nothing) for name, values in groups.items()}
    return groups, valid


def _found(
    text: pa.ChunkedArray, patterns: Sequence[str], columns: Sequence[str], *, nulls: bool
) -> tuple[dict[str, pa.ChunkedArray], pa.ChunkedArray]:
    """Return the wanted groups of the first expression found in each text, and in which texts one is.

    A group that took no part is empty; with ``nulls``, or several expressions, whatever is empty is null.
    """
    nothing = pa.chunked_array([pa.nulls(len(text), pa.string())])
    groups = dict.fromkeys(columns, nothing)
    fits = pa.chunked_array([pa.repeat(pa.scalar(False), len(text))])
    for number, pattern in enumerate(patterns):
        unmatched = pc.if_else(fits, pa.scalar(None, pa.string()), text) if number else text
        groups_of_pattern, valid = _groups(unmatched, pattern, columns, lines=nulls)
        for name, values in groups_of_pattern.items():
            if (nulls or len(patterns) > 1) and pc.min(pc.binary_length(values)).as_py() == 0:
                values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
            groups[name] = values if number == 0 else pc.coalesce(groups[name], values)
        fits = valid if number == 0 else pc.or_(fits, valid)
        if pc.all(fits).as_py():
            break
    return groups, fits
