"""The matches of the greatest confidences: plans that ask for these alone, and confidences that are cheap."""

from __future__ import annotations

from confidence.chain.side_by_side import LENGTHS
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.result_columns import SortKey

__all__ = ["is_best_only", "is_weighed_side_by_side", "rises_with_best"]


def is_best_only(plan: EvaluationPlan) -> bool:
    """Return whether only the k matches of the greatest confidences are wanted."""
    query = plan.query
    ranked = query.order_by_confidence and query.limit is not None and not query.non_overlapping
    return ranked and not plan.compressed


def rises_with_best(plan: EvaluationPlan) -> bool:
    """Return whether the first matches by confidence are wanted, ordered by more besides."""
    query = plan.query
    if query.limit is None or query.non_overlapping or plan.compressed or not plan.sort_keys:
        return False
    return plan.sort_keys[0] == SortKey("confidence", descending=True)


def is_weighed_side_by_side(plan: EvaluationPlan) -> bool:
    """Return whether many confidences are computed at once, so that bounds of them cost as much."""
    return plan.is_free_sequence and len(plan.components) in LENGTHS
