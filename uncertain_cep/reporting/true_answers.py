"""The answers that happened: a query on the events at their true times, and answers looked up among these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.errors import OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.expressions.codes import codes_of, nulls_as_key, paired
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.grouping import BOUND_COLUMNS
from uncertain_cep.reporting.comparison import stamps_of, unchosen
from uncertain_cep.results.order import finished

__all__ = [
    "NOT_NAMED",
    "TrueAnswers",
    "at_true_times",
    "codes_of_keys",
    "keys_of_answers",
    "places_among",
    "true_answers",
]

Int64 = NDArray[np.int64]

NOT_NAMED: Final = frozenset(
    {"confidence", "probability", "range_lower", "range_upper", "exact", "std_error", *BOUND_COLUMNS}
)
"""Columns of an answer that do not say which one it is."""


class TrueAnswers(NamedTuple):
    """The answers of a query on events at their true times.

    Attributes
    ----------
    answers : pyarrow.Table
        Without HAVING, LIMIT and OUTPUT.
    keys : list of str
        The columns that tell answers apart.
    outside : int
        Events whose true time lies outside their interval.
    """

    answers: pa.Table
    keys: list[str]
    outside: int


def keys_of_answers(plan: EvaluationPlan) -> list[str]:
    """Return the columns that tell the answers of a query apart: of matches, or of groups."""
    if not plan.is_grouped:
        return [*plan.partition_attributes, *(part.variable for part in plan.components)]
    keys = [key.column for key in plan.bound.keys]
    return keys if plan.bound.every is None else [*keys, "bucket"]


def at_true_times(plan: EvaluationPlan, table: pa.Table, column: str) -> tuple[pa.Table, int]:
    """Return the events that happened, at their true times, and how many of these are outside the interval.

    Times are rounded down to ticks. An event without one did not happen.

    Raises
    ------
    OptionError
        If there is no such column, or it holds no times of the kind of the events' times.
    """
    names, domain = plan.names, plan.domain
    ticks, happened = stamps_of(plan, table, column)
    begin, end = (domain.ticks(table.column(name)) for name in (names.lower, names.upper))
    # A clock that is right: of its events only the order counts.
    for name in {names.offset_lower, names.offset_upper}.intersection(plan.clock_columns(table.column_names)):
        place = table.schema.get_field_index(name)
        zero = pa.nulls(table.num_rows, table.schema.field(name).type).fill_null(0)
        table = table.set_column(place, name, zero)
    dropped = {names.pmf, names.offset_pmf, names.probability, column}
    for name in (names.lower, names.upper):
        place = table.schema.get_field_index(name)
        times = domain.times(ticks).cast(table.schema.field(name).type)
        table = table.set_column(place, name, times)
    kept = [name for name in table.column_names if name not in dropped]
    outside = int(((ticks < begin) | (ticks > end))[happened].sum())
    return table.select(kept).filter(pa.array(happened)), outside


def true_answers(plan: EvaluationPlan, table: pa.Table, options: MatchOptions, column: str) -> TrueAnswers:
    """Return the answers of a plan's query that happened, by a column of true times."""
    happened, outside = at_true_times(plan, table, column)
    true_plan = make_plan(unchosen(plan.query), happened.schema, options)
    answers = finished(true_plan, execute_within(true_plan, happened, options, None))
    # An estimate of what is certain is certain.
    sure = answers.column(answers.column_names.index(_value_column(true_plan)))
    return TrueAnswers(answers.filter(pc.greater(sure, 0.5)), keys_of_answers(plan), outside)


def _value_column(plan: EvaluationPlan) -> str:
    """Return the column that says how likely an answer is."""
    clause = plan.query.probability
    return "confidence" if clause is None else clause.name


def places_among(answers: pa.Table, those_true: pa.Table, keys: Sequence[str]) -> Int64:
    """Return where each answer stands in another table, (n,) int64; -1 where it does not.

    Parameters
    ----------
    answers, those_true : pyarrow.Table
    keys : sequence of str
        The columns that tell answers apart; null equals null.

    Raises
    ------
    OptionError
        If a table lacks one of them, their types have nothing in common, or two rows are one answer.
    """
    for table, what in ((answers, "matches"), (those_true, "true ones")):
        for name in keys:
            if name not in table.column_names:
                raise OptionError(f"the {what} have no column {name}: they have {_listed(table)}")
    code = codes_of_keys((answers, those_true), keys)
    sought, there = np.split(code, [answers.num_rows])
    for codes in (sought, there):
        if len(np.unique(codes)) < len(codes):
            raise OptionError(f"two rows are the same by {', '.join(keys)}: an answer may be there once")
    place = np.full(int(code.max(initial=-1)) + 1, -1)
    place[there] = np.arange(len(there))
    return np.asarray(place[sought], dtype=np.int64)


def codes_of_keys(tables: Sequence[pa.Table], keys: Sequence[str]) -> Int64:
    """Return codes of the values of some columns, of the rows of all tables; null equals null.

    Raises
    ------
    OptionError
        If the types of a column have nothing in common.
    """
    code = np.zeros(sum(table.num_rows for table in tables), dtype=np.int64)
    for name in keys:
        code = paired(code, _codes([table.column(name) for table in tables], name))
    return code


def _codes(columns: Sequence[pa.ChunkedArray], name: str) -> Int64:
    """Return codes of the values of columns, of one behind the other; null is a value."""
    kinds = [column.type for column in columns]
    if any(map(_is_list, kinds)):
        numbers: dict[Any, int] = {}
        values = [value for column in columns for value in column.to_pylist()]
        keys = [tuple(value) if isinstance(value, list) else value for value in values]
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    try:
        if all(map(pa.types.is_timestamp, kinds)):
            columns = [column.cast(kinds[0]) for column in columns]
        codes, _ = codes_of(columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
        raise OptionError(
            f"column {name} is of type {kinds[0]} here and of type {kinds[-1]} there: they share no value"
        ) from None
    return nulls_as_key(np.concatenate(codes))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _listed(table: pa.Table) -> str:
    return ", ".join(table.column_names) or "none"
