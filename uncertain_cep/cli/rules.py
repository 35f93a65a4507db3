"""``uncertain-cep rules``: the tests of rules; and the alerts of rules, for ``uncertain-cep match``."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from uncertain_cep.cli.arguments import TraceOptions, schema_options, table_format
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import announced_kernels, note, of_ticks, working
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.rule_sets.named_rules import Rules

__all__ = ["alerts_of_rules", "are_rules", "rules", "rules_and_traces", "shared_by_rules"]

_ENDINGS: Final = (".toml", ".yml", ".yaml")
"""Of the names of files that hold rules, and no single query."""


def are_rules(query: str) -> bool:
    """Return whether an argument in the place of a query names rules: a folder, a TOML or YAML file."""
    return os.path.isdir(query) or query.lower().endswith(_ENDINGS)


def rules_and_traces(query: str, arguments: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """Return the rules and the traces of a command line whose first argument names rules.

    Files of rules may follow it, as a shell writes ``rules/*.yml``; the first other one begins the traces.
    """
    count = 0
    while count < len(arguments) and arguments[count].lower().endswith(_ENDINGS):
        count += 1
    return [query, *arguments[:count]], arguments[count:]


@click.group()
def rules() -> None:
    """Work with rules: queries with names and notes, in files."""


@rules.command("test", cls=HelpfulCommand)
@click.argument("sources", nargs=-1, required=True, metavar="RULES...")
@schema_options
@click.pass_context
def test_rules(context: click.Context, sources: tuple[str, ...], columns: TraceOptions) -> None:
    """Run the tests of RULES (files, folders or patterns) and show which fail.

    A test is a table [[rule.tests]] of a TOML file: events, and the alerts expected of them. The exit code is
    1 if a test fails, or if there is none.
    """
    from uncertain_cep.plurals import counted
    from uncertain_cep.rule_sets.checked_rules import checked_tests
    from uncertain_cep.rule_sets.rule_files import rules as read_rules

    without_pandas()
    named = read_rules(sources)
    tests = failed = 0
    for one in checked_tests(named, columns.schema, columns.tick):
        tests, failed = tests + 1, failed + bool(one.fault)
        click.echo(f"{'FAILED' if one.fault else 'ok':6} {one.rule}: {one.test}")
        if one.fault:
            click.echo(f"  {one.fault}")
    bare = [rule.name for rule in named if not rule.tests]
    if bare:
        note(f"without a test: {', '.join(bare)}")
    note(f"{counted(tests, 'test')} of {counted(len(named), 'rule')}, {failed:,} failed")
    if failed or not tests:
        context.exit(1)


def alerts_of_rules(
    sources: list[str],
    traces: tuple[str, ...],
    columns: TraceOptions,
    options: MatchOptions,
    out: str | None,
    overwrite: bool,
    master: str | None = None,
) -> None:
    """Write the alerts of rules on traces, which are read once, as one table; ``master`` is that of Spark."""
    from uncertain_cep.cli.batch_writers import write_table
    from uncertain_cep.cli.outputs import check_replaceable
    from uncertain_cep.plurals import counted
    from uncertain_cep.rule_sets.rule_files import rules as read_rules

    if not traces:
        raise OptionError("there is no trace: name one or more files behind the rules")
    format_name = table_format(out)
    if out is not None:
        check_replaceable(Path(out), overwrite)
    named = read_rules(sources)
    if master is None:
        alerts = _alerts_in_process(named, traces, columns, options)
    else:
        alerts = _alerts_on_spark(named, traces, columns, options, master)
    write_table(alerts, out, format_name, overwrite=overwrite)
    numbers = Counter(alerts.column("rule").to_pylist())
    by_rule = ", ".join(f"{name} {numbers[name]:,}" for name in named.names if numbers[name])
    note(f"{counted(alerts.num_rows, 'alert')} of {counted(len(named), 'rule')}: {by_rule or 'none'}")


def _alerts_in_process(
    named: Rules, traces: tuple[str, ...], columns: TraceOptions, options: MatchOptions
) -> pa.Table:
    from uncertain_cep.plurals import counted
    from uncertain_cep.rule_sets.rule_matching import answers_of, in_one_table
    from uncertain_cep.traces.reading import load_traces

    without_pandas()
    with working("reading"):
        loaded = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick)
        events = loaded.sound()
        announced_kernels()
    note(f"read {counted(events.num_rows, 'event')}{of_ticks(loaded.tick, loaded.floored)}")
    with working("matching"):
        return in_one_table(answers_of(events, named, options))


def _alerts_on_spark(
    named: Rules, traces: tuple[str, ...], columns: TraceOptions, options: MatchOptions, master: str
) -> pa.Table:
    """Return the alerts, in the order of the rules; this process holds them all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from uncertain_cep.cli.execution import check_for_spark
    from uncertain_cep.cli.spark_sessions import session_with_kernels

    check_for_spark(options, master)
    with session_with_kernels(master) as spark, working("matching on Spark"):
        from uncertain_cep.spark import worker_errors
        from uncertain_cep.spark.jobs import stopped_in_time
        from uncertain_cep.spark.reading import used_of_traces
        from uncertain_cep.spark.rule_frames import alerts_frame

        with stopped_in_time(spark, options.limit), worker_errors():
            events = used_of_traces(spark, traces, columns.schema, columns.tick, None, columns.format)
            alerts: pa.Table = alerts_frame(events, named, options).toArrow()
    place = pc.index_in(alerts.column("rule"), pa.array(named.names))
    return alerts.take(pc.sort_indices(place))


def shared_by_rules(
    sources: list[str],
    traces: tuple[str, ...],
    columns: TraceOptions,
    options: MatchOptions,
    *,
    analyze: bool,
    as_json: bool,
) -> str:
    """Explain what rules share on traces."""
    from uncertain_cep.api import explained
    from uncertain_cep.rule_sets.rule_files import rules as read_rules
    from uncertain_cep.traces.reading import load_traces

    named = read_rules(sources)
    events = None
    if traces:
        loaded = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick)
        events, options = loaded.sound(), replace(options, tick=columns.tick)
    return explained(named, events, options, analyze=analyze, format="json" if as_json else "text")
