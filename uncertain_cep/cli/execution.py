"""Running a query for the command line: read, match, and put the matches where they were asked for."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.cli.arguments import Compression, Format, TraceOptions, compression_of_name
from uncertain_cep.cli.batch_writers import write_batches
from uncertain_cep.cli.outputs import describe_result, result_written_aside
from uncertain_cep.cli.progress import (
    announced_kernels,
    check_stdout,
    note,
    of_ticks,
    working,
)
from uncertain_cep.cli.spark_sessions import session_with_kernels
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError, QueryError, TraceError
from uncertain_cep.executor import execute_within
from uncertain_cep.optimizer.memory import keep_on_disk
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lacking_keys import warn_of_lacking_keys
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query, attributes_in
from uncertain_cep.results.display import Unit
from uncertain_cep.results.order import finished
from uncertain_cep.running.installation import VERSION
from uncertain_cep.timeline.domain import TimeDomain, coarsest_unit
from uncertain_cep.traces.reading import LoadedTrace, load_traces
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Destination", "Matching", "check_for_spark", "deliver", "plan_of", "warn_of_keys_on_spark"]


@dataclass(frozen=True, slots=True)
class Matching:
    """The traces and queries to match, and how; ``master`` is None for the in-process engine.

    Each query ``before`` adds its matches to the events, as events of the type it is given with.
    """

    query: Query
    traces: tuple[str, ...]
    columns: TraceOptions
    options: MatchOptions
    master: str | None
    before: tuple[tuple[str, Query], ...] = ()

    @property
    def used(self) -> frozenset[str] | None:
        """The attributes that the queries speak of; None if one returns them all."""
        attributes = [attributes_in(query) for query in (self.query, *(query for _, query in self.before))]
        return (
            None if None in attributes else frozenset[str]().union(*(names for names in attributes if names))
        )

    @property
    def options_before(self) -> MatchOptions:
        """The options for the queries before the last one."""
        options = self.options
        return MatchOptions(
            tick=options.tick,
            approximate=options.approximate,
            known_until=options.known_until,
            max_matches=options.max_matches,
            limit=options.limit,
        )

    def facts(self, format_name: Format, count: int) -> dict[str, object]:
        """Return the facts to write into the file about a result."""
        return {
            "program": f"uncertain-cep {VERSION}",
            "query": self.query.text,
            "parameters": {name: str(value) for name, value in self.query.values},
            "before": {name: query.text for name, query in self.before},
            "min_confidence": self.query.min_confidence,
            "limit": self.query.limit,
            "known_until": self.options.known_until,
            "traces": list(self.traces),
            "engine": "in process" if self.master is None else f"Spark {self.master}",
            "format": format_name,
            "matches": count,
        }


@dataclass(frozen=True, slots=True)
class Destination:
    """Where matches go: ``out`` is None for stdout; else a file or, unless ``as_file``, a directory."""

    out: str | None
    as_file: bool
    format_name: Format
    overwrite: bool

    @property
    def compression(self) -> Compression | None:
        """How the file is compressed."""
        return compression_of_name(self.out) if self.out is not None and self.as_file else None


def deliver(matching: Matching, destination: Destination) -> int:
    """Find the matches, put them where they are wanted and return their number."""
    if matching.master is None:
        return _deliver_in_process(matching, destination)
    return _deliver_from_spark(matching, destination, matching.master)


def _deliver_in_process(matching: Matching, destination: Destination) -> int:
    format_name = destination.format_name
    if destination.out is None or destination.as_file:
        with (
            _file_or_stdout(destination) as sink,
            _matches_in_process(matching, printed=destination.out is None) as matches,
        ):
            unit = _unit_of_ticks(matches.plan.domain)
            count = write_batches(
                matches.batches, matches.schema, sink, format_name, destination.compression, unit
            )
        matches.explain_nothing(count, matching.options)
        return count
    with result_written_aside(Path(destination.out), overwrite=destination.overwrite) as aside:
        aside.mkdir()
        with _matches_in_process(matching) as matches:
            part, unit = aside / f"part-00000.{format_name}", _unit_of_ticks(matches.plan.domain)
            count = write_batches(matches.batches, matches.schema, part, format_name, unit=unit)
        describe_result(aside, matching.facts(format_name, count))
    matches.explain_nothing(count, matching.options)
    return count


def _unit_of_ticks(domain: TimeDomain) -> Unit:
    """Return the unit whose digits the text of ranges has."""
    if domain.unit == "tick" or domain.tick_nanoseconds is None:
        return "us"
    return coarsest_unit(domain.tick_nanoseconds)


@dataclass(frozen=True, slots=True)
class _Found:
    """The matches of a plan among the events of a table, and what counts the candidates meanwhile."""

    plan: EvaluationPlan
    table: pa.Table
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    diagnostics: Diagnostics

    def explain_nothing(self, count: int, options: MatchOptions) -> None:
        """Say of an empty result how many candidates there were, and which conditions leave no match."""
        if count:
            return
        note(self.diagnostics.summary())
        for line in _why_nothing(self.plan, self.table, options):
            note(line)


def _why_nothing(plan: EvaluationPlan, table: pa.Table, options: MatchOptions) -> list[str]:
    from uncertain_cep.explanation.nothing import conditions_that_leave_nothing

    said = conditions_that_leave_nothing(plan, table, options)
    return [said] if said else []


@contextmanager
def _matches_in_process(matching: Matching, *, printed: bool = False) -> Iterator[_Found]:
    """Yield the matches of the last query."""
    columns = matching.columns
    without_pandas()
    keep_on_disk()
    with working("reading") as update:
        loaded = load_traces(
            matching.traces, columns.schema, format=columns.format, tick=columns.tick, used=matching.used
        )
        table = with_all_bounds(loaded.sound(), matching.options.names.lower)
        # A line in between would disturb the moving one.
        ticks = of_ticks(loaded.tick, loaded.floored)
        notes = [f"read {counted(table.num_rows, 'event')}{ticks}{_dropped(loaded.dropped)}"]
        for name, query in matching.before:
            # Imports much that a single query does without.
            from uncertain_cep.results.composition import with_matches

            diagnostics = Diagnostics()
            matches = _matches_of(matching, name, query, loaded, table, update, diagnostics)
            notes.append(f"{name}: {counted(matches.num_rows, 'match', 'matches')}")
            notes += [] if matches.num_rows else [f"{name}: {diagnostics.summary()}"]
            table = with_matches(table, matches, name)
        plan = plan_of(matching.query, loaded, table, matching.options)
        announced_kernels()
    for line in notes:
        note(line)
    with _faults_by_file(matching, plan), working("matching", beside_rows=printed) as update:
        diagnostics, options, schema = Diagnostics(), matching.options, plan.output_schema
        batches = _counted(execute_within(plan, table, options, diagnostics), update)
        if plan.needs_all:
            batches = iter(finished(plan, batches, options.limit).to_batches())
        yield _Found(plan, table, schema, batches, diagnostics)


def _dropped(rows: int) -> str:
    return f", dropped {counted(rows, 'row')} without a time" if rows else ""


def _matches_of(
    matching: Matching,
    name: str,
    query: Query,
    loaded: LoadedTrace,
    table: pa.Table,
    update: Callable[[str], None],
    diagnostics: Diagnostics,
) -> pa.Table:
    """Return the matches of one of the queries before the last one."""
    options = matching.options_before
    plan = plan_of(query, loaded, table, options)
    announced_kernels()
    update(f"matching {name}")
    with _faults_by_file(matching, plan):
        batches = _counted(execute_within(plan, table, options, diagnostics), update)
        return finished(plan, batches, options.limit)


def plan_of(query: Query, loaded: LoadedTrace, table: pa.Table, options: MatchOptions) -> EvaluationPlan:
    """Return the plan for a table of a trace of which some columns were read."""
    options = replace(options, takes_spans=True)
    schema = with_all_bounds(table, options.names.lower).schema
    # Behind the rows of the files there may be matches.
    is_whole = loaded.table is not None and table.num_rows == loaded.table.num_rows
    with naming_spoiled_rows(table, loaded.origin.placed if is_whole else None):
        try:
            plan = make_plan(query, schema, options)
        except QueryError:
            # Which columns there are is to be said of all.
            make_plan(query, loaded.with_all_columns(schema), options)
            raise
    warn_of_lacking_keys(plan, loaded.files_without)
    return plan


def warn_of_keys_on_spark(query: Query, events: DataFrame, options: MatchOptions) -> None:
    """Warn of the files of a frame that lack a column by which the query ties their events."""
    from uncertain_cep.spark.dataframes import noted_schema, whole_numbers
    from uncertain_cep.spark.event_files import files_without

    frame = whole_numbers(events, options.names)
    plan = make_plan(query, noted_schema(frame, options.names), options)
    warn_of_lacking_keys(plan, partial(files_without, events))


@contextmanager
def _faults_by_file(matching: Matching, plan: EvaluationPlan) -> Iterator[None]:
    """Say of events at fault in which files and rows they are: the engine knows rows of the table it got."""
    try:
        yield
    except TraceError:
        columns = matching.columns
        loaded = load_traces(matching.traces, columns.schema, format=columns.format, tick=columns.tick)
        if faults := loaded.with_checked_ids(plan.partition_attributes).faults:
            raise TraceError(faults) from None
        raise


def _counted(batches: Iterable[pa.RecordBatch], update: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    match_count = 0
    for batch in batches:
        match_count += batch.num_rows
        update(f"matching: {counted(match_count, 'match', 'matches')}")
        yield batch


def _deliver_from_spark(matching: Matching, destination: Destination, master: str) -> int:
    check_for_spark(matching.options, master)
    out, format_name = destination.out, destination.format_name
    if not master.startswith("local"):
        if out is None or destination.as_file:
            raise OptionError("a cluster writes a directory: name one with -o, without .csv or the like")
        # The driver may not see the cluster's files: Spark's own commit keeps half a result apart.
        return _write_on_spark(matching, out, destination, master)[0]
    if out is not None and not destination.as_file:
        with result_written_aside(Path(out), overwrite=destination.overwrite) as aside:
            count, _ = _write_on_spark(matching, str(aside), destination, master)
            describe_result(aside, matching.facts(format_name, count))
        return count
    with _file_or_stdout(destination) as sink, tempfile.TemporaryDirectory(prefix="uncertain-cep-") as folder:
        import pyarrow.dataset

        parts = Path(folder) / "parts"
        _, unit = _write_on_spark(matching, str(parts), replace(destination, format_name="parquet"), master)
        matches = pyarrow.dataset.dataset(parts, format="parquet")
        return write_batches(
            matches.to_batches(), matches.schema, sink, format_name, destination.compression, unit
        )


def _write_on_spark(
    matching: Matching, folder: str, destination: Destination, master: str
) -> tuple[int, Unit]:
    """Have Spark write the matches as a directory of part files; return their number and the ticks' unit."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from uncertain_cep.spark import noted_schema, worker_errors
    from uncertain_cep.spark.jobs import stopped_in_time, tasks_told
    from uncertain_cep.spark.matching import matches_frame
    from uncertain_cep.spark.no_match import why_no_match
    from uncertain_cep.spark.reading import used_of_traces
    from uncertain_cep.spark.writing import matches_to_parquet, save_matches

    options = matching.options
    diagnostics = Diagnostics()

    def tell(done: int, parts: int) -> None:
        update(f"matching on Spark: {done:,} of {counted(parts, 'task')} done")

    with (
        session_with_kernels(master) as spark,
        working("matching on Spark") as update,
        tasks_told(spark, tell),
        stopped_in_time(spark, options.limit),
        worker_errors(),
    ):
        columns = matching.columns
        events = used_of_traces(
            spark, matching.traces, columns.schema, columns.tick, matching.used, columns.format
        )
        warn_of_keys_on_spark(matching.query, events, options)
        unit = _unit_of_ticks(TimeDomain.of(noted_schema(events, options.names), options.names, options.tick))
        if destination.format_name == "parquet":
            count = matches_to_parquet(
                events,
                matching.query,
                folder,
                options,
                overwrite=destination.overwrite,
                diagnostics=diagnostics,
            )
        else:
            matches = matches_frame(events, matching.query, options, diagnostics=diagnostics)
            written = Observation()
            save_matches(
                matches.observe(written, f.count(f.lit(1)).alias("rows")),
                folder,
                destination.format_name,
                overwrite=destination.overwrite,
                unit=unit,
            )
            count = int(written.get["rows"])
        reason = "" if count else why_no_match(events, matching.query, options)
    if not count:
        note(diagnostics.summary())
    if reason:
        note(reason)
    return count, unit


def check_for_spark(options: MatchOptions, master: str) -> None:
    """Raise an OptionError if there is no such master, or an option is for this process alone."""
    from uncertain_cep.spark.masters import check_master

    check_master(master)
    if options.threads is not None:
        raise OptionError("--threads is for --engine local: a task of Spark has one thread")
    if options.limit is not None and options.limit.memory is not None:
        raise OptionError(
            "--memory-limit is for --engine local: Spark's workers have limits of their own, such as "
            "spark.executor.memory"
        )


@contextmanager
def _file_or_stdout(destination: Destination) -> Iterator[Path | BinaryIO]:
    if destination.out is None:
        check_stdout()
        yield sys.stdout.buffer
    else:
        with result_written_aside(Path(destination.out), overwrite=destination.overwrite) as aside:
            yield aside
