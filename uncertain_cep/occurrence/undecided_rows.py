"""HAVING for groups whose probability is known by certain bounds only, or may still rise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.plan.grouping import BOUND_COLUMNS
from uncertain_cep.plan.result_columns import CONFIDENCE
from uncertain_cep.query.typed import Apply, TypedExpression, columns_in
from uncertain_cep.results.having import rows_kept

__all__ = ["is_met_by_more", "may_be_kept"]

_RISING: Final = ("greater", "greater_equal")
_FALLING: Final = ("less", "less_equal")
_FOLLOWING: Final = (CONFIDENCE.name, "exact", "std_error", *BOUND_COLUMNS)
_COMPARISONS: Final = (*_RISING, *_FALLING)


def may_be_kept(having: TypedExpression, rows: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return a mask, (n,) bool, of the rows that HAVING does not rule out for certain.

    A comparison of the probability with something else is met somewhere between the bounds if it is at one
    of them. Other conditions on the probability are taken as possible.
    """
    place = rows.schema.names.index(CONFIDENCE.name)
    possible = np.ones(rows.num_rows, dtype=np.bool_)
    for condition in _joined_by_and(having):
        if CONFIDENCE not in columns_in(condition):
            possible &= rows_kept(condition, rows, {})
        elif _compares_probability(condition):
            at_bounds = [rows.set_column(place, CONFIDENCE.name, rows.column(name)) for name in BOUND_COLUMNS]
            possible &= np.logical_or(*(rows_kept(condition, changed, {}) for changed in at_bounds))
    return possible


def is_met_by_more(condition: TypedExpression) -> bool:
    """Return whether HAVING asks of the probability only conditions that a greater one meets as well.

    Conditions on other columns are met whatever the probability is. One that asks nothing of it is none.
    """
    if not _speaks_of_probability(condition) or not isinstance(condition, Apply):
        return False
    if condition.operator in ("and", "or"):
        return all(
            is_met_by_more(operand) for operand in condition.operands if _speaks_of_probability(operand)
        )
    left, right = condition.operands[0], condition.operands[-1]
    return (condition.operator in _RISING and left == CONFIDENCE and not _speaks_of_probability(right)) or (
        condition.operator in _FALLING and right == CONFIDENCE and not _speaks_of_probability(left)
    )


def _speaks_of_probability(condition: TypedExpression) -> bool:
    """Return whether a condition mentions the probability, or a column that follows from it."""
    return any(column.name in _FOLLOWING for column in columns_in(condition))


def _joined_by_and(condition: TypedExpression) -> Iterator[TypedExpression]:
    if isinstance(condition, Apply) and condition.operator == "and":
        for operand in condition.operands:
            yield from _joined_by_and(operand)
    else:
        yield condition


def _compares_probability(condition: TypedExpression) -> bool:
    """Return whether a condition is a comparison with the probability on one side."""
    if not isinstance(condition, Apply) or condition.operator not in _COMPARISONS:
        return False
    left, right = condition.operands
    return (left == CONFIDENCE and CONFIDENCE not in columns_in(right)) or (
        right == CONFIDENCE and CONFIDENCE not in columns_in(left)
    )
