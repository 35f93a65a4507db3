"""Checks that ids are unique within a partition, before the events are cut into slices of time.

With slices, no worker sees all events of a key. Of ids that are whole numbers, 64 neighbours are the bits of
one number: ascending ids make few groups, which are added up where they are read, so that almost nothing is
shuffled. Other ids are compared by a hash. Ids that may be equal by this are then compared themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.dataframes import column
from uncertain_cep.spark.filters import CandidateFilters, is_value
from uncertain_cep.traces.checks import used_again
from uncertain_cep.traces.faulty_rows import shown

__all__ = ["check_unique_ids"]

_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)


def check_unique_ids(frame: DataFrame, plan: EvaluationPlan, candidates: CandidateFilters) -> None:
    """Check that no two candidates of one partition have the same id.

    Runs one job over ids and the columns of the filters, and a second one if ids start again in each
    partition; with OR or options more of them only if these find ids that may be used twice. There is a group
    for 64 neighbouring ids, or for each id that is no whole number.

    Raises
    ------
    TraceError
        As in this process, but without the numbers of rows, which Spark does not have.
    """
    branches = list(zip(plan.or_free, candidates.components, strict=True))
    for keys in dict.fromkeys(branch.partition_attributes for branch, _ in branches):
        conditions = [takes for branch, takes in branches if branch.partition_attributes == keys]
        # Most often no two candidates at all share an id. Those of each branch may be apart even if some do.
        together = {id(part): part for takes in conditions for part in takes}
        if not _found_twice(frame, plan.names.id, keys, together):
            continue
        apart = {tuple(map(id, takes)): {id(part): part for part in takes} for takes in conditions}
        for each in apart.values():
            if len(apart) == 1 or _found_twice(frame, plan.names.id, keys, each):
                _report(_used(frame, keys, each), plan.names.id, keys)


def _found_twice(frame: DataFrame, id: str, keys: Sequence[str], takes: Mapping[int, Column]) -> bool:
    """Return whether candidates of any of some components may share an id and the keys."""
    used = _used(frame, keys, takes)
    return _suspected(used, id, ()) and (not keys or _suspected(used, id, keys))


def _used(frame: DataFrame, keys: Sequence[str], takes: Mapping[int, Column]) -> DataFrame:
    """Return the candidates of any of some components that have all keys."""
    return frame.filter(
        reduce(
            and_,
            (is_value(column(name), frame.schema[name].dataType) for name in keys),
            reduce(or_, takes.values()),
        )
    )


def _suspected(used: DataFrame, id: str, keys: Sequence[str]) -> bool:
    """Return whether events with the same keys may share an id; different ids may have the same hash."""
    value = column(id)
    block, bit = f.xxhash64(value), f.lit(1).cast("long")
    if isinstance(used.schema[id].dataType, _INTEGERS):
        number = value.cast("long")
        block = f.shiftright(number, 6)
        bit = f.call_function("shiftleft", bit, number.bitwiseAND(f.lit(63)).cast("int"))
    groups = used.select(*_numbered(keys), block.alias("block"), bit.alias("bit")).groupBy(
        *(f"key{place}" for place in range(len(keys))), "block"
    )
    counted = groups.agg(f.count(f.lit(1)).alias("events"), f.bit_or("bit").alias("bits"))
    return not counted.filter(f.col("events") > f.bit_count("bits")).isEmpty()


def _numbered(keys: Sequence[str]) -> list[Column]:
    return [column(name).alias(f"key{place}") for place, name in enumerate(keys)]


def _report(used: DataFrame, id: str, keys: Sequence[str]) -> None:
    """Raise for the ids that are used twice, if there are any."""
    counted = (
        used.select(*_numbered(keys), column(id).alias("id"))
        .groupBy(*(f"key{place}" for place in range(len(keys))), "id")
        .agg((f.count(f.lit(1)) - 1).alias("again"))
        .filter(f.col("again") > 0)
        .orderBy("id")
    )
    rows = counted.limit(FAULT_LIMIT).collect()
    if not rows:
        return
    message = used_again(keys)
    faults = [TraceFault(message, column=id, value=shown(row["id"])) for row in rows]
    more = counted.agg(f.sum("again")).collect()[0][0] - len(rows)
    if more:
        faults.append(TraceFault(f"the same in {more:,} more rows: {message}", column=id))
    raise TraceError(faults)
