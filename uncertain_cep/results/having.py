"""HAVING over the columns of the result."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.config import CONFIDENCE_TOLERANCE
from uncertain_cep.expressions.vectorised import Values, column_values, evaluate_mask
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.result_columns import CONFIDENCE
from uncertain_cep.query.typed import Apply, Constant, Kind, Operator, TypedExpression, columns_in

__all__ = ["had", "kept_by_having"]

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


def kept_by_having(plan: EvaluationPlan, batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return a mask, (n,) bool, of the matches of a batch of the plan's schema that HAVING keeps.

    ``CONFIDENCE >= x``, where it is joined to the rest by AND, is not looked at.
    """
    if plan.having is None:
        return np.ones(batch.num_rows, dtype=np.bool_)
    condition = _tolerant(plan.having)
    absent: dict[str, Values] = {
        column.name: column_values(pa.nulls(batch.num_rows, _TYPES[column.kind]), column.name)
        for column in columns_in(condition)
        if column.name not in batch.schema.names
    }
    return evaluate_mask(condition, pa.Table.from_batches([batch]), absent)


def had(plan: EvaluationPlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the matches of a batch that HAVING keeps, see :func:`kept_by_having`."""
    return batch if plan.having is None else batch.filter(pa.array(kept_by_having(plan, batch)))


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
