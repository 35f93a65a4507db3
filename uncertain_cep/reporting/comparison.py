"""What the answer would be if stamps were times: every interval replaced by its stamp, or by its middle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.doubts import Doubts
from uncertain_cep.config import COMPARED_MATCHES
from uncertain_cep.errors import MatchLimitError
from uncertain_cep.executor import execute_within
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.results.box_parts import Boxes
from uncertain_cep.results.boxes import weighed_matches
from uncertain_cep.results.matched_events import matched_events

__all__ = ["LIKELY", "Comparison", "Key", "compared", "keys_of"]

LIKELY = 0.5
"""Confidence from which a match that raw stamps do not give counts as missed."""

Key = tuple[tuple[int, int], ...]
"""The events of a match: component and row of each."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer on raw stamps beside the answer on intervals."""

    stamped: int
    """Events that have a stamp; the others were put in the middle of their intervals."""
    events: int
    raw: pa.Table | None
    """Matches on raw stamps; None if there are too many to compare."""
    keys: frozenset[Key]
    """Theirs."""
    missed: pa.Table | None = None
    """Matches of a confidence of at least ``LIKELY`` that are none on raw stamps, the best first."""
    invented: pa.Table | None = None
    """Matches on raw stamps that no possible world has."""


def keys_of(plan: EvaluationPlan, table: pa.Table, matches: pa.Table) -> list[Key]:
    """Return what tells matches apart."""
    places = {component.variable: j for j, component in enumerate(plan.components)}
    keys: list[Key] = [()] * matches.num_rows
    for found in matched_events(plan, table, matches):
        component = np.array([places[name] for name in found.variables])[found.component]
        pairs = list(zip(component.tolist(), found.row.tolist(), strict=True))
        bounds = [*found.begins.tolist(), len(pairs)]
        for begin, end in pairwise(bounds):
            keys[int(found.match[begin])] = tuple(pairs[begin:end])
    return keys


def compared(
    plan: EvaluationPlan,
    table: pa.Table,
    options: MatchOptions,
    stamps: NDArray[np.int64],
    has: NDArray[np.bool_],
) -> Comparison:
    """Return the comparison of a query's answer with that on raw stamps.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events.
    options : MatchOptions
    stamps : (n,) int64
        Ticks, where ``has``, (n,) bool, tells that an event has a stamp.

    Notes
    -----
    HAVING, ORDER BY, LIMIT and OUTPUT NON OVERLAPPING choose among matches by confidence, which raw stamps do
    not have: both answers are compared without them.
    """
    names, domain = plan.names, plan.domain
    begin, end = domain.ticks(table.column(names.lower)), domain.ticks(table.column(names.upper))
    times = domain.times(np.where(has, stamps, begin + (end - begin) // 2))
    kept = [name for name in table.column_names if name != names.pmf]
    raw_table = table.select(kept)
    for name in (names.lower, names.upper):
        raw_table = raw_table.set_column(raw_table.schema.get_field_index(name), name, times)
    raw_table = raw_table.replace_schema_metadata(table.schema.metadata)
    query = replace(
        plan.query, min_confidence=None, having=None, limit=None, order_by_confidence=False, order_by=(),
        non_overlapping=False,
    )  # fmt: skip
    raw = _all(
        make_plan(query, raw_table.schema, options, confidence=False, sources=False), raw_table, options
    )
    likely_plan = make_plan(replace(query, min_confidence=LIKELY), table.schema, options)
    likely = _all(likely_plan, table, options)
    facts = int(has.sum()), table.num_rows
    if raw is None or likely is None:
        return Comparison(*facts, None, frozenset())
    raw_keys = frozenset(keys_of(plan, table, raw))
    best = likely.take(pa.array(np.argsort(-likely.column("confidence").to_numpy(), kind="stable")))
    absent = [key not in raw_keys for key in keys_of(plan, table, best)]
    possible = np.zeros(raw.num_rows)
    for found, events, groups in weighed_matches(plan, table, raw):
        number = found.match[events.start[:-1]]
        for some, confidences in groups:
            event = events.start[some]
            possible[number[some]] = confidences.of(
                Boxes(some, event, events.lower[event], events.upper[event])
            )
    impossible = pa.array(possible <= 0.0, pa.bool_())
    return Comparison(
        *facts, raw, raw_keys, best.filter(pa.array(absent, pa.bool_())), raw.filter(impossible)
    )


def _all(plan: EvaluationPlan, table: pa.Table, options: MatchOptions) -> pa.Table | None:
    """Return all matches, or None if there are too many."""
    try:
        batches = list(execute_within(plan, table, replace(options, max_matches=COMPARED_MATCHES), Doubts()))
    except MatchLimitError:
        return None
    return pa.Table.from_batches(batches, plan.batch_schema)
