"""Event-based evaluation: valid bounds, candidates, and the query-order join over them."""

from eventbased.candidates import Candidates, lay_out, partition_bases
from eventbased.describe import describe_matches, describe_uncertain
from eventbased.query_order import initial_state, join

__all__ = [
    "Candidates",
    "describe_matches",
    "describe_uncertain",
    "initial_state",
    "join",
    "lay_out",
    "partition_bases",
]
