"""Events of a stream whose ids are in use."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.errors import TraceError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.traces.checks import check_ids, used_again
from uncertain_cep.traces.faulty_rows import row_faults

__all__ = ["duplicate_error", "duplicates_in"]


def duplicates_in(plan: EvaluationPlan, retained: pa.Table, new: pa.Table) -> NDArray[np.bool_]:
    """Return a mask, (n,) bool, of new events with the id of a retained event or of an earlier new one.

    In their partition, and of those that a component takes. The retained events have ids and the attributes
    of partitions, and are such ones. O(retained + new).
    """
    taken = np.zeros(new.num_rows, dtype=np.bool_)
    again = taken.copy()
    for branch in plan.or_free:
        for part in branch.components:
            taken[rows_taken(branch, new, part)] = True
    rows = np.flatnonzero(taken)
    names = list(dict.fromkeys((plan.names.id, *plan.partition_attributes)))
    both = pa.concat_tables([retained.select(names), new.select(names).take(pa.array(rows))])
    faults = check_ids(both, plan.names, partition=plan.partition_attributes, limit=both.num_rows)
    places = [fault.row - 1 - retained.num_rows for fault in faults if fault.row is not None]
    again[rows[[place for place in places if place >= 0]]] = True
    return again


def duplicate_error(plan: EvaluationPlan, table: pa.Table, again: NDArray[np.bool_]) -> TraceError:
    """Return the error that names the events of a call, (n,) bool, whose ids are in use."""
    message = f"{used_again(plan.partition_attributes)}; it is refused, and the other events are taken"
    name = plan.names.id
    return TraceError(row_faults(again, message, column=name, values=table.column(name)))
