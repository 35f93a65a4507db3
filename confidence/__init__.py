"""Confidence kernels: intervals, pmfs and window to the exact probability and tight range of a match."""

from confidence.chain.distribution import Intervals, Pmfs, running_sums
from confidence.chain.exact import exact_chain_confidence
from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.uniform import (
    chain_confidence,
    confidence_of_three,
    confidence_of_two,
    tight_bounds,
)
from confidence.counts.expected import Covered, event_rates, expected_by_bucket, merged_intervals
from confidence.counts.first_times import confidences_by_bucket
from confidence.counts.repeated import repeated_choices, repeated_uses, running_totals
from confidence.gaps.chains import Forbidden, Limits, workspace
from confidence.gaps.coupled import gap_confidence
from confidence.gaps.describing import CostlyMatchError
from confidence.gaps.forbidden import forbidden_confidence

__all__ = [
    "CostlyMatchError",
    "Covered",
    "Forbidden",
    "Intervals",
    "Limits",
    "Pmfs",
    "chain_confidence",
    "chain_confidence_pmf",
    "confidence_of_three",
    "confidence_of_two",
    "confidences_by_bucket",
    "event_rates",
    "exact_chain_confidence",
    "expected_by_bucket",
    "forbidden_confidence",
    "gap_confidence",
    "merged_intervals",
    "repeated_choices",
    "repeated_uses",
    "running_sums",
    "running_totals",
    "support_range",
    "tight_bounds",
    "workspace",
]
