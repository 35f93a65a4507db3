"""Event-based evaluation: valid bounds, candidates, and the query-order join over them."""

from eventbased.describe import describe_matches, describe_uncertain, matches_of_runs
from eventbased.gaps.next_match import CostlyMatchError, EventArrays, NextConfidences, next_limits
from eventbased.joins.pivot_join import PASS, PAUSED, Search, join, start_search
from eventbased.layout import Candidates, lay_out, partition_bases
from eventbased.non_overlapping import choose_non_overlapping
from eventbased.upper_bounds import describe_chosen, promising_matches, surviving_matches

__all__ = [
    "PASS",
    "PAUSED",
    "Candidates",
    "CostlyMatchError",
    "EventArrays",
    "NextConfidences",
    "Search",
    "choose_non_overlapping",
    "describe_chosen",
    "describe_matches",
    "describe_uncertain",
    "join",
    "lay_out",
    "matches_of_runs",
    "next_limits",
    "partition_bases",
    "promising_matches",
    "start_search",
    "surviving_matches",
]
