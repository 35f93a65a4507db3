"""The drawn facts of matches: when their events happened, and what could spoil them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.flat_lists import counting, end_to_end, starts_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.box_parts import Boxes, pieces_of
from uncertain_cep.results.boxes import weighed_matches

__all__ = ["Pictures", "pictures_of"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pictures:
    """The events of some matches, by match, component and position."""

    match: Int64
    """(m,) int64."""
    variable: list[str]
    position: Int64
    row: Int64
    """Each (m,). The row is that of the table of events."""
    first: Int64
    last: Int64
    """Each (m,) int64, ticks. The interval that is in parts, without ticks of probability 0 at its ends."""
    start: Int64
    """(m + 1,) int64. Where the parts of each event's interval begin."""
    share: NDArray[np.float64]
    """(p,) float64. P(the event happened in a part of its interval, given the match). The parts of an event
    are as long as each other, as far as ticks allow: see `edges`."""
    spoiled: Int64
    spoiling: Int64
    """Each (q,) int64. Events, by row, that could come between those of a match and then spoil it: by match,
    those with the smallest ``lower`` first."""

    def shares(self, event: int) -> NDArray[np.float64]:
        """Return the shares of an event, (parts,) float64."""
        return self.share[self.start[event] : self.start[event + 1]]

    def edges(self, event: int) -> Int64:
        """Return where the parts of an event begin, and where the last one ends, (parts + 1,) int64 ticks."""
        count = int(self.start[event + 1] - self.start[event])
        if not count:
            return self.first[event : event + 1]
        ticks = self.last[event] - self.first[event] + 1
        edges: Int64 = self.first[event] + part_begins(ticks, count, np.arange(count + 1))
        return edges

    def density(self, event: int) -> NDArray[np.float64]:
        """Return how likely a tick of each part is, as a share of the likeliest, (parts,) float64.

        Parts differ by a tick in length, so that their shares differ where the law is flat.
        """
        each = self.shares(event) / np.diff(self.edges(event))
        top = each.max(initial=0.0)
        return each / top if top > 0.0 else each


def part_begins(ticks: Int64, parts: Int64 | int, number: Int64) -> Int64:
    """Return behind how many ticks the parts of intervals with these numbers begin; all (n,) int64.

    Of long intervals the parts are told without a product beyond int64.
    """
    whole, rest = np.divmod(ticks, parts)
    return number * whole + number * rest // parts


def pictures_of(plan: EvaluationPlan, table: pa.Table, matches: pa.Table, parts: int) -> Pictures:
    """Return how matches are drawn, with at most so many parts of each interval; none where events last.

    Raises
    ------
    OptionError
        See `uncertain_cep.results.matched_events.matched_events`.
    ConfidenceCostError
        If a confidence takes too many steps.
    """
    parts = 0 if plan.lasting else parts
    columns: list[tuple[Int64, ...]] = []
    variables: list[str] = []
    shares, between = [], []
    begin, end = (plan.domain.ticks(table.column(name)) for name in (plan.names.lower, plan.names.upper))
    for found, events, groups in weighed_matches(plan, table, matches):
        if plan.lasting:
            events = events._replace(lower=begin[found.row], upper=end[found.row])
        ticks = events.upper - events.lower + 1
        sizes = np.minimum(ticks, parts)
        begins = np.cumsum(sizes) - sizes
        share = np.zeros(int(sizes.sum()))
        names = found.columns
        variables += [names[j] for j in found.component.tolist()]
        columns.append(
            (found.match, found.component, found.position, found.row, events.lower, events.upper, sizes)
        )
        number = found.match[events.start[:-1]]
        for some, confidences in groups:
            match, event = events.of(some)
            for piece in pieces_of(sizes[event]):
                own = event[piece]
                each = np.repeat(own, sizes[own])
                part = counting(sizes[own])
                begin_at, end_at = (part_begins(ticks[each], sizes[each], at) for at in (part, part + 1))
                low = events.lower[each]
                boxes = Boxes(np.repeat(match[piece], sizes[own]), each, low + begin_at, low + end_at - 1)
                share[np.repeat(begins[own], sizes[own]) + part] = confidences.of(boxes)
            spoiled, spoiling = confidences.in_between(some)
            between.append((number[spoiled], spoiling))
        if len(share):
            total = np.add.reduceat(share, begins)
            share /= np.repeat(np.where(total > 0.0, total, 1.0), sizes)
        shares.append(share)
    match, component, position, row, first, last, sizes = np.concatenate(
        [np.stack(part) for part in columns], axis=1
    )
    order = np.lexsort((position, component, match))
    begins = np.cumsum(sizes) - sizes
    flat = end_to_end(begins[order], sizes[order])[0]
    pairs = np.concatenate([np.zeros((2, 0), dtype=np.int64), *map(np.stack, between)], axis=1)
    pairs = pairs[:, np.lexsort((end[pairs[1]], begin[pairs[1]], pairs[0]))]
    return Pictures(
        match[order], [variables[k] for k in order.tolist()], position[order], row[order], first[order],
        last[order], starts_of(sizes[order]), np.concatenate(shares)[flat], *pairs,
    )  # fmt: skip
