"""The answers of all rules of a set: events are read, checked and cut by type once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.kernel import plainly
from uncertain_cep.candidates.diagnostics import EMPTY_TRACE, Diagnostics
from uncertain_cep.candidates.selection import ScanCache
from uncertain_cep.errors import MatchLimitError, OptionError, UncertainCepError, warn
from uncertain_cep.executor import check_table, execute, ticks_of
from uncertain_cep.operators.table import kernels_of
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plurals import counted
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.walks import components_of
from uncertain_cep.results.order import finished
from uncertain_cep.rule_sets.events_by_type import EventsByType, types_of
from uncertain_cep.rule_sets.named_rules import Rule, Rules, of_each_rule
from uncertain_cep.rule_sets.shared_selection import of_some_rule
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED, check_suppression, told_alerts
from uncertain_cep.running.compiling import plain_seconds
from uncertain_cep.running.resource_limits import within
from uncertain_cep.running.threads import side_by_side, threads_or_all
from uncertain_cep.traces.common_types import common_type, is_number
from uncertain_cep.traces.frames import event_table
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = [
    "RULE",
    "PlannedRule",
    "answers_of",
    "common_column",
    "in_one_table",
    "joint_schema",
    "plans_of",
    "rows_of",
    "warn_of_types",
]

Int64 = NDArray[np.int64]

RULE: Final = "rule"
"""The first column of the answers of several rules."""

_ENDING: Final = ("range_lower", "range_upper", "probability", "confidence", SUPPRESSED)
"""Columns that come last, in this order."""

_MOST_NAMED: Final = 5

_ALERTS_AT_ONCE: Final = 1 << 14
"""Rows of a batch: most rules have few alerts, and to write first to larger arrays costs up to 18 ms."""


@dataclass(frozen=True, slots=True)
class PlannedRule:
    """A rule planned for the events of a call."""

    rule: Rule
    plan: EvaluationPlan
    types: frozenset[str] | None
    """The types of the events that matter to it; None: all."""
    apart: int
    """Ticks between alerts that are told; 0 where none are suppressed."""


class _OfRule(Diagnostics):
    """Diagnostics of one rule among others: what all of them look at is told once, and not by each."""

    def look_at(self, events: Any) -> None:
        """Look at nothing: types that no event has are told of all rules together."""

    def counted(self, plan: EvaluationPlan, sizes: Any) -> None:
        """Learn nothing: a rule of which nothing happened is as it should be."""


def plans_of(rules: Iterable[Rule], schema: pa.Schema, options: MatchOptions) -> list[PlannedRule]:
    """Return the rules, each planned for events of a schema.

    Raises
    ------
    QueryError, OptionError
        As :func:`uncertain_cep.rule_sets.named_rules.of_each_rule` and :func:`joint_schema`.
    """
    if options.parameters:
        raise OptionError("parameters= is for one query: a rule brings the values of its own")

    def planned_rule(rule: Rule) -> PlannedRule:
        plan = make_plan(rule.query, schema, options).widening()
        apart = 0 if rule.suppress is None else check_suppression(plan, rule.suppress)
        return PlannedRule(rule, plan, types_of(plan, schema), apart)

    planned = of_each_rule(rules, planned_rule)
    joint_schema((one.rule.name, one.plan.output_schema) for one in planned)
    return planned


def answers_of(events: Any, rules: Rules, options: MatchOptions) -> dict[str, pa.Table]:
    """Return the answer of each rule, by its name, in the order of the rules.

    Parameters
    ----------
    events : frame
        As for :func:`uncertain_cep.match`; it is read and checked once.
    rules : Rules
    options : MatchOptions
        Those of every rule; parameters belong to rules.

    Notes
    -----
    Rules that name the same types share the table of these events, and a thread drops its table before it
    makes the next one: so memory is that of the events, of one of these tables a thread, and of the answers.
    """
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
    options = replace(options, takes_spans=True)
    with naming_spoiled_rows(table):
        planned = plans_of(rules, table.schema, options)
    if planned:
        check_table(planned[0].plan, table)
    by_type = EventsByType(table, options.names.type)
    warn_of_types(planned, by_type.types, table.num_rows)
    last_tick = _last_tick(planned, table)
    cores = threads_or_all(options.threads)
    groups: dict[frozenset[str] | None, list[PlannedRule]] = {}
    for one in planned:
        groups.setdefault(one.types, []).append(one)
    threads = max(cores // max(len(groups), 1), 1)

    def of_group(group: list[PlannedRule]) -> Iterator[tuple[str, pa.Table]]:
        part, scan_cache = by_type.of(group[0].types)[0], ScanCache(threads)
        if group[0].types is not None and len(group) > 1:
            part = of_some_rule([one.plan for one in group], part)
        for one in group:
            yield one.rule.name, _answer(one, part, scan_cache, last_tick, threads)

    kernels = tuple(dict.fromkeys(name for one in planned for name in kernels_of(one.plan)))
    tasks = [partial(of_group, group) for group in groups.values()]
    answers: dict[str, pa.Table] = {}
    matches = 0
    named_answers = plainly(plain_seconds(table.num_rows, kernels), side_by_side(cores, tasks))
    for name, answer in within(options.limit, named_answers):
        matches += answer.num_rows
        if options.max_matches is not None and matches > options.max_matches:
            raise MatchLimitError(matches, options.max_matches)
        answers[name] = answer
    return {rule.name: answers[rule.name] for rule in rules}


def _answer(
    one: PlannedRule, part: pa.Table, scan_cache: ScanCache, last_tick: int | None, threads: int
) -> pa.Table:
    """Return the answer of one rule on the events that matter to it, which have been checked."""
    diagnostics = _OfRule()
    diagnostics.last_tick = last_tick
    try:
        batches = execute(
            one.plan,
            part,
            batch_rows=_ALERTS_AT_ONCE,
            diagnostics=diagnostics,
            threads=threads,
            scan_cache=scan_cache,
        )
        answer = finished(one.plan, batches)
    except UncertainCepError as error:
        error.add_note(f"in rule {one.rule.name!r}")
        raise
    if one.rule.suppress is None:
        return answer
    return told_alerts(one.plan, answer, one.apart, one.rule.suppress.by)


def _last_tick(planned: Iterable[PlannedRule], table: pa.Table) -> int | None:
    """Return the last tick of any event, for rules that ask for an absence."""
    plan = next((one.plan for one in planned if one.plan.forbids), None)
    if plan is None or not table.num_rows or plan.names.upper not in table.column_names:
        return None
    return int(ticks_of(table, plan.names.upper, plan).max())


def warn_of_types(planned: Iterable[PlannedRule], there: frozenset[str], rows: int) -> None:
    """Warn of types that rules name and no event has, in one line."""
    if not rows:
        warn(EMPTY_TRACE)
        return
    absent: dict[str, str] = {}
    for one in planned:
        for component in components_of(one.plan.query.pattern):
            for name in component.types:
                if name not in there:
                    absent.setdefault(name, one.rule.name)
    if absent:
        shown = ", ".join(
            f"{quote_name(name)} (rule {rule!r})" for name, rule in list(absent.items())[:_MOST_NAMED]
        )
        more = ", ..." if len(absent) > _MOST_NAMED else ""
        warn(f"rules name {counted(len(absent), 'type')} that no event has: {shown}{more}")


def in_one_table(answers: Mapping[str, pa.Table]) -> pa.Table:
    """Return the answers of rules as one table, whose first column is the name of the rule.

    It has the columns of all answers, see :func:`joint_schema`.
    """
    schema = joint_schema((rule, table.schema) for rule, table in answers.items())
    return pa.concat_tables([schema.empty_table(), *(rows_of(*one, schema) for one in answers.items())])


def joint_schema(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the columns of a table of the answers of rules, given the name and the columns of each.

    First comes the name of the rule. Whole numbers are float64 where another rule has float64, or one has
    uint64 and the other signed ones. Values are lists of one where another rule has lists.

    Raises
    ------
    OptionError
        With all columns of one name that have values of different kinds in two rules, and those that are
        called as that of the names of rules.
    """
    fields: dict[str, pa.DataType] = {}
    homes: dict[str, str] = {}
    faults: list[str] = []
    for rule, schema in schemas:
        for field in schema:
            if field.name == RULE:
                faults.append(
                    f"rule {rule!r} returns a column {RULE}, as the names of rules are called: call it, or "
                    "the variable or key, otherwise"
                )
            before = fields.get(field.name)
            dtype = field.type if before is None else common_column(before, field.type)
            if dtype is None:
                faults.append(
                    f"rules {homes[field.name]!r} and {rule!r} return {field.name} as {before} and "
                    f"{field.type}: call one of them otherwise, by AS"
                )
                continue
            fields[field.name] = dtype
            homes.setdefault(field.name, rule)
    if faults:
        raise OptionError("\n".join(faults))
    names = [name for name in fields if name not in _ENDING]
    names += [name for name in _ENDING if name in fields]
    return pa.schema([pa.field(RULE, pa.string()), *(pa.field(name, fields[name]) for name in names)])


def rows_of(rule: str, answer: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the answer of a rule as rows of a joint schema; columns that it lacks are null."""
    columns = [pa.repeat(pa.scalar(rule), answer.num_rows)]
    for field in list(schema)[1:]:
        there = field.name in answer.column_names
        columns.append(
            _as(answer.column(field.name), field.type) if there else pa.nulls(answer.num_rows, field.type)
        )
    return pa.table(columns, schema=schema)


def common_column(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type of a column that holds values of two; None if there is none."""
    if pa.types.is_list(first) or pa.types.is_list(second):
        item = common_column(_item_of(first), _item_of(second))
        return None if item is None else pa.list_(item)
    if first != second and pa.uint64() in (first, second) and is_number(first) and is_number(second):
        # No whole numbers of 64 bits take both.
        return pa.float64()
    return common_type(first, second)


def _item_of(dtype: pa.DataType) -> pa.DataType:
    """Return the type of what stands in a list; of no list, its own."""
    return dtype.value_type if pa.types.is_list(dtype) else dtype


def _as(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Return a column as one of another type, see :func:`common_column`."""
    if not pa.types.is_list(dtype) or pa.types.is_list(column.type):
        return column.cast(dtype, safe=False)
    items = column.combine_chunks().cast(dtype.value_type, safe=False)
    items = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    offsets = pa.array(np.arange(len(items) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, items, type=dtype, mask=items.is_null())
