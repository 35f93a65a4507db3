"""Commands whose help groups their options and ends with examples, and which take defaults from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click
from click.core import ParameterSource

from uncertain_cep.cli.data_defaults import defaults_beside

__all__ = ["EXAMPLES", "HelpfulCommand"]

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "How traces are read": (
        *("input_format", "schema", "type", "type_column", "id", "time", "unit", "tick", "uncertainty"),
        *("zone", "missing"),
    ),
    "How it is evaluated": (
        "evaluation", "planner", "latency_weight", "sources", "known_until", "threads",
    ),
    "What it may take": ("time_limit", "memory_limit", "max_matches"),
    "Where it runs": ("engine", "master"),
}  # fmt: skip
"""Headings, and the options that stand below each; all others come before."""

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "match": (
        "uncertain-cep match query.sase trace.csv --schema schema.toml -o matches.parquet",
        "uncertain-cep match 'PATTERN SEQ(Start s, Peak p) WHERE [host] WITHIN 5 min' t.parquet --top 20",
    ),
    "report": (
        "uncertain-cep report query.sase trace.csv --schema schema.toml -o page.html",
        "uncertain-cep report query.sase logs/ --schema schema.toml --min-confidence 0.5 -o page.html",
    ),
    "stream": (
        "uncertain-cep stream query.sase --source incoming --schema schema.toml -o matches",
        "uncertain-cep stream query.sase --source kafka://localhost:9092/events --schema schema.toml "
        "--checkpoint state -o matches",
    ),
    "explain": (
        "uncertain-cep explain query.sase",
        "uncertain-cep explain query.sase trace.csv --schema schema.toml --analyze",
    ),
    "why-not": (
        "uncertain-cep why-not query.sase trace.parquet --where a=17",
        "uncertain-cep why-not query.sase trace.parquet --where a=17 --where b=18 --misses 5",
    ),
    "decide": (
        "uncertain-cep decide query.sase trace.parquet",
        "uncertain-cep decide query.sase trace.csv --schema schema.toml --by source",
    ),
    "order": (
        "uncertain-cep order trace.parquet --by host",
        "uncertain-cep order trace.csv --schema schema.toml --pairs cover",
    ),
    "join": (
        "uncertain-cep join tasks.parquet load.parquet --on host --when during",
        "uncertain-cep join trace.csv trace.csv --left-type TaskStart --right-type Cpu --asof backward",
    ),
    "init": ("uncertain-cep init app.log", "uncertain-cep init logs/ metrics.csv -o setup"),
    "validate": (
        "uncertain-cep validate trace.csv --schema schema.toml",
        "uncertain-cep validate trace.parquet --query query.sase",
    ),
    "infer-offsets": (
        "uncertain-cep infer-offsets trace.csv --schema schema.toml",
        "uncertain-cep infer-offsets trace.csv --schema schema.toml -o offsets.csv",
    ),
    "rules test": ("uncertain-cep rules test rules/", "uncertain-cep rules test rules/logins.toml"),
}
"""The examples of each command that reads traces, by its name behind the program's."""


class HelpfulCommand(click.Command):
    """A command with grouped options and examples, whose options have defaults beside the traces."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, again with the defaults of the file beside the traces if there is one."""
        left = super().parse_args(ctx, list(args))
        if ctx.resilient_parsing:
            return left
        named = {name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
        ctx.default_map = defaults_beside(ctx.params.get("traces") or (), frozenset(ctx.params), named)
        if not ctx.default_map:
            return left
        ctx.params.clear()
        return super().parse_args(ctx, list(args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each group below its heading."""
        heading_of = {name: heading for heading, names in _GROUPS.items() for name in names}
        records: dict[str, list[tuple[str, str]]] = {"Options": [], **{heading: [] for heading in _GROUPS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                name = parameter.name if isinstance(parameter, click.Option) else None
                records[heading_of.get(name or "", "Options")].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if examples := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        super().format_epilog(ctx, formatter)
