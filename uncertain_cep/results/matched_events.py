"""Matches back to the events that they consist of: ids, together with the keys of partitions, to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import Mask, rows_taken
from uncertain_cep.candidates.span_candidates import with_some_ends
from uncertain_cep.errors import OptionError
from uncertain_cep.expressions.codes import codes_of, nulls_as_key, paired
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.branch_taking import branch_taking
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.query.repeated_groups import copy_of, list_of, lists_by_iteration, number_of

__all__ = [
    "OWN_COLUMNS",
    "MatchedEvents",
    "check_columns_of",
    "check_own_columns",
    "events_table",
    "matched_events",
]

Int64 = NDArray[np.int64]

OWN_COLUMNS: Final = ("match", "variable", "position")
"""Columns of matched events in front of those that the events have."""


@dataclass(frozen=True, slots=True)
class MatchedEvents:
    """The events of those of some matches that are of one OR-free pattern, one match behind the other."""

    plan: EvaluationPlan
    """That of the pattern."""
    match: Int64
    """(m,) int64. Which match an event belongs to, ascending."""
    component: Int64
    """(m,) int64. The component that it is taken for, ascending within a match."""
    position: Int64
    """(m,) int64. Its place in the list of its variable, from 1; 1 for a single component."""
    row: Int64
    """(m,) int64. Of the table of events."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variable of each component."""
        return tuple(component.variable for component in self.plan.components)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the matches that holds the event of each component."""
        return tuple(map(list_of, self.variables))

    @property
    def begins(self) -> Int64:
        """(k,) int64. Where the events of each match begin."""
        return np.flatnonzero(np.diff(self.match, prepend=-1))


def check_columns_of(plan: EvaluationPlan, names: list[str]) -> None:
    """Raise OptionError if columns are not those of a query's matches."""
    if not plan.returns_matches:
        raise OptionError(f"the query returns {plan.rows_are}: these are no matches that have events")
    variables = [component.variable for component in plan.components]
    missing = [name for name in (*plan.partition_attributes, *variables) if name not in names]
    if missing:
        raise OptionError(
            f"the matches have no column {missing[0]}: they have {', '.join(names) or 'none'}. Give what "
            "match returned for this query, with its partition attributes and a column for each variable"
        )


def matched_events(plan: EvaluationPlan, table: pa.Table, matches: pa.Table) -> Iterator[MatchedEvents]:
    """Yield the events of matches, those of each branch of OR apart.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events that were matched.
    matches : pyarrow.Table
        Columns of the plan's result; at least the partition attributes and those of the variables.

    Raises
    ------
    OptionError
        If the matches are not those of the query, or have events that are not there.

    Notes
    -----
    O((events + events of matches) log events).
    """
    check_columns_of(plan, matches.column_names)
    if plan.lasting:
        table = with_some_ends(with_all_bounds(table, plan.names.lower), plan.names)
    matches, variables = _in_places(plan, matches)
    present = {variable: _is_there(matches.column(variable)) for variable in variables}
    left = np.ones(matches.num_rows, dtype=np.bool_)
    for branch in _branches(plan, present):
        own = {component.variable for component in branch.components}
        mine = left.copy()
        for variable, there in present.items():
            mine &= there if variable in own else ~there
        left &= ~mine
        yield _of_branch(plan, branch, table, matches, np.flatnonzero(mine))
    if left.any():
        raise OptionError(
            f"the events in row {int(np.flatnonzero(left)[0])} of the matches fit no branch of the pattern: "
            "give what match returned for this query"
        )


def _in_places(plan: EvaluationPlan, matches: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return matches with a column for each iteration of repeated groups, and the variables of all events."""
    by_iteration = lists_by_iteration(plan.query.pattern)
    variables: list[str] = []
    for name in (component.variable for component in plan.components):
        lists = matches.column(name)
        if name not in by_iteration:
            variables.append(name)
            continue
        if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
            raise OptionError(
                f"column {name} of the matches is of type {lists.type}: it must hold lists of ids"
            )
        sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
        copies = [part.variable for part in plan.or_free[0].components if list_of(part.variable) == name]
        # Without any match they are those of the first branch.
        count = int(sizes.max()) if len(sizes) else max(map(number_of, copies), default=0)
        for number in range(1, count + 1):
            place = pc.list_element(
                pc.if_else(pa.array(sizes >= number), lists, None).drop_null(), number - 1
            )
            rows = np.cumsum(sizes >= number) - 1
            ids = place.take(pa.array(rows, mask=sizes < number))
            matches = matches.append_column(copy_of(name, number), ids)
            variables.append(copy_of(name, number))
    return matches, variables


def _branches(plan: EvaluationPlan, present: Mapping[str, Mask]) -> Iterator[EvaluationPlan]:
    """Yield the branches of a plan; of an open one the readings that some matches are of."""
    if plan.open_readings is None:
        yield from plan.or_free
        return
    kinds = np.unique(np.stack([*present.values()]), axis=1).T
    for taken in kinds:
        names = [name for name, there in zip(present, taken, strict=True) if there]
        reading = branch_taking(plan, names) if names else None
        if reading is not None:
            yield reading
    if not len(kinds):
        yield plan.or_free[0]


def _is_there(column: pa.ChunkedArray) -> Mask:
    """Return where a variable has an event: no null and no empty list."""
    there = np.asarray(column.is_valid())
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        there = there & (np.asarray(pc.fill_null(pc.list_value_length(column), 0)) > 0)
    return there


def _of_branch(
    plan: EvaluationPlan, branch: EvaluationPlan, table: pa.Table, matches: pa.Table, numbers: Int64
) -> MatchedEvents:
    """Return the events of some matches that are of one branch."""
    chosen = matches.take(pa.array(numbers))
    parts: list[tuple[Int64, Int64, Int64, Int64]] = []
    seen: dict[str, Mask] = {}
    for j, component in enumerate(branch.components):
        match, position, ids = _flattened(chosen, component.variable, component.kleene)
        if place_in_list := number_of(component.variable):
            position = np.full_like(position, place_in_list)
        rows = rows_taken(branch, table, component, seen)
        here = table.column(branch.names.id).take(pa.array(rows))
        codes = _coded(here, ids, component.variable)
        for name in plan.partition_attributes:
            given = chosen.column(name).take(pa.array(match))
            keys = _coded(table.column(name).take(pa.array(rows)), given, name)
            # A single event may have none.
            codes = paired(codes, nulls_as_key(keys))
        place = _places(codes[: len(rows)], codes[len(rows) :], component.variable, ids)
        parts.append((numbers[match], np.full(len(match), j), position, rows[place]))
    match, of, position, row = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((position, of, match))
    return MatchedEvents(branch, match[order], of[order], position[order], row[order])


def _flattened(matches: pa.Table, name: str, kleene: bool) -> tuple[Int64, Int64, pa.Array]:
    """Return for each event of a variable its match, its place in the list, from 1, and its id."""
    column = matches.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if is_list != kleene and not pa.types.is_null(kind):
        expected = "lists of ids" if kleene else "one id a row"
        raise OptionError(f"column {name} of the matches is of type {kind}: it must hold {expected}")
    if not is_list:
        here = np.arange(matches.num_rows)
        return here, np.ones_like(here), column
    match = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
    begins = np.searchsorted(match, match)
    return match, np.arange(len(match)) - begins + 1, pc.list_flatten(column)


def _coded(here: pa.ChunkedArray, given: pa.Array | pa.ChunkedArray, name: str) -> Int64:
    """Return codes of values of events and, behind them, of matches."""
    wanted = here.type.value_type if pa.types.is_dictionary(here.type) else here.type
    if pa.types.is_null(wanted):
        return np.full(len(here) + len(given), -1)
    try:
        (own, others), _ = codes_of([here.cast(wanted), given.cast(wanted)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise OptionError(
            f"column {name} of the matches is of type {given.type}, and the events have {wanted} there"
        ) from None
    return np.concatenate((own, others))


def _places(known: Int64, wanted: Int64, variable: str, ids: pa.Array) -> Int64:
    """Return where each wanted code stands among the known ones, which are distinct."""
    if not len(wanted):
        return wanted
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)] if len(known) else wanted
    found = (wanted >= 0) & (known[place] == wanted) if len(known) else np.zeros(len(wanted), dtype=np.bool_)
    if not found.all():
        shown = ids[int(np.argmin(found))].as_py()
        raise OptionError(
            f"no event that can be {variable} has the id {shown!r}: give the events that were matched"
        )
    return place


def events_table(plan: EvaluationPlan, table: pa.Table, matches: pa.Table) -> pa.Table:
    """Return the events of matches in long form, with all columns of the events; see `matched_events`."""
    check_own_columns(table.column_names)
    parts = []
    variables: list[pa.Array] = []
    for found in matched_events(plan, table, matches):
        parts.append(np.stack((found.match, found.component, found.position, found.row)))
        names = pa.array(found.columns, pa.string())
        variables.append(names.take(pa.array(found.component)))
    match, component, position, row = np.concatenate(parts, axis=1)
    order = np.lexsort((position, component, match)) if len(parts) > 1 else np.arange(len(match))
    own = [match[order], pa.concat_arrays(variables).take(pa.array(order)), position[order]]
    taken = table.take(pa.array(row[order]))
    found = pa.table([*map(pa.array, own), *taken.columns], [*OWN_COLUMNS, *table.column_names])
    return found.replace_schema_metadata(table.schema.metadata)


def check_own_columns(names: list[str], own: Sequence[str] = OWN_COLUMNS) -> None:
    """Raise OptionError if the events have a column that the result adds."""
    for name in own:
        if name in names:
            raise OptionError(f"the events have a column {name}, which the result adds: rename it")
