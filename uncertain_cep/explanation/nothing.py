"""Why there is no match: which conditions of a query leave none, found by leaving out one at a time."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.kernel import plainly
from uncertain_cep.config.limits import SAMPLED_FOR_NOTHING, SECONDS_FOR_NOTHING
from uncertain_cep.errors import TimeLimitError, UncertainCepError
from uncertain_cep.executor import execute, ticks_of
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plurals import shortened
from uncertain_cep.query import Query, bind, format_expression
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.span_relations import comparison_of, relation_at
from uncertain_cep.query.syntax import (
    Component,
    Duration,
    Equivalence,
    Expression,
    Position,
    expressions_in,
)
from uncertain_cep.query.time_conditions import texts_of
from uncertain_cep.query.until import text_of_negation
from uncertain_cep.query.walks import components_of, part_of
from uncertain_cep.running.resource_limits import Limits, within

__all__ = ["conditions_among", "conditions_that_leave_nothing", "sampled_types"]

_LONGEST: Final = 80
"""Characters of a condition in a message."""


def conditions_that_leave_nothing(plan: EvaluationPlan, table: pa.Table, options: MatchOptions) -> str:
    """Name the conditions that leave no match of a query, as a sentence; "" if time runs out.

    Parameters
    ----------
    plan : EvaluationPlan
        That of the query, which has no match among the events.
    table : pyarrow.Table
        The events, of the model. Of many the first ``SAMPLED_FOR_NOTHING`` of the pattern's types are taken.
    options : MatchOptions

    Notes
    -----
    For each condition, negation, strategy, WITHIN and HAVING the query is asked for one match without it. All
    that takes at most about ``SECONDS_FOR_NOTHING``, and compiles nothing.
    """
    sample = _sample(plan, table)
    return conditions_among(plan, sample, options, whole=sample.num_rows == table.num_rows)


def conditions_among(plan: EvaluationPlan, sample: pa.Table, options: MatchOptions, *, whole: bool) -> str:
    """Do what `conditions_that_leave_nothing` does, among a sample of the events, or the ``whole``."""
    started, conditions, asked_all = time.monotonic(), list[str](), True
    options = replace(options, threads=1, limit=None, max_matches=None)
    with warnings.catch_warnings():
        # What there is to warn of, the query itself has warned of.
        warnings.simplefilter("ignore")
        for text, query in _variants(plan, sample.schema):
            remaining = started + SECONDS_FOR_NOTHING - time.monotonic()
            if remaining <= 0:
                asked_all = False
                break
            try:
                if _has_match(query, sample, options, remaining):
                    conditions.append(shortened(text, _LONGEST))
            except TimeLimitError:
                asked_all = False
                break
            except UncertainCepError:
                # What cannot be asked in this way says nothing.
                asked_all = False
    if not conditions:
        sentence = "without any one of its conditions there would be no match either"
        return sentence if asked_all and whole else ""
    several = conditions[0] if len(conditions) == 1 else f"{', '.join(conditions[:-1])} or {conditions[-1]}"
    among = "" if whole else f" among the first {sample.num_rows:,} events"
    return f"without {several} there would be matches{among}"


def _sample(plan: EvaluationPlan, table: pa.Table) -> pa.Table:
    """Return the first events by their time that the pattern can take, or all of few."""
    if table.num_rows <= SAMPLED_FOR_NOTHING:
        return table
    if names := sampled_types(plan):
        types_taken = pa.array(names, pa.string())
        column = table.column(plan.names.type)
        plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        table = table.filter(pc.is_in(plain, types_taken.cast(plain.type)))
    lower = ticks_of(table, plan.names.lower, plan)
    if table.num_rows > SAMPLED_FOR_NOTHING:
        first = np.argpartition(lower, SAMPLED_FOR_NOTHING)[:SAMPLED_FOR_NOTHING]
        table = table.take(pa.array(np.sort(first)))
    return table


def sampled_types(plan: EvaluationPlan) -> list[str]:
    """Return the types of the events to sample; none if events of any type matter."""
    types = [part.types for part in plan.bound.components]
    if not all(types) or plan.query.strategy.endswith("contiguity"):
        return []
    return list(dict.fromkeys(name for names in types for name in names))


def _has_match(query: Query, sample: pa.Table, options: MatchOptions, seconds: float) -> bool:
    chosen = query.min_confidence is not None or query.having is not None
    plan = make_plan(query, sample.schema, options, confidence=chosen)
    batches = within(Limits(seconds), plainly(math.inf, execute(plan, sample, batch_rows=1)))
    return any(batch.num_rows for batch in batches)


def _variants(plan: EvaluationPlan, schema: pa.Schema) -> Iterator[tuple[str, Query]]:
    """Yield the text of each condition, and the query for one match without it."""
    query = replace(
        plan.query,
        expected_count=None,
        probability=None,
        order_by_confidence=False,
        order_by=(),
        limit=1,
        non_overlapping=False,
    )
    if query.min_confidence is not None or query.having is not None:
        shown = query.having.text if query.having is not None else f"CONFIDENCE >= {query.min_confidence:g}"
        yield f"HAVING {shown}", replace(query, min_confidence=None, having=None)
    ends = [*map(comparison_of, query.where)]
    number = 0
    while number < len(query.where):
        relation, count = relation_at(ends, number) or ("", 1)
        remaining_conditions = query.where[:number] + query.where[number + count :]
        text = relation or _text_of(plan, query, query.where[number], schema)
        yield text, replace(query, where=remaining_conditions)
        number += count
    negated = [part for part in components_of(query.pattern) if part.negated]
    for of in dict.fromkeys(part.joint or part.position for part in negated):
        group = [part for part in negated if of == (part.joint or part.position)]
        fewer = _without(query, group)
        if fewer is not None:
            yield text_of_negation(group), fewer
    if query.strategy != "skip_till_any_match" or query.gap_strategies:
        shown = ", ".join(strategy.text for strategy in query.gap_strategies) or query.strategy
        skipping = replace(
            query, strategy="skip_till_any_match", strategy_position=None, strategy_variables=()
        )
        yield shown, replace(skipping, gap_strategies=())
    if query.window is not None:
        window = query.window
        amount = f"{window.amount:g}{'' if window.unit is None else f' {window.unit}'}"
        yield f"WITHIN {amount}", replace(query, window=_longest(window.position))


def _longest(position: Position) -> Duration:
    return Duration(2**60, None, None, position)


def _text_of(plan: EvaluationPlan, query: Query, condition: Expression, schema: pa.Schema) -> str:
    """Return a condition as a query writes it."""
    if isinstance(condition, Equivalence):
        return f"[{quote_name(condition.name)}]"
    bound = bind(replace(query, where=(condition,)), schema, plan.names, plan.domain)
    times = " AND ".join(texts_of(bound.times, plan.domain))
    return times or format_expression(bound.predicates[0])


def _without(query: Query, absent: Sequence[Component]) -> Query | None:
    """Return a query without negated components and what is asked of them; None if nothing is left."""
    names = {part.variable for part in absent}
    pattern = part_of(query.pattern, lambda part: part.variable not in names)
    if pattern is None:
        return None
    where = tuple(
        condition
        for condition in query.where
        if not any(getattr(part, "variable", None) in names for part in expressions_in(condition))
    )
    listed = tuple(variable for variable in query.strategy_variables if variable.name not in names)
    return replace(query, pattern=pattern, where=where, strategy_variables=listed)
