"""Plans that are evaluated slice by slice, and counts that another evaluation adds up."""

from __future__ import annotations

from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.plan.evaluation_plan import EvaluationPlan

__all__ = ["counts_candidates", "counts_matches_found", "is_searched_by_slice", "moves_candidates"]


@once_a_plan
def is_searched_by_slice(plan: EvaluationPlan) -> bool:
    """Return whether slices are evaluated one by one: events in several of them matter to matches in each."""
    by_bucket = plan.counts and plan.bound.every is not None
    is_next = plan.query.strategy == "skip_till_next_match"
    is_searched = not plan.is_plain or (by_bucket and (is_next or plan.clocks))
    return is_searched or plan.sequences or (plan.clocks and is_next)


@once_a_plan
def counts_matches_found(plan: EvaluationPlan) -> bool:
    """Return whether an expected count without buckets is a sum over the matches of another evaluation."""
    return plan.counts and plan.bound.every is None and (plan.clocks or not plan.is_plain)


def counts_candidates(plan: EvaluationPlan) -> bool:
    """Return whether matches are counted among all candidates at once, enumerated or not."""
    return plan.counts and not is_searched_by_slice(plan)


def moves_candidates(plan: EvaluationPlan) -> bool:
    """Return whether candidates are moved before they are joined at distances."""
    return plan.joins_at_distances and not plan.counts
