"""Results of few rows as slices of one batch: to make arrays for a row takes longer than to find it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.plan import EvaluationPlan

__all__ = ["FewRows"]

MOST: Final = 256
"""Rows of the batch that results are slices of: few, as who keeps or pickles one row has them all."""


class FewRows:
    """Rows of ids, ranges and confidences, written behind one another into batches that exist already.

    A row that was given out never changes.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of such rows: int64 or times of 64 bits, and at the end float64 if there are confidences.
    per_tick : int
        Length of a tick in the unit of the ranges.
    """

    def __init__(self, schema: pa.Schema, per_tick: int) -> None:
        self._schema = schema
        self._per_tick = per_tick
        self._used = MOST
        self._whole: NDArray[np.int64]
        self._confidence: NDArray[np.float64]
        self._rows: pa.RecordBatch

    @classmethod
    def of(cls, plan: EvaluationPlan) -> FewRows | None:
        """Return that of a plan; None if its matches show more than ids, ranges and confidences."""
        schema = plan.batch_schema
        with_confidence = schema.get_field_index("confidence") >= 0
        if plan.having is not None or len(schema) != len(plan.components) + 2 + with_confidence:
            return None
        types = [field.type for field in schema]
        is_flat = all(pa.types.is_primitive(one) and one.bit_width == 64 for one in types)
        return cls(schema, plan.domain.per_tick) if is_flat else None

    def batch(self, chunk: MatchBatch) -> pa.RecordBatch | None:
        """Return matches whose events are ids; None if they are too many."""
        count = len(chunk.lower)
        if count > MOST:
            return None
        if self._used + count > MOST:
            self._begin()
        begin, end = self._used, self._used + count
        whole = self._whole[:, begin:end]
        whole[:-2] = chunk.events
        np.multiply(chunk.lower, self._per_tick, out=whole[-2])
        np.multiply(chunk.upper, self._per_tick, out=whole[-1])
        if chunk.confidence is not None:
            # As sums of float64 may end a little above what is certain.
            np.minimum(chunk.confidence, 1.0, out=self._confidence[begin:end])
        self._used = end
        return self._rows.slice(begin, count)

    def _begin(self) -> None:
        """Begin another batch."""
        is_whole = [not pa.types.is_floating(field.type) for field in self._schema]
        self._whole = np.empty((sum(is_whole), MOST), dtype=np.int64)
        self._confidence = np.empty(MOST)
        columns = [*self._whole, self._confidence]
        arrays = [
            pa.Array.from_buffers(field.type, MOST, [None, pa.py_buffer(column)], 0)
            for field, column in zip(self._schema, columns, strict=False)
        ]
        self._rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._used = 0
