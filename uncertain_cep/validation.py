"""Whether traces can be read, and a query be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.candidates.diagnostics import EMPTY_TRACE, Diagnostics
from uncertain_cep.candidates.sequenced import order_faults
from uncertain_cep.candidates.span_times import faults_of_spans
from uncertain_cep.errors import OptionError, TraceFault, UncertainCepError, warn
from uncertain_cep.executor import candidates
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.clock_columns import warn_of_idle_columns
from uncertain_cep.plan.lacking_keys import warn_of_lacking_keys
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.rule_sets.events_by_type import EventsByType
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.rule_sets.rule_matching import plans_of, warn_of_types
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.lasting_columns import has_spans
from uncertain_cep.traces.frames import library_of
from uncertain_cep.traces.reading import GivenSchema, LoadedTrace, load_frame, load_traces
from uncertain_cep.traces.short_spans import warn_of_short_spans
from uncertain_cep.traces.source_order import warn_of_clocks_set_back
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["Validation", "validate", "validated"]


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of a check of events.

    ``candidates`` says in one line how many events each variable of the query can be; None without a query or
    with faults.
    """

    report: LoadedTrace
    candidates: str | None


@public
def validate(
    paths_or_frame: Any,
    schema: GivenSchema = None,
    *,
    query: Query | str | Rules | None = None,
    format: str | None = None,
    tick: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> list[TraceFault]:
    """Return every fault of a trace.

    Parameters
    ----------
    paths_or_frame : path, sequence of paths, or frame
        Files or folders, as for :func:`uncertain_cep.read_traces`; or a pyarrow, pandas or Polars frame with
        the columns of the model, as for :func:`uncertain_cep.match`.
    schema : path, TraceSchema or None
        As for :func:`uncertain_cep.read_traces`. Only for files.
    query : Query, str or Rules, optional
        Also check that this query, or each of these rules, can be asked of the events. An id then has to be
        unique only among the events that have the same values of those attributes that the query equates
        across its variables.
    format : str, optional
        As for :func:`uncertain_cep.read_traces`. Only for files.
    tick : str, optional
        Length of a tick. Default: what the schema or the events say, else 1us.
    parameters : mapping, optional
        The values of the query's parameters, as for :func:`uncertain_cep.match`.

    Returns
    -------
    list of TraceFault
        Empty for a sound trace; whatever `match` refuses in a trace is among them. Of rows with the same
        fault the first are listed and the others counted. Where other faults keep the query from being
        planned, ids are not checked.

    Raises
    ------
    QuerySyntaxError, QueryError
        If the query cannot be read, or not be answered on the columns of a trace without faults: all faults
        of all rules at once.
    TraceError
        If there are mistakes in the schema file.
    OptionError
        If an option has no such value, or is not for frames.

    Warns
    -----
    UncertainCepWarning
        As `read_traces` and `match`: of ticks that take the order from certain times, columns of clocks that
        say nothing, an empty trace, and, with a query, types that no event has and variables that no event
        can be. Besides, of clocks that were set back: whose stamps contradict the sequences of their events;
        and of events that last and may be shorter than the unit of their stamps.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> import pyarrow as pa
    >>> events = pa.table({"type": ["A", "B"], "id": [1, 1], "lower": [1, 5], "upper": [3, 4]})
    >>> for fault in uc.validate(events):
    ...     print(fault)
    row 2, column 'lower', value 5: the interval ends before it begins: upper is 4
    row 2, column 'id', value 1: an earlier event has this id: give each event one of its own
    """
    if isinstance(query, Rules):
        if parameters:
            raise OptionError("parameters= is for one query: a rule brings the values of its own")
        return list(validated(paths_or_frame, schema, query, format, tick).report.faults)
    parsed = None if query is None else query_of(query, values_of(parameters))
    return list(validated(paths_or_frame, schema, parsed, format, tick).report.faults)


def validated(
    paths_or_frame: Any,
    schema: GivenSchema,
    parsed: Query | Rules | None,
    format: str | None,
    tick: str | None,
) -> Validation:
    """Check a trace and return everything found; see `validate`."""
    loaded = _loaded(paths_or_frame, schema, format, tick)
    plans = [] if parsed is None else _planned(parsed, loaded, tick)
    # Without a plan it is not known what the query splits by, and in the whole trace an id may be used twice.
    partitions = [()] if parsed is None else dict.fromkeys(plan.partition_attributes for plan in plans)
    repeated_ids = [loaded.with_checked_ids(attributes).faults for attributes in partitions]
    faults_of_all = dict.fromkeys(fault for faults in [loaded.faults, *repeated_ids] for fault in faults)
    report = replace(loaded, faults=tuple(faults_of_all))
    columns = [] if loaded.table is None or report.faults else loaded.table.column_names
    if loaded.table is not None and has_spans(columns):
        # They have no known order yet.
        lasting = with_all_bounds(loaded.table, Names().lower)
        faults = faults_of_spans(_plan_of_any(lasting, tick), lasting)
        report = replace(report, faults=tuple(report.origin.placed(fault) for fault in faults))
    elif loaded.table is not None and Names().name_clocks(columns):
        report = _with_order_faults(report, loaded.table, tick)
    report.warn()
    if report.faults or loaded.table is None:
        return Validation(report, None)
    warn_of_short_spans(loaded.table, Names())
    if parsed is None:
        warn_of_idle_columns(loaded.table.schema, MatchOptions())
        if not report.events:
            warn(EMPTY_TRACE)
        return Validation(report, None)
    if isinstance(parsed, Rules):
        return Validation(report, f"{counted(len(parsed), 'rule')} can be asked")
    (plan,) = plans
    diagnostics = Diagnostics()
    diagnostics.about(plan)
    for branch in plan.or_free:
        candidates(branch, with_all_bounds(loaded.table, Names().lower), diagnostics)
    return Validation(report, diagnostics.summary())


def _with_order_faults(report: LoadedTrace, table: pa.Table, tick: str | None) -> LoadedTrace:
    """Return a trace with the faults of ordered sources; warn of clocks that were set back."""
    plan = _plan_of_any(table, tick)
    faults = tuple(report.origin.placed(fault) for fault in order_faults(plan, table))
    if not faults:
        warn_of_clocks_set_back(table, plan.names, plan.domain)
    return replace(report, faults=faults)


def _plan_of_any(table: pa.Table, tick: str | None) -> EvaluationPlan:
    """Return the plan of a query for any event."""
    domain = TimeDomain.of(table.schema, tick=tick)
    any_event = f"PATTERN SEQ(ANY e) WITHIN {'1' if domain.tick_nanoseconds is None else domain.describe()}"
    return make_plan(query_of(any_event, ()), table.schema, tick=tick, takes_spans=True)


def _loaded(source: Any, schema: GivenSchema, format: str | None, tick: str | None) -> LoadedTrace:
    if isinstance(source, str | Path) or (
        isinstance(source, list | tuple) and all(isinstance(one, str | Path) for one in source)
    ):
        return load_traces(source, schema, format=format, tick=tick)
    if library_of(source) == "pyspark":
        raise OptionError(
            "validate reads frames in this process: a Spark frame is checked when it is matched, or give the "
            "files it is made of"
        )
    for name, value in (("schema", schema), ("format", format)):
        if value is not None:
            raise OptionError(
                f"{name}= says how files are read, and a frame was given: leave it out, or give the files"
            )
    return load_frame(source, tick=tick)


def _planned(query: Query | Rules, loaded: LoadedTrace, tick: str | None) -> list[EvaluationPlan]:
    """Return the plan of a query on events, or those of rules; none if faults of the events forbid it."""
    if loaded.table is None:
        return []
    try:
        with naming_spoiled_rows(loaded.table, loaded.origin.placed):
            table = with_all_bounds(loaded.table, Names().lower)
            if isinstance(query, Rules):
                options = MatchOptions(tick=tick, takes_spans=True)
                planned = plans_of(query, table.schema, options)
                warn_of_types(planned, EventsByType(table, options.names.type).types, table.num_rows)
                return [one.plan for one in planned]
            plan = make_plan(query, table.schema, tick=tick, takes_spans=True)
    except UncertainCepError:
        if loaded.faults:
            return []
        raise
    warn_of_lacking_keys(plan, loaded.files_without)
    return [plan]
