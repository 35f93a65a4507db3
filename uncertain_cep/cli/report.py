"""``uncertain-cep report``: the matches of a query as one page to look at."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    evaluation_options,
    out_option,
    overwrite_option,
    parameter_option,
    query_argument,
    query_file,
    read_query,
    schema_options,
    traces_argument,
)
from uncertain_cep.cli.progress import announced_kernels, note, working
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.results.output_place import check_output_place

if TYPE_CHECKING:
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.query import Query

__all__ = ["report", "write_report"]


@click.command()
@query_argument
@traces_argument
@out_option("The page, such as report.html.", required=True)
@overwrite_option
@click.option("--title", metavar="TEXT", help="Default: the comment that the query begins with.")
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
    parameters: dict[str, str],
    options: MatchOptions,
) -> None:
    """Write the matches of QUERY in one or more traces as one page that opens anywhere.

    It shows how many matches there are and how sure, when and where they are, each with its events on a time
    line, and what the raw stamps would have said instead. It needs no network.

    QUERY is a file, or the text itself if it starts with PATTERN.
    """
    started = time.monotonic()
    from uncertain_cep.cli.match import inputs_of
    from uncertain_cep.cli.outputs import result_written_aside
    from uncertain_cep.optimizer.memory import keep_on_disk
    from uncertain_cep.wording import counted

    check_output_place(out, inputs_of((query,) if query_file(query) else (), traces, columns))
    keep_on_disk()
    parsed, options = read_query(query, parameters), replace(options, tick=columns.tick)
    with result_written_aside(Path(out), overwrite=overwrite) as aside:
        count, said = write_report(parsed, traces, columns, options, aside, title)
    for warning in said:
        note(f"warning: {warning}")
    found = counted(count, "match", "matches")
    note(f"{found} in {time.monotonic() - started:.1f} s, shown in {Path(out).resolve()}")


def write_report(
    query: Query,
    traces: Sequence[str],
    columns: TraceOptions,
    options: MatchOptions,
    path: Path,
    title: str | None = None,
) -> tuple[int, list[str]]:
    """Write the page of a query over files; return how many matches there are, and what was warned of."""
    from uncertain_cep.limits import looked_at
    from uncertain_cep.reporting.facts import Asked, report_facts
    from uncertain_cep.reporting.page import page_of
    from uncertain_cep.traces.raw_stamps import rules_of, with_raw_stamps
    from uncertain_cep.traces.reading import load_traces

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UncertainCepWarning)
        with working("reading"):
            loaded = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick)
            if loaded.table is None or loaded.faults:
                raise TraceError(loaded.faults)
            loaded.warn()
            table, stamp = with_raw_stamps(loaded, traces, columns.schema)
        announced_kernels()
        said = list(dict.fromkeys(str(one.message) for one in caught))
        with working("matching"), looked_at(options.limit):
            asked = Asked(table, query, options, stamp, rules_of(columns.schema), title, said)
            facts = report_facts(asked)
    path.write_text(page_of(facts), encoding="utf-8")
    return facts["totals"]["matches"], list(dict.fromkeys(str(one.message) for one in caught))
