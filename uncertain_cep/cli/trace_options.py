"""The options that say what the columns of a trace are and how uncertain its times are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from uncertain_cep.errors import OptionError

if TYPE_CHECKING:
    from uncertain_cep.traces import TraceSchema

__all__ = ["TraceOptions", "schema_options"]

ResultT = TypeVar("ResultT")

_OPTIONS: Final = (
    click.option("--schema", metavar="FILE", help="A schema file (TOML); instead of the options below."),
    click.option("--type", "type_name", metavar="T", help="The type of all events."),
    click.option("--type-column", metavar="COL", help="The column of the types."),
    click.option("--id", "id_column", metavar="COL", help="The column of the ids. Default: running numbers."),
    click.option("--time", metavar="COL", help="The column of the stamps."),
    click.option("--unit", metavar="U", help="The unit of numeric stamps: s, ms, us, ns, or tick."),
    click.option("--tick", metavar="D", help="The length of a tick, such as 100ms."),
    click.option(
        "--uncertainty",
        metavar="RULE",
        help="exact, plus_minus:500ms, granularity:1min, window:15s, columns:LOWER,UPPER, histogram:PMF "
        "or clock_offset:TABLE:COL.",
    ),
    click.option("--where", metavar="CONDITION", help="Only rows whose columns meet it."),
    click.option("--missing", type=click.Choice(["error", "drop"]), help="Rows without a time; error."),
)


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What the options say.

    Attributes
    ----------
    schema : TraceSchema or None
        None: the columns are type, id, lower and upper as they stand.
    tick : str or None
        The tick, where there is no schema that tells it.
    """

    schema: TraceSchema | None
    tick: str | None


def schema_options(command: Callable[..., ResultT]) -> Callable[..., ResultT]:
    """Add the options to a command, which gets what they say as ``columns``."""

    @functools.wraps(command)
    def with_schema(
        *arguments: Any,
        schema: str | None,
        type_name: str | None,
        id_column: str | None,
        tick: str | None,
        type_column: str | None,
        time: str | None,
        unit: str | None,
        uncertainty: str | None,
        where: str | None,
        missing: str | None,
        **options: Any,
    ) -> ResultT:
        flags = {"type": type_name, "type_column": type_column, "id": id_column, "time": time, "unit": unit,
                 "uncertainty": uncertainty, "where": where, "missing": missing}  # fmt: skip
        given = {name: value for name, value in flags.items() if value is not None}
        return command(*arguments, columns=_trace_options(schema, given, tick), **options)

    decorated: Callable[..., ResultT] = with_schema
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _trace_options(file: str | None, flags: dict[str, str], tick: str | None) -> TraceOptions:
    from uncertain_cep.traces import TraceSchema, load_schema

    if file is not None:
        if flags or tick is not None:
            flag = next(iter(flags), "tick").replace("_", "-")
            raise OptionError(f"--{flag} and --schema exclude each other: write it into the schema file")
        return TraceOptions(load_schema(file), None)
    if not flags:
        return TraceOptions(None, tick)
    if "uncertainty" not in flags:
        raise OptionError(
            "say how uncertain the times are: --uncertainty plus_minus:500ms, granularity:1min, window:15s, "
            "columns:LOWER,UPPER, ..., or --uncertainty exact"
        )
    return TraceOptions(TraceSchema.from_flags(tick=tick, **flags), None)
