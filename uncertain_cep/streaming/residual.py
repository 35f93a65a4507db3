"""Evaluates what runs leave open of the matches that they find: conditions on times, and existence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from uncertain_cep.candidates.existence import existence
from uncertain_cep.candidates.pmfs import explicit_pmfs
from uncertain_cep.executor import ticks_of
from uncertain_cep.operators.batch import MatchBatch, happened
from uncertain_cep.operators.joined_times import TimedChoices
from uncertain_cep.plan import EvaluationPlan

__all__ = ["residual"]


def residual(plan: EvaluationPlan, chunk: MatchBatch, table: pa.Table) -> MatchBatch:
    """Return matches with ranges and confidences under conditions on times and existence.

    Parameters
    ----------
    plan : EvaluationPlan
    chunk : MatchBatch
        Its events are rows of ``table``.
    table : pyarrow.Table
    """
    rows = chunk.events
    if plan.bound.times and rows.size:
        events = table.take(pa.array(rows.ravel()))
        bounds = ticks_of(events, plan.names.lower, plan), ticks_of(events, plan.names.upper, plan)
        pmfs, lower, upper = explicit_pmfs(events, plan.names.pmf, *bounds)
        places = np.arange(rows.size)
        span = min(plan.window, int(upper.max()) - int(lower.min()) + 1)
        described = TimedChoices(plan, events, places, (lower, upper), pmfs, span)
        lower, upper = np.empty((2, rows.shape[1]), dtype=np.int64)
        confidence, error = np.zeros((2, rows.shape[1]))
        with_confidence = plan.needs_confidence
        described.describe(places.reshape(rows.shape), with_confidence, (lower, upper, confidence, error))
        confidences = confidence if with_confidence else None
        chunk = MatchBatch(rows, lower, upper, confidences, error).keep(lower <= upper)
    return _happened(plan, chunk, table)


def _happened(plan: EvaluationPlan, chunk: MatchBatch, table: pa.Table) -> MatchBatch:
    """Return matches with the probability that their events happened."""
    name = plan.names.probability
    if name not in table.column_names:
        return chunk
    # Only of matched events, as the table holds others, too.
    exists = existence(table.select([name]).take(pa.array(chunk.events.ravel())), name)
    if exists is None:
        return chunk
    numbered = np.arange(chunk.events.size).reshape(chunk.events.shape)
    weighed = happened(replace(chunk, events=numbered), exists.probability)
    return replace(weighed, events=chunk.events.ravel()[weighed.events])
