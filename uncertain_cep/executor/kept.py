"""The matches that a query keeps of those found: HAVING, the k best, LIMIT."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa

from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import Threshold
from uncertain_cep.operators.table import operator_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.best_first import is_weighed_side_by_side, rises_with_best
from uncertain_cep.results.ranking import least_passing, passing
from uncertain_cep.results.top_k import RisingThreshold

__all__ = ["confident", "limited", "most_of_any", "rising_threshold", "threshold_of_having"]


def confident(plan: EvaluationPlan, chunk: MatchBatch) -> MatchBatch:
    """Return the matches that HAVING keeps."""
    bound = plan.query.min_confidence
    if bound is None or chunk.confidence is None or chunk.at_least >= least_passing(bound):
        return chunk
    return chunk.keep(passing(chunk.confidence, bound))


def most_of_any(plan: EvaluationPlan) -> int:
    """Return how many matches are enough, whichever they are: LIMIT alone; else 2^63 - 1."""
    query = plan.query
    return sys.maxsize if query.limit is None or query.is_ordered or query.non_overlapping else query.limit


def limited(plan: EvaluationPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches until LIMIT alone has enough."""
    left = most_of_any(plan)
    if left == sys.maxsize:
        yield from batches
        return
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def threshold_of_having(plan: EvaluationPlan, pmfs: ExplicitPmfs | None) -> Threshold | None:
    """Return the threshold of HAVING, if upper bounds cost less or a join may be narrowed."""
    bound = plan.least_confidence
    dear = pmfs is not None or not is_weighed_side_by_side(plan)
    if bound <= 0.0 or not (dear or operator_of(plan).plans_joins):
        return None
    return Threshold(least_passing(bound), is_worth_bounds=dear)


def rising_threshold(plan: EvaluationPlan, pmfs: ExplicitPmfs | None) -> RisingThreshold | None:
    """Return the rising threshold of the k best, for an order by confidence and by more."""
    limit = plan.query.limit
    if limit is None or not rises_with_best(plan):
        return None
    threshold = threshold_of_having(plan, pmfs)
    return RisingThreshold(limit, Threshold(0.0 if threshold is None else threshold.least))
