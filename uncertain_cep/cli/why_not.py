"""``uncertain-cep why-not``: why certain events are no match, and the nearest misses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from uncertain_cep.cli.arguments import (
    TraceOptions,
    limit_options,
    parameter_option,
    query_argument,
    read_query,
    schema_options_but_where,
    traces_argument,
)
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import announced_kernels, show, working
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from uncertain_cep.plan import MatchOptions

__all__ = ["ids_of_text", "why_not"]


@click.command("why-not", cls=HelpfulCommand)
@query_argument
@traces_argument()
@click.option(
    "--where",
    "named",
    multiple=True,
    metavar="NAME=ID",
    help="The event of a variable: a=17, or c=[1,2] for a list; b=null for a variable that is left "
    "out; k=v for a partition attribute. May be given several times.",
)
@click.option(
    "--misses", type=click.IntRange(1), default=3, show_default=True, help="The number of misses to show."
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object instead of text.")
@parameter_option
@limit_options
@schema_options_but_where
def why_not(
    query: str,
    traces: tuple[str, ...],
    columns: TraceOptions,
    named: tuple[str, ...],
    misses: int,
    as_json: bool,
    parameters: dict[str, str],
    options: MatchOptions,
) -> None:
    """Say why no match of QUERY has certain events, by how much it is missed, and the nearest misses.

    If there is such a match, the exit code is 1, and the message shows it. QUERY is a file, or the text
    itself if it starts with PATTERN.
    """
    from uncertain_cep.cli.execution import plan_of
    from uncertain_cep.misses import answered
    from uncertain_cep.traces.reading import load_traces

    without_pandas()
    parsed, options = read_query(query, parameters, columns.zone), replace(options, tick=columns.tick)
    with working("reading"):
        loaded = load_traces(traces, columns.schema, format=columns.format, tick=columns.tick)
        table = loaded.sound()
    plan = plan_of(parsed, loaded, table, options)
    ids = ids_of_text(named, plan.names.id, table.schema)
    announced_kernels()
    with working("looking"):
        answer = answered(table, parsed, options, ids, misses)
    show(answer.to_json() if as_json else str(answer))


def ids_of_text(named: Sequence[str], id_column: str, schema: pa.Schema) -> dict[str, Any]:
    """Return the ids that ``NAME=ID`` texts name, of the type of their column.

    Raises
    ------
    OptionError
        If a text has no name, a name comes twice, or a value is none of its column.
    """
    import pyarrow as pa

    ids: dict[str, Any] = {}
    for text in named:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name:
            raise OptionError(f"--where {text!r}: write NAME=ID, such as --where a=17")
        if name in ids:
            raise OptionError(f"--where names {name} twice")
        column = id_column if name not in schema.names or name == id_column else name
        dtype = schema.field(column).type
        try:
            ids[name] = _value(value, dtype.value_type if pa.types.is_dictionary(dtype) else dtype)
        except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise OptionError(f"--where {text!r}: the column {column} is of type {dtype}") from None
    return ids


def _value(text: str, dtype: pa.DataType) -> Any:
    """Return a value of a type, a list of such, or None, from text."""
    import pyarrow as pa

    if text == "null":
        return None
    if text.startswith("[") and text.endswith("]"):
        items = json.loads(text) if not pa.types.is_integer(dtype) else text[1:-1].split(",")
        return [_value(str(item).strip(), dtype) for item in items if str(item).strip()]
    return pa.scalar(text, pa.string()).cast(dtype).as_py()
