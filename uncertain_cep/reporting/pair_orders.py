"""The order of the events of matches and of groups, pair by pair, for the graphs of a page."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.errors import UncertainCepError
from uncertain_cep.happened_before.ordered_events import OrderedEvents
from uncertain_cep.happened_before.pair_probabilities import PairProbabilities, pair_probabilities
from uncertain_cep.plan import EvaluationPlan, MatchOptions
from uncertain_cep.results.pictures import Pictures
from uncertain_cep.running.threads import threads_or_all

__all__ = ["EVENTS_OF_GRAPH", "PairOrders", "drawn_together", "pair_orders"]

Int64 = NDArray[np.int64]

EVENTS_OF_GRAPH: Final = 8
"""Most events of a graph; each may be in open order with each."""

MATCHES: Final = 500
"""Matches, and as many groups, whose events have a graph on a page, at most: the first ones."""

PAIRS: Final = 6_000
"""Most pairs of events of all graphs of a page."""


class PairOrders(NamedTuple):
    """Pairs of events, (k,) int64 rows of a table with x < y, and how likely each was first."""

    x: Int64
    y: Int64
    chances: PairProbabilities


def pair_orders(
    plan: EvaluationPlan, table: pa.Table, sets: Iterable[Int64], options: MatchOptions
) -> PairOrders | None:
    """Return the orders of all pairs in each of some sets of rows, as long as a page has room for them.

    None if nothing is known: where `uc.order` knows no answer.
    """
    pairs: dict[tuple[int, int], None] = {}
    for rows in sets:
        pairs |= dict.fromkeys(combinations(sorted(rows.tolist()), 2))
        if len(pairs) >= PAIRS:
            break
    if not pairs:
        return None
    ends = np.array(list(pairs)[:PAIRS]).T
    rows, places = np.unique(ends, return_inverse=True)
    x, y = places.reshape(2, -1)
    events = table.take(pa.array(rows))
    # Events of several partitions may share an id.
    number = events.schema.get_field_index(plan.names.id)
    events = events.set_column(number, plan.names.id, pa.array(np.arange(len(rows))))
    threads = threads_or_all(options.threads)
    try:
        ordered = OrderedEvents.of(events, (), options)
        return PairOrders(ends[0], ends[1], pair_probabilities(ordered, (x, y), threads))
    except UncertainCepError:
        # Records of an ordered source may overlap.
        return None


def drawn_together(pictures: Pictures, spoiling: int, of_match: Int64 | None) -> Iterable[Int64]:
    """Yield the rows of events that a page draws as one graph: of each group, then of each match.

    Parameters
    ----------
    pictures : Pictures
        The matches that are shown.
    spoiling : int
        How many events that could spoil a match are drawn with it.
    of_match : (m,) int64, optional
        The group of each match, -1 for none.
    """
    members = np.split(pictures.row, np.flatnonzero(np.diff(pictures.match)) + 1) if len(pictures.row) else []
    if of_match is not None:
        groups: dict[int, dict[int, None]] = {}
        for group, rows in zip(of_match.tolist(), members, strict=True):
            if group >= 0 and (group in groups or len(groups) < MATCHES):
                groups.setdefault(group, {}).update(dict.fromkeys(rows.tolist()))
        for rows_of_group in groups.values():
            yield np.array(list(rows_of_group)[:EVENTS_OF_GRAPH], dtype=np.int64)
    for match, rows in enumerate(members[:MATCHES]):
        begin, end = np.searchsorted(pictures.spoiled, (match, match + 1))
        beside = pictures.spoiling[begin : min(end, begin + spoiling)]
        yield np.concatenate((rows, beside))[:EVENTS_OF_GRAPH]
