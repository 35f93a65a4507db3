"""Event-based evaluation: valid bounds, candidates, and the query-order join over them."""

from eventbased.candidates import Candidates, lay_out, partition_bases
from eventbased.describe import describe_matches, describe_uncertain, places_of
from eventbased.query_order import RUNS, initial_state, join

__all__ = [
    "RUNS",
    "Candidates",
    "describe_matches",
    "describe_uncertain",
    "initial_state",
    "join",
    "lay_out",
    "partition_bases",
    "places_of",
]
