"""The columns of a trace that describe clocks, and those that have no effect."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pyarrow as pa

from uncertain_cep.errors import warn
from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.plurals import listed
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.lasting_columns import SPAN_LAWS, has_spans

__all__ = ["ClockNames", "has_marginals", "idle_columns", "is_listed", "names_clocks", "warn_of_idle_columns"]


class ClockNames(NamedTuple):
    """The columns of clocks that events share; None for each that is not there, or says nothing."""

    source: str | None
    sequence: str | None
    """The column that may tell the order of events of one source."""
    ordered: str | None
    """The column that says that this order tells of the times of events."""

    @classmethod
    def of(cls, names: Names, columns: Collection[str]) -> ClockNames:
        """Return the names among some columns; an order says nothing without sequences."""
        source = names.source if names.source in columns else None
        sequence = names.sequence if source and names.sequence in columns else None
        return cls(source, sequence, names.ordered if sequence and names.ordered in columns else None)


def names_clocks(schema: pa.Schema, options: MatchOptions) -> bool:
    """Return whether events with these columns name clocks that they share."""
    return bool(options.sources) and options.names.name_clocks(schema.names)


def has_marginals(schema: pa.Schema, options: MatchOptions) -> bool:
    """Return whether pmfs are by clocks that are not to move events together."""
    names = options.names
    if options.sources or not {*names.clocks} <= {*schema.names}:
        return False
    pmfs = names.pmf, *(SPAN_LAWS[:2] if has_spans(schema.names) else ())
    bounds = (schema.field(name).type for name in names.clocks[1:])
    # Otherwise they are attributes, which only happen to be called so.
    return any(name in schema.names and is_listed(schema.field(name).type) for name in pmfs) and all(
        pa.types.is_integer(bound_type) or pa.types.is_duration(bound_type) for bound_type in bounds
    )


def is_listed(dtype: pa.DataType) -> bool:
    """Return whether values of a type are lists, as probabilities of ticks are."""
    return bool(
        pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype)
    )


def idle_columns(schema: pa.Schema, options: MatchOptions) -> list[str]:
    """Return the columns that are called, and typed, as what events say of clocks, where they name none."""
    names = options.names
    if not options.sources or names.name_clocks(schema.names):
        return []
    return [
        name for name in names.of_clocks(schema.names) if _is_of_a_clock(schema.field(name).type, name, names)
    ]


def _is_of_a_clock(dtype: pa.DataType, name: str, names: Names) -> bool:
    """Return whether the type of a column is that of what is called so; sources are attributes as well."""
    if name == names.sequence:
        return bool(pa.types.is_integer(dtype))
    if name == names.ordered:
        return bool(pa.types.is_boolean(dtype))
    if name == names.offset_pmf:
        return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))
    return name != names.source and bool(pa.types.is_integer(dtype) or pa.types.is_duration(dtype))


def warn_of_idle_columns(schema: pa.Schema, options: MatchOptions, used: Collection[str] = ()) -> None:
    """Warn of columns that would say something of clocks if another column were there.

    A column that a query has ``used`` is an attribute.
    """
    names = options.names
    idle = [name for name in idle_columns(schema, options) if name not in used]
    if not idle:
        return
    bounds = [name for name in names.clocks[1:] if name not in schema.names]
    if names.source not in schema.names:
        lacking = f"the column {names.source}, which names the log or the clock of each event: add it"
        lacking += " (one name for all events of one log)"
    elif len(bounds) == 1 or names.offset_pmf in idle:
        lacking = f"{listed(bounds)}: add the bounds of the offset of each event's clock"
    else:
        lacking = f"the column {names.sequence}, the place of each event in its source: add it"
    says, them = (
        ("column {} says", "it is an attribute, rename it")
        if len(idle) == 1
        else ("columns {} say", "they are attributes, rename them")
    )
    warn(
        f"the {says.format(listed(idle))} nothing without {lacking}; if {them}, or take all times as "
        "independent, sources=False (--no-sources)"
    )
