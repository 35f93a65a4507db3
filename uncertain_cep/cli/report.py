"""``uncertain-cep report``: the matches of a query as one page to look at."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    engine_option,
    evaluation_options,
    master_option,
    out_option,
    overwrite_option,
    parameter_option,
    query_argument,
    query_file,
    read_query,
    schema_options,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import announced_kernels, note, working
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.plurals import counted
from uncertain_cep.results.output_place import check_output_place

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.query import Query
    from uncertain_cep.reporting.calibrated import Calibration
    from uncertain_cep.reporting.gathered import Answer, ReportRequest

__all__ = ["report", "write_report"]


@click.command(cls=HelpfulCommand)
@query_argument
@traces_argument()
@out_option("The page, such as report.html.", required=True)
@overwrite_option
@click.option("--title", metavar="TEXT", help="The title. Default: the first comment of the query.")
@click.option("--min-confidence", type=click.FloatRange(0, 1), metavar="X", help="As HAVING CONFIDENCE >= X.")
@click.option("--top", type=click.IntRange(min=1), metavar="K", help="As ORDER BY CONFIDENCE DESC LIMIT K.")
@engine_option
@master_option
@parameter_option
@evaluation_options
@schema_options
def report(
    query: str,
    traces: tuple[str, ...],
    columns: TraceOptions,
    out: str,
    overwrite: bool,
    title: str | None,
    min_confidence: float | None,
    top: int | None,
    engine: Literal["auto", "local", "spark"],
    master: str | None,
    parameters: dict[str, str],
    options: MatchOptions,
) -> None:
    """Write the matches of QUERY in one or more traces as one page that opens anywhere.

    The page shows how many matches there are, how sure, when and where. Each has its events on a time line.
    It also shows what the raw stamps alone would have said. It needs no network.

    QUERY is a file, or the text itself if it starts with PATTERN.
    """
    started = time.monotonic()
    from uncertain_cep.cli.match import choose_engine, inputs_of, with_controls
    from uncertain_cep.cli.outputs import result_written_aside
    from uncertain_cep.optimizer.memory import keep_on_disk

    check_output_place(out, inputs_of((query,) if query_file(query) else (), traces, columns))
    keep_on_disk()
    parsed, options = read_query(query, parameters, columns.zone), replace(options, tick=columns.tick)
    parsed = with_controls(parsed, min_confidence, top)
    chosen, reason = choose_engine(engine, traces, master)
    note(f"engine: {'Spark' if chosen == 'spark' else 'in process'} ({reason})")
    on_spark = None if chosen == "local" else master or "local[*]"
    with result_written_aside(Path(out), overwrite=overwrite) as aside:
        count, said = write_report(parsed, traces, columns, options, aside, title, on_spark)
    for warning in said:
        note(f"warning: {warning}")
    matches = counted(count, "match", "matches")
    note(f"{matches} in {time.monotonic() - started:.1f} s, shown in {Path(out).resolve()}")


def write_report(
    query: Query,
    traces: Sequence[str],
    columns: TraceOptions,
    options: MatchOptions,
    path: Path,
    title: str | None = None,
    master: str | None = None,
    calibration: Calibration | None = None,
) -> tuple[int, list[str]]:
    """Write the page of a query over files; return how many matches there are, and what was warned of.

    ``master`` is None for the in-process engine; ``calibration`` says how often the answers happened.
    """
    from uncertain_cep.reporting.facts import report_facts
    from uncertain_cep.reporting.gathered import ReportRequest
    from uncertain_cep.reporting.lines_of_events import lines_of_events
    from uncertain_cep.reporting.page import page_of
    from uncertain_cep.traces.raw_stamps import rules_of

    rules = rules_of(columns.schema)
    request = ReportRequest(query, options, None, rules, title, calibration=calibration)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UncertainCepWarning)
        if master is None:
            request, answer = _in_process(request, traces, columns, caught)
        else:
            request, answer = _on_spark(request, traces, columns, caught, master)
    ids, drawn = answer.table.column(answer.plan.names.id), [pictures for _, _, pictures in answer.parts]
    answer = replace(answer, lines=lines_of_events(ids, drawn, traces, columns.schema, columns.format))
    facts = report_facts(request, answer)
    path.write_text(page_of(facts), encoding="utf-8")
    return facts["totals"]["matches"], _said(caught)


def _said(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return the warnings, each once."""
    return list(dict.fromkeys(str(one.message) for one in caught))


def _in_process(
    request: ReportRequest,
    traces: Sequence[str],
    columns: TraceOptions,
    caught: Sequence[warnings.WarningMessage],
) -> tuple[ReportRequest, Answer]:
    from uncertain_cep.cli.execution import plan_of
    from uncertain_cep.reporting.gathered import gathered
    from uncertain_cep.running.resource_limits import looked_at
    from uncertain_cep.traces.raw_stamps import with_raw_stamps
    from uncertain_cep.traces.reading import load_traces

    request = replace(request, options=replace(request.options, takes_spans=True))
    with working("reading"):
        loaded = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick)
        if loaded.table is None or loaded.faults:
            raise TraceError(loaded.faults)
        loaded.warn()
        plan_of(request.query, loaded, loaded.table, request.options)
        table, stamp = with_raw_stamps(loaded, traces, columns.schema, columns.format)
    announced_kernels()
    request = replace(request, stamp=stamp, warnings=_said(caught))
    with working("matching"), looked_at(request.options.limit):
        return request, gathered(request, table)


def _on_spark(
    request: ReportRequest,
    traces: Sequence[str],
    columns: TraceOptions,
    caught: Sequence[warnings.WarningMessage],
    master: str,
) -> tuple[ReportRequest, Answer]:
    from uncertain_cep.cli.execution import check_for_spark, warn_of_keys_on_spark
    from uncertain_cep.cli.spark_sessions import session_with_kernels
    from uncertain_cep.spark.dataframes import noted_stamp
    from uncertain_cep.spark.jobs import stopped_in_time, tasks_told
    from uncertain_cep.spark.reading import used_of_traces
    from uncertain_cep.spark.reported import gathered_on_spark

    check_for_spark(request.options, master)

    def tell(done: int, parts: int) -> None:
        update(f"matching on Spark: {done:,} of {counted(parts, 'task')} done")

    with (
        session_with_kernels(master) as spark,
        working("matching on Spark") as update,
        tasks_told(spark, tell),
        stopped_in_time(spark, request.options.limit),
    ):
        events = used_of_traces(
            spark, traces, columns.schema, columns.tick, None, columns.format, raw_stamps=True
        )
        warn_of_keys_on_spark(request.query, events, request.options)
        request = replace(request, stamp=noted_stamp(events), warnings=_said(caught))
        return request, gathered_on_spark(request, events)
