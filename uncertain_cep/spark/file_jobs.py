"""Jobs in which Spark's Python workers read files of events themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.query import Query
from uncertain_cep.spark.clock_offsets import check_offsets_agree
from uncertain_cep.spark.dataframes import column, in_workers, noted_schema, whole_numbers
from uncertain_cep.spark.diagnosed_frame import FrameEvents
from uncertain_cep.spark.event_files import files_of
from uncertain_cep.spark.file_parts import EventFiles
from uncertain_cep.spark.file_tasks import FileTasks, choose_tasks
from uncertain_cep.spark.file_worker import Counts, FileWork
from uncertain_cep.spark.filters import candidate_filters
from uncertain_cep.spark.jobs import count_cores, errors_of_workers
from uncertain_cep.spark.largest_amounts import merged, roundable_columns, warn_of_rounded
from uncertain_cep.spark.spoiled_values import naming_spoiled_values
from uncertain_cep.spark.unique_ids import check_unique_ids

__all__ = ["columns_read", "describe_reading", "file_work", "run_on_files", "task_numbers"]


def columns_read(plan: EvaluationPlan, schema: pa.Schema) -> list[str]:
    """Return the columns that the engine reads, with that of ticks if there is one."""
    ticks = [plan.names.tick] if plan.names.tick in schema.names else []
    return list(dict.fromkeys([*plan.required_columns, *ticks]))


def file_work(
    frame: DataFrame, plan: EvaluationPlan, schema: pa.Schema, tick: str | None, partitions: int | None
) -> FileWork | None:
    """Return the work of reading the files of a frame; None if it has none, or a shuffle is better.

    ``schema`` is the schema of the events, and ``tick`` the length of a tick by their own columns.
    """
    if _why_together(plan):
        return None
    files, tasks = _files_and_tasks(frame, plan, schema, partitions)
    if files is None or tasks is None or not tasks.sound:
        return None
    return FileWork(plan, files, tasks.tasks, tick, roundable=roundable_columns(plan, files.schema))


def describe_reading(frame: DataFrame, query: Query, options: MatchOptions) -> str:
    """Return in words who reads the events of a frame, and why."""
    noted = noted_schema(whole_numbers(frame, options.names), options.names)
    schema = schema_with_all_bounds(noted, options.names.lower)
    with naming_spoiled_values(frame):
        plan = make_plan(query, schema, options, takes_spans=True)
    if why := _why_together(plan):
        return f"Spark reads and shuffles the events: {why}"
    files, tasks = _files_and_tasks(frame, plan, schema, None)
    if files is None or tasks is None:
        return "Spark reads and shuffles the events: they are not all those of files that tell their times"
    return tasks.describe(len(files.parts))


def _why_together(plan: EvaluationPlan) -> str:
    """Return why workers cannot read files one by one; nothing if they can."""
    return "" if plan.clock_names.ordered is None else "those of an ordered source may depend on each other"


def _files_and_tasks(
    frame: DataFrame, plan: EvaluationPlan, schema: pa.Schema, partitions: int | None
) -> tuple[EventFiles | None, FileTasks | None]:
    columns = columns_read(plan, schema)
    if not {*columns} <= {*frame.columns}:
        return None, None
    files = files_of(frame, schema, plan.names, columns)
    if files is None or not files.parts:
        return None, None
    return files, choose_tasks(plan, files, partitions or count_cores(frame.sparkSession))


def task_numbers(frame: DataFrame, work: FileWork) -> DataFrame:
    """Return a frame of the numbers of the tasks, each in a partition of its own."""
    return frame.sparkSession.range(0, len(work.tasks), 1, len(work.tasks))


def run_on_files(
    frame: DataFrame, work: FileWork, run: Callable[..., Iterator[pa.RecordBatch]], diagnostics: Diagnostics
) -> tuple[dict[str, int], int]:
    """Run tasks over the files of a frame.

    Returns the files that they wrote with their numbers of matches, and the number of undecided matches.

    Parameters
    ----------
    run : callable
        Gets the numbers of tasks, and yields rows like those of `write_files`.
    diagnostics : Diagnostics
        Receives how many candidates each component has.

    Raises
    ------
    TraceError
        With the first faults of all files, or if an id is used twice.
    """
    schema = "name string, rows long, candidates string, faults string, undecided long"
    schema += ", largest map<string, string>"
    plan = work.plan
    with errors_of_workers():
        reports = in_workers(task_numbers(frame, work), run, schema).collect()
        faults = [TraceFault(**fault) for row in reports for fault in json.loads(row["faults"])]
        if faults:
            raise TraceError(_first(faults, work.files.paths))
        events = whole_numbers(frame, plan.names)
        needed = events.select(*map(column, plan.required_columns))
        check_offsets_agree(needed, plan)
        if not work.files.ids_apart:
            check_unique_ids(needed, plan, candidate_filters(plan, needed.schema))
        counts = Counts(plan, np.sum([json.loads(row["candidates"]) for row in reports], axis=0))
        looked_at = FrameEvents(events, plan, work.files.schema, counts.sizes, counts.negated, counts.types)
        looked_at.look(diagnostics)
    warn_of_rounded(plan, work.files.schema, merged(row["largest"] for row in reports))
    written = {row["name"]: row["rows"] for row in reports if row["name"] is not None}
    return written, sum(row["undecided"] for row in reports)


def _first(faults: list[TraceFault], paths: Sequence[str]) -> list[TraceFault]:
    """Return the first faults of single rows, in the order of the files, and how many more there are."""
    places = {path: place for place, path in enumerate(paths)}
    # Two tasks that read a part may both report a fault between it and its neighbour.
    faults = list(dict.fromkeys(faults))
    rows = [fault for fault in faults if fault.count == 1]
    rows.sort(key=lambda fault: (places.get(fault.file or "", -1), fault.row or 0))
    more = sum(fault.count for fault in faults) - len(rows[:FAULT_LIMIT])
    remainder = [TraceFault(f"{more:,} more events have such faults", count=more)] if more else []
    return rows[:FAULT_LIMIT] + remainder
