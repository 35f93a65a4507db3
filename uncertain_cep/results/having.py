"""HAVING over the columns of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.expressions.vectorised import Values, column_values, evaluate_mask
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.result_columns import CONFIDENCE
from uncertain_cep.query.typed import Apply, Constant, Kind, Operator, TypedExpression, columns_in
from uncertain_cep.results.projection import TimesBetween, to_batch

__all__ = ["had", "kept_by_having", "rows_kept"]

_LESS: Final = 1.0 - CONFIDENCE_TOLERANCE
_MORE: Final = 1.0 + CONFIDENCE_TOLERANCE

_WIDENED: Final[dict[Operator, tuple[float, Operator]]] = {
    "greater_equal": (_LESS, "greater_equal"), "less": (_LESS, "less"),
    "less_equal": (_MORE, "less_equal"), "greater": (_MORE, "greater"),
}  # fmt: skip
_MIRRORED: Final[dict[Operator, Operator]] = {
    "greater_equal": "less_equal", "less_equal": "greater_equal", "greater": "less", "less": "greater",
}  # fmt: skip
_TYPES: Final[dict[Kind, pa.DataType]] = {
    "int": pa.int64(), "float": pa.float64(), "string": pa.large_string(), "bool": pa.bool_(),
    "time": pa.int64(), "duration": pa.int64(), "null": pa.null(),
}  # fmt: skip


def kept_by_having(
    plan: EvaluationPlan,
    table: pa.Table,
    chunk: MatchBatch,
    direct: bool,
    times_between: TimesBetween | None = None,
) -> NDArray[np.bool_]:
    """Return a mask, (n,) bool, of the matches that HAVING keeps; parameters of :func:`to_batch`.

    ``CONFIDENCE >= x``, where it is joined to the rest by AND, is not looked at.
    """
    return _batch_and_kept(plan, table, chunk, direct, times_between)[1]


def had(
    plan: EvaluationPlan,
    table: pa.Table,
    chunk: MatchBatch,
    direct: bool,
    times_between: TimesBetween | None = None,
) -> pa.RecordBatch:
    """Return the matches that HAVING keeps as a batch, see :func:`kept_by_having`."""
    if plan.having is None:
        return to_batch(plan, table, chunk, direct, times_between)
    batch, kept = _batch_and_kept(plan, table, chunk, direct, times_between)
    return batch.filter(pa.array(kept))


def _batch_and_kept(
    plan: EvaluationPlan, table: pa.Table, chunk: MatchBatch, direct: bool, times_between: TimesBetween | None
) -> tuple[pa.RecordBatch, NDArray[np.bool_]]:
    """Return matches as a batch, and which of them HAVING keeps.

    Whole numbers are compared as they are, also in a column that is float64 since one of it left int64.
    """
    exact: dict[str, Values] = {}
    batch = to_batch(plan, table, chunk, direct, times_between, exact)
    if plan.having is None:
        return batch, np.ones(batch.num_rows, dtype=np.bool_)
    return batch, rows_kept(plan.having, batch, exact)


def rows_kept(
    having: TypedExpression, rows: pa.RecordBatch, exact: Mapping[str, Values]
) -> NDArray[np.bool_]:
    """Return a mask, (n,) bool, of the rows of a result that HAVING keeps.

    ``exact`` has the values of columns that are float64 since a whole number left int64.
    """
    condition = _tolerant(having)
    absent = {
        column.name: column_values(pa.nulls(rows.num_rows, _TYPES[column.kind]), column.name)
        for column in columns_in(condition)
        if column.name not in rows.schema.names
    }
    return evaluate_mask(condition, pa.Table.from_batches([rows]), {**exact, **absent})


@lru_cache(maxsize=64)
def _tolerant(condition: TypedExpression) -> TypedExpression:
    """Return a condition in which what is equal to a confidence up to rounding is equal to it."""
    if not isinstance(condition, Apply):
        return condition
    left, right = condition.operands[0], condition.operands[-1]
    operator = condition.operator
    if right == CONFIDENCE != left:
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    if left == CONFIDENCE != right:
        if operator in ("equal", "not_equal"):
            within = [
                _tolerant(Apply(sign, (left, right), "bool")) for sign in ("greater_equal", "less_equal")
            ]
            both = Apply("and", tuple(within), "bool")
            return both if operator == "equal" else Apply("not", (both,), "bool")
        if operator in _WIDENED:
            factor, sign = _WIDENED[operator]
            scaled = Apply("multiply", (right, Constant(factor, "float")), "float")
            return Apply(sign, (left, scaled), "bool")
    return replace(condition, operands=tuple(map(_tolerant, condition.operands)))
