"""Plans that are evaluated slice by slice, and counts that another evaluation adds up."""

from __future__ import annotations

from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.plan.evaluation_plan import EvaluationPlan

__all__ = [
    "computed",
    "counts_candidates",
    "counts_matches_found",
    "is_searched_by_slice",
    "moves_candidates",
]


@once_a_plan
def is_searched_by_slice(plan: EvaluationPlan) -> bool:
    """Return whether slices are evaluated one by one: events in several of them matter to matches in each."""
    if not plan.is_plain or plan.sequences or plan.is_next_by_clocks:
        return True
    by_bucket = plan.counts and plan.bound.every is not None
    return by_bucket and (plan.clocks or plan.query.strategy == "skip_till_next_match")


@once_a_plan
def counts_matches_found(plan: EvaluationPlan) -> bool:
    """Return whether an expected count without buckets is a sum over the matches of another evaluation."""
    return (
        plan.counts and plan.bound.every is None and (plan.clocks or bool(plan.lasting) or not plan.is_plain)
    )


def counts_candidates(plan: EvaluationPlan) -> bool:
    """Return whether matches are counted among all candidates at once, enumerated or not."""
    return plan.counts and not is_searched_by_slice(plan)


def moves_candidates(plan: EvaluationPlan) -> bool:
    """Return whether candidates are moved before they are joined at distances."""
    return plan.joins_at_distances and not plan.counts


def computed(plan: EvaluationPlan) -> frozenset[str]:
    """Return the groups of :data:`~uncertain_cep.config.tuning.KERNELS` for confidences and counts."""
    needed = {
        "expected counts": plan.counts,
        "probabilities of groups": plan.is_grouped,
        "conditions on times": any(branch.bound.times for branch in plan.or_free),
        "shared clocks": plan.clocks,
    }
    return frozenset(group for group, is_needed in needed.items() if is_needed)
