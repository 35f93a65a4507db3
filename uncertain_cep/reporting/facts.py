"""What a report says: everything gathered, as plain values for the page."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep import __version__
from uncertain_cep.candidates.doubts import Doubts
from uncertain_cep.candidates.existence import existence
from uncertain_cep.config import CONFIDENCE_TOLERANCE, SHOWN_MATCHES
from uncertain_cep.durations import format_duration
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.explanation.facts import plan_facts
from uncertain_cep.explanation.text import explain_plan
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query
from uncertain_cep.reporting.comparison import LIKELY, Comparison, compared, keys_of
from uncertain_cep.reporting.in_words import title_of, words_of
from uncertain_cep.results.order import finished
from uncertain_cep.results.pictures import Pictures, pictures_of
from uncertain_cep.wording import counted

__all__ = ["Asked", "report_facts"]

Int64 = NDArray[np.int64]

PARTS: Final = 24
"""Parts of an interval that are shaded by when the event happened."""

BINS: Final = 20
"""Bars of the histogram of confidences."""

MOMENTS: Final = 48
"""Bars of the chart of when matches are."""

TOP: Final = 12
"""Values of an attribute that are shown with their matches."""

LONGEST_TEXT: Final = 300
"""Characters of a value that are shown."""

INVENTED_SHOWN: Final = 500
"""Most invented matches in the table."""

SPOILING_SHOWN: Final = 8
"""Most events that could spoil a match in its drawing."""

_ROUND_LENGTHS: Final[tuple[int, ...]] = (
    *(step * 10**power for power in range(10) for step in (1, 2, 5)),
    *(seconds * 10**9 for seconds in (10, 15, 30)),
    *(minutes * 60 * 10**9 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(days * 86_400 * 10**9 for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)
"""Lengths that people count time in, nanoseconds, ascending."""

LEVELS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is about."""

    table: pa.Table
    query: Query
    options: MatchOptions
    stamp: str | None
    """The column of raw stamps, of the type of the times; null where there is none."""
    notes: Sequence[str] = ()
    """What else is assumed, such as how stamps became intervals."""
    title: str | None = None
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are handed to the page: ticks behind the first one."""

    plan: EvaluationPlan
    origin: int

    def relative(self, ticks: Int64) -> list[int]:
        """Return ticks as the page counts them."""
        found: list[int] = (ticks - self.origin).tolist()
        return found

    def described(self) -> dict[str, Any]:
        """Return what the page needs to show times."""
        domain = self.plan.domain
        if domain.unit == "tick" or domain.tick_nanoseconds is None:
            # As text: a script has no whole numbers beyond 2**53.
            return {"kind": "tick", "origin": str(self.origin)}
        first = self.origin * domain.tick_nanoseconds
        return {
            "kind": "stamp",
            "ms": first // 10**6,
            "us": first % 10**6 / 1000,
            "tick": domain.tick_nanoseconds / 1000,
        }


def report_facts(asked: Asked) -> dict[str, Any]:
    """Find the matches of a query, and gather what a page shows of them.

    Raises
    ------
    OptionError
        If the query returns expected counts.
    """
    table, options = asked.table, asked.options
    plan = make_plan(asked.query, table.schema, options)
    if plan.counts:
        raise OptionError(
            "a report shows matches, and the query returns expected counts: ask for the matches"
        )
    names, domain = plan.names, plan.domain
    doubts = Doubts()
    found = finished(plan, execute_within(plan, table, options, doubts))
    begin, end = domain.ticks(table.column(names.lower)), domain.ticks(table.column(names.upper))
    stamps, has = _stamps(plan, table, asked.stamp, begin)
    comparison = compared(plan, table, options, stamps, has)
    confidence = np.asarray(found.column("confidence").to_numpy())
    if plan.query.is_ordered:
        shown = found.slice(0, SHOWN_MATCHES)
    else:
        shown = found.take(pa.array(np.argsort(-confidence, kind="stable")[:SHOWN_MATCHES]))
    clock = Clock(plan, int(begin.min()) if len(begin) else 0)
    pictures = pictures_of(plan, table, shown, PARTS)
    missed, invented = comparison.missed, comparison.invented
    parts = [("found", shown, pictures)]
    for name, rows in (("missed", missed), ("invented", invented)):
        if rows is not None:
            kept = rows.slice(0, 1 if name == "missed" else INVENTED_SHOWN)
            parts.append((name, kept, pictures_of(plan, table, kept, PARTS)))
    events, places = _events(asked, plan, parts, clock, (begin, end), (stamps, has))
    keys = keys_of(plan, table, shown)
    facts: dict[str, Any] = {
        "title": asked.title or title_of(asked.query),
        "words": words_of(plan),
        "query": asked.query.text_with_values,
        "version": __version__,
        "clock": clock.described(),
        "variables": [
            {"name": part.variable, "types": list(part.types), "kleene": part.kleene}
            for part in plan.components
        ],
        "totals": _totals(confidence),
        "limit": plan.query.limit,
        "histogram": _histogram(confidence),
        "moments": _moments(plan, found, clock),
        "groups": _groups(plan, found),
        "columns": _columns(plan, shown, clock),
        "compared": None if comparison.raw is None else [key in comparison.keys for key in keys],
        "raw": _raw(comparison),
        "events": events,
        "plan": explain_plan(plan_facts(plan, table, doubts)),
        "assumed": _assumed(asked, plan, table, begin, end, comparison),
        "warnings": list(asked.warnings),
        "nothing": "" if found.num_rows else doubts.summary(),
    }
    for name, rows, drawn in parts:
        facts[f"{name}_drawn"] = _drawn(drawn, rows.num_rows, places)
        if name != "found":
            facts[name] = _columns(plan, rows, clock)
    return facts


def _stamps(
    plan: EvaluationPlan, table: pa.Table, stamp: str | None, begin: Int64
) -> tuple[Int64, NDArray[np.bool_]]:
    """Return the raw stamps in ticks, and which events have one."""
    if stamp is None:
        return begin, np.zeros(len(begin), dtype=np.bool_)
    if stamp not in table.column_names:
        raise OptionError(f"the events have no column {stamp}: they have {', '.join(table.column_names)}")
    column, wanted = table.column(stamp), table.schema.field(plan.names.lower).type
    if column.type != wanted:
        try:
            column = column.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise OptionError(
                f"column {stamp} is of type {column.type}: raw stamps are of the type of the times, {wanted}"
            ) from None
    has = np.asarray(column.is_valid())
    filled = pc.if_else(column.is_valid(), column, table.column(plan.names.lower))
    return plan.domain.ticks(filled), has


def _totals(confidence: NDArray[np.float64]) -> dict[str, float]:
    certain = confidence >= 1.0 - CONFIDENCE_TOLERANCE
    return {
        "matches": len(confidence),
        "expected": float(confidence.sum()),
        "certain": int(certain.sum()),
        "likely": int(((confidence >= LIKELY) & ~certain).sum()),
        "possible": int((confidence < LIKELY).sum()),
    }


def _histogram(confidence: NDArray[np.float64]) -> list[int]:
    counts: list[int] = np.histogram(np.clip(confidence, 0.0, 1.0), bins=BINS, range=(0.0, 1.0))[0].tolist()
    return counts


def _moments(plan: EvaluationPlan, found: pa.Table, clock: Clock) -> dict[str, Any] | None:
    """Return how many matches begin when, expected and possible: by equal parts of the time they cover."""
    if not found.num_rows:
        return None
    first, last = (plan.domain.ticks(found.column(f"range_{side}")) for side in ("lower", "upper"))
    middle = first + (last - first) // 2
    low, high = int(middle.min()), int(middle.max())
    width = _round_length((high - low) // MOMENTS + 1, plan.domain.tick_nanoseconds)
    low -= low % width
    count = (high - low) // width + 1
    place = (middle - low) // width
    weights = np.bincount(place, np.asarray(found.column("confidence").to_numpy()), minlength=count)
    return {
        "begin": low - clock.origin,
        "width": width,
        "expected": [round(value, 4) for value in weights.tolist()],
        "count": np.bincount(place, minlength=count).tolist(),
    }


def _round_length(least: int, tick: int | None) -> int:
    """Return a round number of ticks of some nanoseconds, at least so many."""
    if tick is not None:
        for length in _ROUND_LENGTHS:
            if length >= least * tick and length % tick == 0:
                return int(length // tick)
    return next(
        int(step * 10**power) for power in range(20) for step in (1, 2, 5) if step * 10**power >= least
    )


def _groups(plan: EvaluationPlan, found: pa.Table) -> list[dict[str, Any]]:
    """Return the matches by each partition attribute, and by other texts that RETURN gives."""
    groups = []
    confidence = np.asarray(found.column("confidence").to_numpy())
    returned = [item.name for item in plan.bound.returns if item.name in found.column_names]
    texts = [name for name in returned if pa.types.is_string(found.schema.field(name).type)]
    for name in dict.fromkeys((*plan.partition_attributes, *texts)):
        column = found.column(name).combine_chunks()
        encoded = column.dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        size = len(encoded.dictionary)
        if not 1 < size <= max(len(confidence) // 2, 1):
            continue
        codes = np.asarray(encoded.indices.fill_null(size)).astype(np.int64)
        counts = np.bincount(codes, minlength=size + 1)
        expected = np.bincount(codes, confidence, minlength=size + 1)
        values = [*encoded.dictionary.to_pylist(), None]
        best = [k for k in np.argsort(-counts, kind="stable").tolist() if counts[k]][:TOP]
        groups.append(
            {
                "name": name,
                "distinct": int((counts > 0).sum()),
                "values": [
                    {
                        "value": _plain(values[k]),
                        "count": int(counts[k]),
                        "expected": round(float(expected[k]), 4),
                    }
                    for k in best
                ],
            }
        )
    return groups


def _columns(plan: EvaluationPlan, rows: pa.Table, clock: Clock) -> list[dict[str, Any]]:
    """Return the columns of matches, what is asked for first."""
    own = [component.variable for component in plan.components]
    ends = ["confidence", "range_lower", "range_upper"]
    others = [name for name in rows.column_names if name not in (*own, *ends)]
    columns = []
    for name in (*ends, *others, *own):
        if name not in rows.column_names:
            continue
        column = rows.column(name)
        if name in ends[1:]:
            values: list[Any] = clock.relative(plan.domain.ticks(column))
            kind = "time"
        else:
            values = [_plain(value) for value in column.to_pylist()]
            kind = "number" if _is_number(column.type) else "text"
        role = "event" if name in own else "end" if name in ends else "value"
        columns.append({"name": name, "kind": kind, "role": role, "values": values})
    return columns


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it, and a page show it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [_plain(part) for part in value[:LONGEST_TEXT]]
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ..."


def _events(
    asked: Asked,
    plan: EvaluationPlan,
    parts: Iterable[tuple[str, pa.Table, Pictures]],
    clock: Clock,
    interval: tuple[Int64, Int64],
    stamps: tuple[Int64, NDArray[np.bool_]],
) -> tuple[dict[str, Any], Int64]:
    """Return the events that are drawn, column by column, and for each row of the table its place there."""
    table, names = asked.table, plan.names
    used = [np.concatenate((drawn.row, drawn.spoiling)) for _, _, drawn in parts]
    rows = np.unique(np.concatenate(used))
    places = np.full(table.num_rows, -1)
    places[rows] = np.arange(len(rows))
    taken = table.take(pa.array(rows))
    model = {names.type, names.id, names.lower, names.upper, names.pmf, names.tick, asked.stamp}
    model.update(names.clocks if plan.clocks else ())
    attributes = [name for name in taken.column_names if name not in model]
    stamp, has = stamps[0][rows], stamps[1][rows]
    found = {
        "type": taken.column(names.type).cast(pa.string()).to_pylist(),
        "id": [_plain(value) for value in taken.column(names.id).to_pylist()],
        "lower": clock.relative(interval[0][rows]),
        "upper": clock.relative(interval[1][rows]),
        "stamp": [value if there else None for value, there in zip(clock.relative(stamp), has, strict=True)],
        "attributes": [
            {"name": name, "values": [_plain(value) for value in taken.column(name).to_pylist()]}
            for name in attributes
        ],
        **_clocks(plan, taken, interval[1][rows] - interval[0][rows]),
    }
    return found, places


def _clocks(plan: EvaluationPlan, events: pa.Table, width: Int64) -> dict[str, list[Any]]:
    """Return the clock of each event, null for none, and whether its time by the clock is certain."""
    if not plan.clocks:
        return {"clock": [None] * len(width), "read": [False] * len(width)}
    source, low, high = (events.column(name) for name in plan.names.clocks)
    offset = plan.domain.lengths(high) - plan.domain.lengths(low)
    return {
        "clock": [None if value is None else str(_plain(value)) for value in source.to_pylist()],
        "read": (width == offset).tolist(),
    }


def _drawn(pictures: Pictures, count: int, places: Int64) -> list[list[Any]]:
    """Return for each match its events, [variable, place, shades], and the places of what could spoil it."""
    drawn: list[list[Any]] = [[[], []] for _ in range(count)]
    for k, (match, row) in enumerate(zip(pictures.match.tolist(), pictures.row.tolist(), strict=True)):
        share = pictures.share[pictures.start[k] : pictures.start[k + 1]]
        most = share.max(initial=0.0)
        shades = np.rint(share / most * (len(LEVELS) - 1)).astype(int).tolist() if most > 0.0 else []
        text = "".join(LEVELS[level] for level in shades)
        drawn[match][0].append([pictures.variable[k], int(places[row]), text])
    for match, row in zip(pictures.spoiled.tolist(), pictures.spoiling.tolist(), strict=True):
        if len(drawn[match][1]) < SPOILING_SHOWN:
            drawn[match][1].append(int(places[row]))
    return drawn


def _raw(comparison: Comparison) -> dict[str, Any]:
    if comparison.raw is None or comparison.missed is None or comparison.invented is None:
        return {"matches": None}
    return {
        "matches": comparison.raw.num_rows,
        "missed": comparison.missed.num_rows,
        "invented": comparison.invented.num_rows,
        "stamped": comparison.stamped,
    }


def _independence(plan: EvaluationPlan, table: pa.Table) -> str:
    if not plan.clocks:
        return "The times of different events are independent of each other."
    source = table.column(plan.names.source)
    named, clocks = len(source) - source.null_count, pc.count_distinct(source).as_py()
    return (
        f"{counted(named, 'event')} of {counted(clocks, 'clock')}: events of one clock move together by its "
        "offset, of which every tick is equally likely. Otherwise times are independent of each other."
    )


def _assumed(
    asked: Asked, plan: EvaluationPlan, table: pa.Table, begin: Int64, end: Int64, comparison: Comparison
) -> list[str]:
    """Return what the answer takes for granted."""
    domain, names = plan.domain, plan.names
    lines = [*asked.notes]
    tick = domain.tick_nanoseconds
    lines.append("A tick has no length in time." if tick is None else f"A tick is {format_duration(tick)}.")
    lengths = end - begin
    certain = int((lengths == 0).sum())
    lines.append(f"{counted(table.num_rows, 'event')}, {certain:,} of them with a certain time.")
    types = table.column(names.type).cast(pa.string())
    for kind, count in Counter(types.to_pylist()).most_common(TOP):
        own = lengths[np.asarray(pc.equal(types, kind))]
        low, middle, high = (int(value) for value in (own.min(), np.median(own), own.max()))

        def length(ticks: int) -> str:
            return counted(ticks, "tick") if tick is None else format_duration(ticks * tick)

        spread = (
            length(high)
            if low == high
            else f"{length(low)} to {length(high)}, {length(middle)} in the middle"
        )
        lines.append(f"{kind}: {counted(count, 'event')}; from first to last possible tick {spread}.")
    given = names.pmf in table.column_names and table.column(names.pmf).null_count < table.num_rows
    pmfs = table.num_rows - table.column(names.pmf).null_count if given else 0
    lines.append(
        f"{counted(pmfs, 'event')} with probabilities of their own; else every tick is equally likely."
        if pmfs
        else "Every tick of an interval is equally likely."
    )
    lines.append(_independence(plan, table))
    if (exists := existence(table, names.probability)) is not None:
        doubtful = counted(int((~exists.is_certain).sum()), "event")
        lines.append(f"{doubtful} may not have happened, each by itself, as their probabilities say.")
    if comparison.stamped < comparison.events:
        rest = comparison.events - comparison.stamped
        which = "Every event" if not comparison.stamped else f"{counted(rest, 'event')} without a stamp"
        lines.append(f"Raw stamps: {which} stands in the middle of its interval there.")
    return lines
