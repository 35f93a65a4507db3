"""Event-based evaluation: valid bounds, candidates, and the query-order join over them."""

from eventbased.describe import (
    MatchFinder,
    confidences_of_matches,
    confidences_of_spans,
    describe_uncertain,
    matches_of_spans,
)
from eventbased.joins.join_state import PASS, JoinState, start_join
from eventbased.joins.pivot_join import PAUSED, join
from eventbased.layout import Candidates, Concatenated, SharedEvents, lay_out, partition_bases
from eventbased.non_overlapping import choose_non_overlapping
from eventbased.span_columns import MatchColumns, keep_likely
from eventbased.upper_bounds import describe_chosen, filter_matches, filter_spans

__all__ = [
    "PASS",
    "PAUSED",
    "Candidates",
    "Concatenated",
    "JoinState",
    "MatchColumns",
    "MatchFinder",
    "SharedEvents",
    "choose_non_overlapping",
    "confidences_of_matches",
    "confidences_of_spans",
    "describe_chosen",
    "describe_uncertain",
    "filter_matches",
    "filter_spans",
    "join",
    "keep_likely",
    "lay_out",
    "matches_of_spans",
    "partition_bases",
    "start_join",
]
