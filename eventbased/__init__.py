"""Event-based evaluation: valid bounds, candidates, and the query-order join over them."""

from eventbased.candidates import Candidates, lay_out, partition_bases
from eventbased.describe import describe_matches, describe_uncertain, matches_of_runs
from eventbased.next_match import ALL, COSTLY, next_confidences, next_limits
from eventbased.query_order import PASS, Search, join, start_search

__all__ = [
    "ALL",
    "COSTLY",
    "PASS",
    "Candidates",
    "Search",
    "describe_matches",
    "describe_uncertain",
    "join",
    "lay_out",
    "matches_of_runs",
    "next_confidences",
    "next_limits",
    "partition_bases",
    "start_search",
]
