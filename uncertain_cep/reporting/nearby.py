"""The lanes of a drawing, the ends of events that last, and events around a match, shown on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.span_times import with_ends
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.reporting.metric_thresholds import thresholds_of
from uncertain_cep.reporting.true_answers import codes_of_keys
from uncertain_cep.results.pictures import Pictures

__all__ = [
    "MATCHES",
    "OF_A_MATCH",
    "SPOILING_SHOWN",
    "Nearby",
    "bounds_of_spans",
    "drawn_rows",
    "lane_keys",
    "lane_of",
    "nearby_events",
    "types_first",
    "within_page",
]

Int64 = NDArray[np.int64]

MATCHES: Final = 500
"""Matches whose surroundings a page has, at most: the first ones."""

OF_A_MATCH: Final = 40
"""Events around one match, at most."""

IN_ALL: Final = 3_000
"""Different events around matches, at most."""

SPOILING_SHOWN: Final = 8
"""Most events that could spoil a match in its drawing."""

_HOSTS: Final = ("host", "node", "machine", "instance", "pod", "server")
"""Parts of the names of columns that say where an event happened."""


class Nearby(NamedTuple):
    """The events around one match."""

    total: int
    """How many there are."""
    row: Int64
    """(k,) int64. Those that are shown, ascending by row of the table."""


def lane_of(plan: EvaluationPlan, schema: pa.Schema) -> str:
    """Return the column whose values are the lanes of a drawing; empty if there is none.

    The first partition attribute, else a text that is called as a host is.
    """
    for name in plan.partition_attributes:
        return name
    names: list[str] = [
        field.name
        for field in schema
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        if field.name not in (plan.names.id, plan.names.type)
    ]
    for part in _HOSTS:
        for name in names:
            if part in name.lower():
                return name
    return ""


def bounds_of_spans(plan: EvaluationPlan, events: pa.Table) -> list[list[int] | None]:
    """Return for each event that lasts the ticks between which it begins, and those between which it ends."""
    if not plan.lasting:
        return []
    extended, spans = with_ends(plan, events)[1:]
    columns = [plan.domain.ticks(extended.column(name)) for name in (plan.names.lower, plan.names.upper)]
    bounds = np.stack(
        [column[part] for part in np.split(np.arange(2 * spans.events), 2) for column in columns]
    )
    return [
        ends if lasts else None for ends, lasts in zip(bounds.T.tolist(), spans.lasts.tolist(), strict=True)
    ]


def nearby_events(plan: EvaluationPlan, table: pa.Table, pictures: Pictures, count: int) -> list[Nearby]:
    """Return the events around the first of some matches, as long as a page has room for them.

    They can have happened between the first possible and the last possible time of any event of the match,
    and are of one of its lanes. Events that are measured by a threshold go first, then those of types of the
    pattern; where there are too many, every other one of them is left out, or more. Events that could spoil
    the match are among them, but for those that are drawn with it.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        All events.
    pictures : Pictures
        The matches as they are drawn.
    count : int
        How many matches there are.

    Notes
    -----
    O(n log n + matches (events whose interval begins between)) for n events.
    """
    names, domain = plan.names, plan.domain
    lower, upper = (domain.ticks(table.column(name)) for name in (names.lower, names.upper))
    order = np.argsort(lower, kind="stable")
    latest = np.maximum.accumulate(upper[order]) if len(order) else order
    code = codes_of_keys((table,), lane_keys(plan, table.schema))
    types = table.column(names.type).cast(pa.string())
    measured, of_pattern = types_first(plan, table.schema)
    rank = np.full(table.num_rows, 1 if of_pattern is None else 2)
    for level, kinds in ((1, of_pattern or []), (0, measured)):
        rank[np.asarray(pc.is_in(types, pa.array(kinds, pa.string())))] = level

    def around(members: Int64, drawn: Int64) -> Nearby:
        low, high = int(lower[members].min()), int(upper[members].max())
        begin = int(np.searchsorted(latest, low))
        rows = order[begin : int(np.searchsorted(lower[order], high, side="right"))]
        rows = rows[(upper[rows] >= low) & np.isin(code[rows], code[members])]
        rows = rows[~np.isin(rows, drawn)]
        kept = rows[:0]
        for level in range(3):
            kept = np.append(kept, _spread(rows[rank[rows] == level], OF_A_MATCH - len(kept)))
        return Nearby(len(rows), np.sort(kept))

    return within_page(around(*rows) for rows in drawn_rows(pictures, count))


def lane_keys(plan: EvaluationPlan, schema: pa.Schema) -> list[str]:
    """Return the columns that events near a match have in common with one of its events."""
    lane = lane_of(plan, schema)
    return list(plan.partition_attributes) or ([lane] if lane else [])


def types_first(plan: EvaluationPlan, schema: pa.Schema) -> tuple[list[str], list[str] | None]:
    """Return the types of events that thresholds measure, and those of the pattern; None: of any type."""
    measured = {kind for one in thresholds_of(plan, schema) for kind in one.types}
    if any(not part.types for part in plan.components):
        return sorted(measured), None
    return sorted(measured), sorted({kind for part in plan.components for kind in part.types})


def within_page(around: Iterable[Nearby]) -> list[Nearby]:
    """Return the first of these, as many as a page has room for."""
    kept: list[Nearby] = []
    seen: set[int] = set()
    for one in around:
        seen.update(one.row.tolist())
        if len(seen) > IN_ALL:
            break
        kept.append(one)
    return kept


def _spread(rows: Int64, count: int) -> Int64:
    """Return at most so many of some rows, with equal gaps between them."""
    if len(rows) <= count:
        return rows
    return rows[np.arange(count) * len(rows) // max(count, 1)]


def drawn_rows(pictures: Pictures, count: int) -> Iterator[tuple[Int64, Int64]]:
    """Yield the rows of the events of the first matches, and of all that are drawn with them."""
    numbers = np.arange(min(count, MATCHES) + 1)
    of_member = np.searchsorted(pictures.match, numbers)
    of_spoiler = np.searchsorted(pictures.spoiled, numbers)
    for n in numbers[:-1].tolist():
        members = pictures.row[of_member[n] : of_member[n + 1]]
        end = min(of_spoiler[n + 1], of_spoiler[n] + SPOILING_SHOWN)
        yield members, np.concatenate((members, pictures.spoiling[of_spoiler[n] : end]))
