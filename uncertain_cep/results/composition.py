"""The matches of one query as events of the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.plan import COMPRESSED_COLUMNS, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.table_faults import model_faults
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.query.typed import kind_of
from uncertain_cep.results.match_times import match_times
from uncertain_cep.timeline.domain import TICK_METADATA, Names, tick_column, with_noted_tick
from uncertain_cep.timeline.durations import Duration, format_duration, parse_duration
from uncertain_cep.traces.frames import as_arrow, library_of, like

__all__ = ["to_events", "with_matches"]

FrameT = TypeVar("FrameT")

_RANGE: Final = ("range_lower", "range_upper")


@public
def to_events(
    matches: FrameT,
    type: str,
    *,
    id: str | None = None,
    first_id: int = 1,
    prefix: str | None = None,
    tick: str | None = None,
    names: Names | Mapping[str, str] | None = None,
) -> FrameT:
    """Return matches as events, whose intervals are the matches' time ranges.

    Parameters
    ----------
    matches : pyarrow.Table, pandas or Polars DataFrame
        What :func:`uncertain_cep.match` returned.
    type : str
        The type of all these events.
    id : str, optional
        Column that holds their ids. Default: the number of the row.
    first_id : int
        The number of the first row.
    prefix : str, optional
        Make the ids text: this and the number, for traces whose ids are text.
    tick : str, optional
        Length of a tick, such as ``"100ms"``, of the events that were matched, for the column ``tick``.
    names : Names or mapping, optional
        Other names for the columns ``type``, ``id``, ``lower``, ``upper`` and ``tick`` of the result.

    Returns
    -------
    the same kind of frame
        ``type``, ``id``, ``lower``, ``upper`` and, as attributes, all other columns: partition attributes,
        the ids of the events, RETURN expressions, ``confidence``.

    Raises
    ------
    OptionError
        If the columns of a match are missing, or two columns would have one name.

    Notes
    -----
    A new event is taken to have happened for certain, at any tick of its range with the same probability,
    and independently of other events; the range says no more. Choose the matches by HAVING, or by
    ``e.confidence`` in the next query, or use :func:`with_matches`, which hands the confidence on. Two
    matches that share an event are two events.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> matches = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 4")
    >>> uc.to_events(matches, "AB").select(["type", "id", "lower", "upper"]).to_pylist()
    [{'type': 'AB', 'id': 1, 'lower': 1, 'upper': 4}]
    """
    table = _matches(matches)
    model = Names.of(names)
    wanted = [*_RANGE, *([] if id is None else [id])]
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise OptionError(
            f"the matches have no column {missing[0]}: they have {', '.join(table.column_names)}"
        )
    if id is None:
        numbers = pa.array(range(first_id, first_id + table.num_rows), pa.int64())
        ids: Any = numbers
        if prefix is not None:
            ids = pc.binary_join_element_wise(prefix, numbers.cast(pa.string()), "")
    else:
        ids = table.column(id)
    columns: dict[str, Any] = {
        model.type: pa.array([type] * table.num_rows, pa.string()),
        model.id: ids,
        model.lower: table.column(_RANGE[0]),
        model.upper: table.column(_RANGE[1]),
    }
    if tick is not None:
        tick = format_duration(parse_duration(tick, what="tick"))
        columns[model.tick] = tick_column(tick, table.num_rows)
    for name in table.column_names:
        if name in _RANGE or (name == id == model.id):
            continue
        if name in columns or name in (model.pmf, model.tick, model.probability):
            raise OptionError(
                f"the matches have an attribute {name}, which is a column of the model: return it by another "
                "name with AS, or map the model's columns with names="
            )
        columns[name] = table.column(name)
    made = pa.table(columns)
    if tick is not None:
        made = made.replace_schema_metadata({TICK_METADATA: tick.encode()})
    result: FrameT = like(made, matches)
    return result


@public
def with_matches(
    events: FrameT,
    matches: Any,
    type: str,
    *,
    names: Names | Mapping[str, str] | None = None,
    at: str = "range",
    query: Query | str | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> FrameT:
    """Return the events of a trace and, as further events, the matches found in it.

    A new event happened with the confidence of its match: that is its ``probability``.

    Parameters
    ----------
    events : pyarrow.Table, pandas or Polars DataFrame
        A trace, as for :func:`uncertain_cep.match`.
    matches : pyarrow.Table, pandas or Polars DataFrame
        Matches in it.
    type : str
        The type of the new events; none of the trace's may have it.
    names : Names or mapping, optional
        Other names of the trace's columns.
    at : str
        When a new event happened. ``range``: at any tick of the match's time range, with the same
        probability. ``last``, ``first``, or a variable of one event: at that time of the match, whose exact
        distribution, given the match, becomes the ``pmf`` of the new event. Of one that lasts name
        ``v.begin`` or ``v.end``.
    query : Query or str, optional
        What was matched; ``at`` needs it, unless it is ``range``.
    tick, parameters
        As they were for :func:`uncertain_cep.match`; only with ``query``.

    Returns
    -------
    the same kind of frame as the events
        Attributes that one of the two lacks are null. Ids of the new events are numbers above the trace's, or
        text such as ``"Overload:1"`` if those are text.

    Raises
    ------
    OptionError
        If the trace has events of the type, or the two have an attribute of different kinds; if ``at`` names
        no time of every match, or one of more than 100,000 ticks.
    QuerySyntaxError, QueryError, TraceError, ConfidenceCostError
        With ``query``, as of :func:`uncertain_cep.posteriors`.

    Notes
    -----
    A new event is taken to be independent of all others. Of one match confidence and time are exact then.
    But matches that share an event, or that one event can spoil, depend on each other, and on these events:
    a pattern that puts them together gets the confidence that it would have if they did not. Matches
    without confidences become events that happened for certain. A match that ``known_until`` left out as
    undecided is no event: a later query, such as one that negates ``type``, takes it not to have happened.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> both = uc.with_matches(events, uc.match(events, query), "AB", at="last", query=query)
    >>> both["type"].to_pylist(), both["id"].to_pylist()
    (['A', 'B', 'AB'], [7, 8, 9])
    >>> both.slice(2).select(["lower", "upper", "probability", "pmf"]).to_pylist()
    [{'lower': 3, 'upper': 4, 'probability': 0.625, 'pmf': [0.4, 0.6]}]
    """
    table = as_arrow(events)
    model = Names.of(names)
    for name in (model.type, model.id, model.lower, model.upper):
        if name not in table.column_names:
            raise OptionError(f"the events have no column {name}: they have {', '.join(table.column_names)}")
    if pc.any(pc.equal(table.column(model.type).cast(pa.string()), pa.scalar(type, pa.string()))).as_py():
        raise OptionError(f"the trace has events of type {type} already: give those of the matches another")
    table = with_noted_tick(table, model)
    noted = (table.schema.metadata or {}).get(TICK_METADATA)
    options: dict[str, Any] = {"names": model, "tick": None if noted is None else noted.decode()}
    ids = table.column(model.id)
    if pa.types.is_integer(ids.type):
        options["first_id"] = max(pc.max(ids).as_py() or 0, 0) + 1
    else:
        options["prefix"] = f"{type}:"
    held = _matches(matches)
    made = to_events(held, type, **options)
    if model.probability in table.column_names:
        table = _with_column(table, model.probability, table.column(model.probability).cast(pa.float64()))
    if "confidence" in held.column_names:
        made = _with_column(made, model.probability, held.column("confidence").cast(pa.float64()))
    if not isinstance(at, str):
        raise OptionError(f"at={at!r}: it is range, first, last, or a variable of the query")
    if at != "range":
        if query is None:
            raise OptionError(f'at={at!r}: give the query of the matches, query="PATTERN ..."')
        made = _at(
            made,
            table,
            held,
            at,
            query_of(query, values_of(parameters)),
            MatchOptions(names=model, tick=tick),
        )
    if model.tick not in table.column_names and noted is not None:
        table = table.append_column(model.tick, tick_column(noted.decode(), table.num_rows))
    for name in made.column_names:
        if name in table.column_names:
            place = made.schema.get_field_index(name)
            made = made.set_column(place, name, _as(made.column(name), table.schema.field(name)))
    joined = pa.concat_tables([table, made], promote_options="default")
    result: FrameT = like(joined.replace_schema_metadata(table.schema.metadata), events)
    return result


def _at(
    made: pa.Table, table: pa.Table, matches: pa.Table, at: str, query: Query, options: MatchOptions
) -> pa.Table:
    """Return new events whose times have the laws of those of their matches."""
    model = options.names
    table = with_all_bounds(table, model.lower)
    plan = make_plan(query, table.schema, replace(options, takes_spans=True))
    if faults := model_faults(plan, table):
        raise TraceError(faults)
    if set(COMPRESSED_COLUMNS) <= set(matches.column_names):
        raise OptionError('a row of kleene="compressed" is many matches: match without it')
    times = match_times(plan, table, matches, at)
    for name, found in ((model.lower, times.lower), (model.upper, times.upper)):
        made = _with_column(made, name, found.cast(table.schema.field(name).type, safe=False))
    if model.pmf not in table.column_names or pa.types.is_null(table.schema.field(model.pmf).type):
        return _with_column(made, model.pmf, times.pmf)
    return _with_column(made, model.pmf, times.pmf.cast(table.schema.field(model.pmf).type))


def _with_column(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return a table with a column in place of one of that name, or behind all."""
    place = table.schema.get_field_index(name)
    return table.append_column(name, column) if place < 0 else table.set_column(place, name, column)


def _matches(frame: Any) -> pa.Table:
    if library_of(frame) == "pyspark":
        raise OptionError("a Spark frame of matches is not supported yet: collect it, with toArrow()")
    return as_arrow(frame)


def _as(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return an attribute of matches as the trace has it."""
    if column.type == field.type:
        return column
    given, wanted = kind_of(column.type), kind_of(field.type)
    if (
        given == "null"
        or wanted == "null"
        or (given is not None and given == wanted)
        or ((given, wanted) == ("int", "float"))
    ):
        try:
            return column if wanted == "null" else column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    raise OptionError(
        f"{field.name} is of type {field.type} in the trace and {column.type} in the matches: return it by "
        "another name with AS, or rename the variable"
    )
