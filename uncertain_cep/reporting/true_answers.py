"""The answers that happened: a query on the events at their true times, and answers looked up among these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.span_times import spans_in_ticks
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.expressions.codes import codes_of, nulls_as_key, paired
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.grouping import BOUND_COLUMNS
from uncertain_cep.reporting.comparison import stamps_of, unchosen
from uncertain_cep.results.display import plain_text
from uncertain_cep.results.order import finished
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS

__all__ = [
    "NOT_NAMED",
    "TrueAnswers",
    "Truth",
    "at_true_times",
    "codes_of_keys",
    "keys_of_answers",
    "places_among",
    "true_answers",
]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

Truth = str | tuple[str, str]
"""The column of true times, or those of true begins and ends."""

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


def at_true_times(plan: EvaluationPlan, table: pa.Table, truth: Truth) -> tuple[pa.Table, int]:
    """Return the events that happened, at their true times, and how many of these are outside the interval.

    Times are rounded down to ticks. An event without one did not happen.

    Parameters
    ----------
    truth : str or tuple of str
        The column of true times; where events can last, those of true begins and ends.

    Raises
    ------
    OptionError
        If there is no such column, it holds no times of the kind of the events' times, or a span that
        happened has no end, or one before its begin.
    """
    names, domain = plan.names, plan.domain
    columns = _columns_of_truth(plan, truth)
    times = [stamps_of(plan, table, column) for column in columns]
    ticks, happened = times[0]
    begin, end = (domain.ticks(table.column(name)) for name in (names.lower, names.upper))
    outside = (ticks < begin) | (ticks > end)
    bounds = {names.lower: ticks, names.upper: ticks}
    if plan.lasting:
        last = _true_ends(plan, table, columns, times)
        spans = spans_in_ticks(plan, table)
        outside = outside | (last > end) | _outside_of_spans(spans, ticks, last)
        bounds = {names.lower: ticks, names.upper: last}
        # A span whose begin and end are certain; its length follows. Points stay points.
        table = table.drop_columns([name for name in SPAN_LAWS if name in table.column_names])
        table = _with_certain_ends(plan, table, _lasts(spans), ticks, last)
    # A clock that is right: of its events only the order counts.
    for name in {names.offset_lower, names.offset_upper}.intersection(plan.clock_columns(table.column_names)):
        place = table.schema.get_field_index(name)
        zero = pa.nulls(table.num_rows, table.schema.field(name).type).fill_null(0)
        table = table.set_column(place, name, zero)
    dropped = {names.pmf, names.offset_pmf, names.probability, *columns}
    for name, values in bounds.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, domain.times(values).cast(table.schema.field(name).type))
    kept = [name for name in table.column_names if name not in dropped]
    return table.select(kept).filter(pa.array(happened)), int(outside[happened].sum())


def _columns_of_truth(plan: EvaluationPlan, truth: Truth) -> tuple[str, ...]:
    """Return the columns of true times: one, or those of begins and ends where events can last."""
    columns = (truth,) if isinstance(truth, str) else tuple(truth)
    if len(columns) == 1 + plan.lasting:
        return columns
    if plan.lasting:
        raise OptionError(
            f"truth={truth!r}: events last, so it names two columns, those of true begins and of true ends"
        )
    raise OptionError(f"truth={truth!r}: no event lasts, so it names one column, that of true times")


def _lasts(spans: Mapping[str, pa.ChunkedArray]) -> Mask:
    """Return a mask of the events that are spans, (n,), by their columns in ticks."""
    lasts: Mask = np.logical_or.reduce([np.asarray(spans[name].is_valid()) for name in SPAN_COLUMNS])
    return lasts


def _true_ends(
    plan: EvaluationPlan, table: pa.Table, columns: tuple[str, ...], times: Sequence[tuple[Int64, Mask]]
) -> Int64:
    """Return the true ends of events, (n,) int64: of points, and of what did not happen, their times."""
    (begin, happened), (end, has_end) = times
    lasts = _lasts(spans_in_ticks(plan, table)) & happened
    for wrong, message in (
        (lasts & ~has_end, f"has a true begin in {columns[0]} and no end in {columns[1]}"),
        (lasts & has_end & (end < begin), f"ends before it begins, by {columns[0]} and {columns[1]}"),
    ):
        if wrong.any():
            id = table.column(plan.names.id)[int(np.flatnonzero(wrong)[0])].as_py()
            raise OptionError(f"the event {plain_text(id)} lasts, and {message}")
    return np.where(lasts, end, begin)


def _outside_of_spans(spans: Mapping[str, pa.ChunkedArray], begin: Int64, end: Int64) -> Mask:
    """Return a mask of events whose true begin, end or length is not within their bounds, (n,)."""
    outside = np.zeros(len(begin), np.bool_)
    for place, ticks in enumerate((begin, end, end - begin)):
        low, high = (spans[name] for name in SPAN_COLUMNS[2 * place : 2 * place + 2])
        has = np.asarray(low.is_valid())
        low, high = (np.asarray(bound.cast(pa.int64()).fill_null(0)) for bound in (low, high))
        outside |= has & ((ticks < low) | (ticks > high))
    return outside


def _with_certain_ends(
    plan: EvaluationPlan, table: pa.Table, lasts: Mask, begin: Int64, end: Int64
) -> pa.Table:
    """Return events whose spans begin and end at certain ticks, each (n,) int64; the others are points."""
    for name, ticks in zip(SPAN_COLUMNS, (begin, begin, end, end, None, None), strict=True):
        place = table.schema.get_field_index(name)
        kind = table.schema.field(name).type
        column = pa.nulls(table.num_rows, kind)
        if ticks is not None:
            # Columns of nulls alone may have no type of times.
            kind = table.schema.field(plan.names.lower).type if pa.types.is_null(kind) else kind
            times = plan.domain.times(ticks).cast(kind)
            column = pc.if_else(pa.array(lasts), times, pa.scalar(None, kind))
        table = table.set_column(place, name, column)
    return table


def true_answers(plan: EvaluationPlan, table: pa.Table, options: MatchOptions, truth: Truth) -> TrueAnswers:
    """Return the answers of a plan's query that happened, by the true times of `at_true_times`."""
    happened, outside = at_true_times(plan, table, truth)
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
