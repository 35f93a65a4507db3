"""Named events: ids and values of partition attributes to rows, and the branches that can have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.errors import OptionError
from uncertain_cep.misses.event_conditions import is_type_of
from uncertain_cep.misses.pinned import pins_of_list, pins_of_member, pins_of_single
from uncertain_cep.misses.questions import Choice, Question
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.branches import set_variables
from uncertain_cep.query.repeated_groups import repeated_groups
from uncertain_cep.query.typed import TypedExpression
from uncertain_cep.query.walks import components_of
from uncertain_cep.results.display import plain_text

__all__ = ["NamedEvents", "named_events"]


@dataclass(frozen=True, slots=True)
class _Named:
    """The rows that a variable is to have: one, a whole list, or one of a list; none where it is left out."""

    kind: Literal["single", "list", "member", "left out"]
    rows: tuple[int, ...]
    takes: tuple[bool, ...] = ()
    """Whether each iteration takes an event; of a list of a repeated group."""

    def placed_in(self, variable: str, bound: BoundQuery) -> Iterator[dict[str, _Named]]:
        """Yield the rows of variables of a reading with which this variable has its rows."""
        places = dict(bound.places).get(variable)
        if places is None:
            if (variable in _taking(bound)) == (self.kind != "left out"):
                yield {variable: self}
        elif self.kind == "member":
            yield from ({place: _Named("single", self.rows)} for place in places if place is not None)
        elif tuple(place is not None for place in places) == (self.takes or (False,) * len(places)):
            taken = filter(None, places)
            yield {place: _Named("single", (row,)) for place, row in zip(taken, self.rows, strict=True)}


@dataclass(frozen=True, slots=True)
class NamedEvents:
    """The events that are named, by variable, and the values of partition attributes."""

    question: Question
    by_variable: Mapping[str, _Named]
    keys: Mapping[str, Any]
    ids: Mapping[str, Any]
    """As they were named."""

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of all named events."""
        return tuple(row for named in self.by_variable.values() for row in named.rows)

    def row_of(self, variable: str) -> int | None:
        """Return the row of the one event of a variable; None if none, or a list, is named."""
        named = self.by_variable.get(variable)
        return named.rows[0] if named is not None and named.kind == "single" else None

    @property
    def lengths(self) -> dict[str, int]:
        """How often repeated groups stand whose lists are named, by variable."""
        return {name: len(named.takes) for name, named in self.by_variable.items() if named.takes}

    def placed_in(self, bound: BoundQuery) -> Iterator[NamedEvents]:
        """Yield the named events by the variables of a reading; nothing if it cannot have them.

        An event of a repeated group may be that of any iteration.
        """
        ways = (named.placed_in(name, bound) for name, named in self.by_variable.items())
        for chosen in product(*ways):
            placed = dict(chain.from_iterable(map(dict.items, chosen)))
            yield replace(self, by_variable=placed)

    def choice_of(self, branch: EvaluationPlan) -> Choice | None:
        """Return the choice that the named events are for a branch; None where they leave some open."""
        choice: Choice = {}
        for part in branch.components:
            named = self.by_variable.get(part.variable)
            if named is None or named.kind not in ("single", "list"):
                return None
            choice[part.variable] = named.rows
        return choice

    def pins(self, branch: EvaluationPlan) -> Iterator[TypedExpression]:
        """Yield conditions that keep a branch to the named events."""
        sets = set_variables(branch.bound.pattern)
        for variable, named in self.by_variable.items():
            if named.kind == "single":
                yield from pins_of_single(variable, named.rows[0])
            elif named.kind == "list":
                yield from pins_of_list(variable, named.rows, is_set=variable in sets)
            elif named.kind == "member":
                yield from pins_of_member(variable, named.rows[0])

    def are_in(self, record: Mapping[str, Any]) -> bool:
        """Return whether a row of a result has the named events."""
        for variable, named in self.by_variable.items():
            value = record.get(variable)
            ids = [self.question.id_of(row) for row in named.rows]
            if named.takes:
                each = iter(ids)
                ids = [next(each) if takes else None for takes in named.takes]
            if named.kind == "left out":
                if value is not None and (not isinstance(value, list) or any(id is not None for id in value)):
                    return False
            elif named.kind == "list":
                if value is None or (
                    value != ids and not (self._is_set(variable) and sorted(value) == sorted(ids))
                ):
                    return False
            elif (named.kind == "member" and (value is None or ids[0] not in value)) or (
                named.kind == "single" and (value is None or value != ids[0])
            ):
                return False
        return all(name not in record or record[name] == value for name, value in self._partition().items())

    def _is_set(self, variable: str) -> bool:
        return any(variable in set_variables(branch.bound.pattern) for branch in self.question.branches)

    def _partition(self) -> dict[str, Any]:
        """Return the values of partition attributes of the first named event."""
        names = self.question.plan.partition_attributes
        if not self.rows:
            return dict(self.keys)
        return {name: self.question.table.column(name)[self.rows[0]].as_py() for name in names} | dict(
            self.keys
        )


def named_events(question: Question, ids: Mapping[str, Any]) -> NamedEvents:
    """Return the events that are named by their ids.

    Parameters
    ----------
    question : Question
    ids : mapping of str to object
        By variable an id, for a Kleene variable one id of its list or a list of all, or None where it is left
        out. Names of partition attributes stand for their values.

    Raises
    ------
    OptionError
        If there is no such variable or event, several have the id, or no branch has the variables together.
    """
    plan = question.plan
    variables = [part.variable for part in plan.components]
    keys = {name: value for name, value in ids.items() if name not in variables}
    for name in keys:
        if name not in plan.partition_attributes:
            attributes = plan.partition_attributes
            more = f", and the partition attributes {', '.join(attributes)}" if attributes else ""
            raise OptionError(
                f"{name}: the pattern has no such variable; it has {', '.join(variables)}{more}"
            )
    named: dict[str, _Named] = {}
    for name, value in ids.items():
        if name in variables:
            named[name] = _rows_of(question, name, value, keys)
    answer = NamedEvents(question, named, keys, dict(ids))
    if named and not _has_branch(question, answer):
        shown = ", ".join(f"{name}={plain_text(ids[name])}" for name in named)
        raise OptionError(f"no branch of the pattern has events as {shown}: name fewer variables")
    return answer


def _taking(bound: BoundQuery) -> set[str]:
    """Return the variables of a query that take events."""
    return {part.variable for part in bound.components if not part.negated}


def _has_branch(question: Question, named: NamedEvents) -> bool:
    """Return whether a branch can have the named events, or, of countless readings, lists as long."""
    if not question.is_countless:
        return any(True for branch in question.branches for _ in named.placed_in(branch.bound))
    for group in repeated_groups(question.plan.query.pattern):
        variables = {part.variable for part in components_of(group)}
        lengths = {length for name, length in named.lengths.items() if name in variables}
        largest = max(lengths, default=0) if group.largest is None else group.largest
        if len(lengths) > 1 or not all(group.fewest <= length <= largest for length in lengths):
            return False
    return True


def _rows_of(question: Question, variable: str, value: Any, keys: Mapping[str, Any]) -> _Named:
    """Return the rows that a variable is to have."""
    parts = [part for part in components_of(question.plan.query.pattern) if part.variable == variable]
    kleene = any(part.kleene for part in parts)
    by_iteration = any(part.by_iteration for part in parts)
    types = tuple(name for part in parts for name in part.types)
    if value is None or (isinstance(value, list | tuple) and not value):
        return _Named("left out", ())
    if isinstance(value, list | tuple):
        if not kleene:
            raise OptionError(f"{variable}={value!r}: {variable} takes one event: name its id")
        takes = tuple(id is not None for id in value) if by_iteration else ()
        taken = [id for id in value if id is not None] if by_iteration else value
        return _Named("list", tuple(_row_of(question, variable, id, types, keys) for id in taken), takes)
    row = _row_of(question, variable, value, types, keys)
    return _Named("member" if kleene else "single", (row,))


def _row_of(question: Question, variable: str, id: Any, types: Sequence[str], keys: Mapping[str, Any]) -> int:
    """Return the row of the event with an id."""
    rows = _rows_with(question, question.plan.names.id, id)
    for name, value in keys.items():
        rows = np.intersect1d(rows, _rows_with(question, name, value))
    if not len(rows):
        where = "".join(f" and {name}={plain_text(value)}" for name, value in keys.items())
        raise OptionError(f"{variable}={plain_text(id)}: no event has this id{where}")
    fitting = [row for row in rows.tolist() if is_type_of(question, types, row)] or rows.tolist()
    if len(fitting) > 1:
        names = question.plan.partition_attributes
        advice = f": name the partition, too, such as {names[0]}=..." if names else ""
        raise OptionError(f"{variable}={plain_text(id)}: {len(fitting)} events have this id{advice}")
    return int(fitting[0])


def _rows_with(question: Question, column: str, value: Any) -> NDArray[np.int64]:
    """Return the rows with a value in a column, ascending."""
    values = question.table.column(column)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        equal = pc.equal(values, pa.scalar(value, values.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        raise OptionError(
            f"{plain_text(value)!r} is no value of the column {column}, of type {values.type}"
        ) from None
    return np.flatnonzero(np.asarray(pc.fill_null(equal, False)))
