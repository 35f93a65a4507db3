"""The facts of a report: everything gathered, as plain values for the page."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.grouping import BOUND_COLUMNS
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.plurals import counted
from uncertain_cep.reporting.calibrated import Calibration
from uncertain_cep.reporting.comparison import stamps_of
from uncertain_cep.reporting.gathered import Answer, Moments, ReportRequest, TraceFacts
from uncertain_cep.reporting.in_words import title_of, words_of, words_of_groups
from uncertain_cep.reporting.lines_of_events import LinesOfEvents
from uncertain_cep.reporting.match_factors import Steps
from uncertain_cep.reporting.metric_thresholds import thresholds_of
from uncertain_cep.reporting.nearby import SPOILING_SHOWN, bounds_of_spans, lane_of
from uncertain_cep.reporting.occurrences import Occurrences
from uncertain_cep.reporting.pair_orders import drawn_together, pair_orders
from uncertain_cep.results.pictures import Pictures
from uncertain_cep.running.installation import VERSION
from uncertain_cep.timeline.durations import format_duration
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS
from uncertain_cep.traces.frames import as_arrow

__all__ = ["report_facts"]

Int64 = NDArray[np.int64]

LONGEST_TEXT: Final = 300
"""Characters of a value that are shown."""

LEVELS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are handed to the page: ticks behind the first one."""

    plan: EvaluationPlan
    origin: int

    def relative(self, ticks: Int64) -> list[int]:
        """Return ticks as the page counts them."""
        ticks_from_origin: list[int] = (ticks - self.origin).tolist()
        return ticks_from_origin

    def described(self) -> dict[str, Any]:
        """Return the values that the page needs to show times."""
        domain = self.plan.domain
        if domain.unit == "tick" or domain.tick_nanoseconds is None:
            # As text: a script has no whole numbers beyond 2**53.
            return {"kind": "tick", "origin": str(self.origin)}
        first = self.origin * domain.tick_nanoseconds
        return {
            "kind": "stamp",
            "zone": "UTC" if domain.timezone is not None else "",
            "ms": first // 10**6,
            "us": first % 10**6 / 1000,
            "tick": domain.tick_nanoseconds / 1000,
        }


def report_facts(request: ReportRequest, answer: Answer) -> dict[str, Any]:
    """Return the values of an answer that a page shows."""
    plan = answer.plan
    clock = Clock(plan, answer.trace.first)
    events, places = _events(request, answer, clock)
    facts: dict[str, Any] = {
        "title": request.title or title_of(request.query),
        "words": [*words_of(plan), *words_of_groups(request.query)],
        "query": request.query.text_with_values,
        "version": VERSION,
        "clock": clock.described(),
        "variables": [
            {"name": part.variable, "types": list(part.types), "kleene": part.kleene}
            for part in plan.components
        ],
        "match_columns": [*plan.partition_attributes, *(part.variable for part in plan.components)],
        "totals": answer.totals,
        "certain_from": CERTAIN,
        "limit": plan.query.limit,
        "chosen": _chosen(plan),
        "histogram": answer.histogram,
        "moments": _moments(answer.moments, clock),
        "groups": [
            {
                "name": name,
                "distinct": distinct,
                "values": [
                    {
                        "value": _plain(one.value),
                        "count": one.matches,
                        "expected": round(one.expected, 4),
                        "happened": one.happened,
                    }
                    for one in groups
                ],
                "cells": [[*map(_chance, one.by_time)] for one in groups] if groups[0].by_time else None,
            }
            for name, distinct, groups in answer.groups
        ],
        "compared": answer.in_raw,
        "raw": answer.raw if answer.in_raw is None else answer.raw | {"stamped": answer.trace.stamped},
        "events": events,
        "calibration": _calibration(request.calibration or answer.calibration),
        "thresholds": [one._asdict() for one in thresholds_of(plan, answer.table.schema)],
        "lane": lane_of(plan, answer.table.schema),
        "plan": answer.explained,
        "assumed": _assumed(request, plan, answer.trace),
        "warnings": list(request.warnings),
        "nothing": answer.nothing,
        "occurrences": answer.occurrences and _occurrences(answer.occurrences, clock, answer.sentences),
        "shared": answer.shared
        and _occurrences(answer.shared.groups, clock, answer.shared.sentences)
        | {"over": answer.shared.over, "total": answer.shared.total},
    }
    facts["orders"] = _orders(request, answer, places)
    facts["lines"] = answer.lines and _lines(answer.lines, places)
    for name, rows, drawn in answer.parts:
        facts[f"{name}_nearby"] = [
            [one.total, places[one.row].tolist()] for one in answer.nearby.get(name, ())
        ]
        facts[f"{name}_why"] = [_steps(one) for one in answer.factors.get(name, ())]
        facts[f"{name}_drawn"] = _drawn(answer, drawn, rows.num_rows, places, clock)
        facts["columns" if name == "found" else name] = _columns(plan, rows, clock)
    return facts


def _calibration(result: Calibration | None) -> dict[str, Any] | None:
    """Return how often answers happened, by bins of what was said; None if there are none to judge."""
    if result is None or not result.count:
        return None
    return {"sentence": result.sentence, "bins": as_arrow(result.bins).to_pylist()}


def _orders(request: ReportRequest, answer: Answer, places: Int64) -> dict[str, list[Any]] | None:
    """Return the places of pairs of events, and how likely each of the two was first."""
    groups = answer.shared.groups if answer.shared else answer.occurrences
    sets = [
        rows
        for name, _, pictures in answer.parts
        if name != "invented"
        for rows in drawn_together(
            pictures, SPOILING_SHOWN, groups.of_match if groups and name == "found" else None
        )
    ]
    orders = pair_orders(answer.plan, answer.table, sets, request.options)
    return orders and {
        "x": places[orders.x].tolist(),
        "y": places[orders.y].tolist(),
        "before": [*map(_chance, orders.chances.before.tolist())],
        "after": [*map(_chance, orders.chances.after.tolist())],
    }


def _lines(lines: LinesOfEvents, places: Int64) -> dict[str, Any]:
    """Return the rows of files that are shown, and for each event that has one, its file and row."""
    files = list(dict.fromkeys(file for file, _ in lines.text))
    return {
        "files": files,
        "texts": [
            [[row, text] for (of, row), text in sorted(lines.text.items()) if of == file] for file in files
        ],
        "of": [[int(places[event]), files.index(file), row] for event, (file, row) in lines.of_event.items()],
    }


def _chance(value: float) -> float:
    """Return a probability, or a sum of these, of four digits; certain only if it was."""
    short = float(f"{value:.4g}")
    return short if (short >= CERTAIN) == (value >= CERTAIN) else _plain(value)


def _steps(steps: Steps) -> dict[str, Any]:
    """Return factors as columns; the last product is the confidence, which the matches have.

    Products are rounded, but not so that a factor seems certain that is not, nor the other way round.
    """
    exact = steps.product.tolist()
    rounded = [[_plain(value) for value in exact[-1]]]
    for here, then in zip(reversed(exact[:-1]), reversed(exact[1:]), strict=True):
        row = []
        for value, later, shown in zip(here, then, rounded[-1], strict=True):
            short = float(f"{value:.7g}")
            if later >= CERTAIN * value:
                row.append(shown)
            elif shown >= CERTAIN * short or (short >= CERTAIN) != (value >= CERTAIN):
                row.append(_plain(value))
            else:
                row.append(short)
        rounded.append(row)
    return {"what": steps.what, "match": steps.match.tolist(), "product": rounded[:0:-1]}


def _occurrences(groups: Occurrences, clock: Clock, sentences: Sequence[str]) -> dict[str, Any]:
    """Return the groups, and for each match that is shown the number of its values of BY."""
    plan, rows = groups.plan, groups.rows
    clause = plan.query.probability
    assert clause is not None
    lower, upper = (rows.column(name).to_pylist() for name in BOUND_COLUMNS)
    every = plan.bound.every
    return {
        "at_least": clause.at_least,
        "keys": [
            {"name": key.column, "values": [_plain(value) for value in rows.column(key.column).to_pylist()]}
            for key in plan.bound.keys
        ],
        "every": every,
        "bucket": None if every is None else clock.relative(plan.domain.ticks(rows.column("bucket"))),
        "probability": rows.column(clause.name).to_pylist(),
        "lower": lower,
        "upper": upper,
        "key": groups.key.tolist(),
        "of_match": groups.of_match.tolist(),
        "matches": groups.matches.tolist(),
        "expected": [round(value, 4) for value in groups.expected.tolist()],
        "best": groups.best.tolist(),
        "decides": [*sentences],
    }


def _chosen(plan: EvaluationPlan) -> list[str]:
    """Return the clauses that leave matches out, without which the answer is compared with that on stamps."""
    query = plan.query
    clauses = {
        "HAVING": query.having is not None or query.min_confidence is not None,
        "LIMIT": query.limit is not None,
        "OUTPUT NON OVERLAPPING": query.non_overlapping,
    }
    return [name for name, there in clauses.items() if there]


def _moments(moments: Moments | None, clock: Clock) -> dict[str, Any] | None:
    """Return how many matches begin when, expected and possible."""
    return moments and {
        "begin": moments.begin - clock.origin,
        "width": moments.width,
        "expected": [round(value, 4) for value in moments.expected.tolist()],
        "count": moments.matches.tolist(),
    }


def _columns(plan: EvaluationPlan, rows: pa.Table, clock: Clock) -> list[dict[str, Any]]:
    """Return the columns of matches, what is asked for first."""
    variables = [component.variable for component in plan.components]
    ends = ["confidence", "range_lower", "range_upper"]
    further = [name for name in rows.column_names if name not in (*variables, *ends)]
    columns = []
    for name in (*ends, *further, *variables):
        if name not in rows.column_names:
            continue
        column = rows.column(name)
        if name in ends[1:]:
            values: list[Any] = clock.relative(plan.domain.ticks(column))
            kind = "time"
        else:
            values = [_plain(value) for value in column.to_pylist()]
            kind = "number" if _is_number(column.type) else "text"
        role = "event" if name in variables else "end" if name in ends else "value"
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


def _events(request: ReportRequest, answer: Answer, clock: Clock) -> tuple[dict[str, Any], Int64]:
    """Return the events that are drawn, column by column, and for each row of the table its place there."""
    plan, table, names = answer.plan, answer.table, answer.plan.names
    drawn = [part for _, _, one in answer.parts for part in (one.row, one.spoiling)]
    rows = np.unique(np.concatenate([*drawn, *(one.row for part in answer.nearby.values() for one in part)]))
    places = np.full(table.num_rows, -1)
    places[rows] = np.arange(len(rows))
    taken = table.take(pa.array(rows))
    model = {names.type, names.id, names.lower, names.upper, names.pmf, names.tick, request.stamp}
    model.update(
        (*plan.clock_columns(taken.column_names), *((*SPAN_COLUMNS, *SPAN_LAWS) if plan.lasting else ()))
    )
    attributes = [name for name in taken.column_names if name not in model]
    begin, end = plan.domain.ticks(taken.column(names.lower)), plan.domain.ticks(taken.column(names.upper))
    stamp, has = stamps_of(plan, taken, request.stamp)
    spans = [ends and clock.relative(np.array(ends)) for ends in bounds_of_spans(plan, taken)]
    columns = {
        "spans": spans if any(spans) else None,
        "type": taken.column(names.type).cast(pa.string()).to_pylist(),
        "id": [_plain(value) for value in taken.column(names.id).to_pylist()],
        "lower": clock.relative(begin),
        "upper": clock.relative(end),
        "stamp": [value if there else None for value, there in zip(clock.relative(stamp), has, strict=True)],
        "attributes": [
            {"name": name, "values": [_plain(value) for value in taken.column(name).to_pylist()]}
            for name in attributes
        ],
        **_clocks(plan, taken, end - begin),
    }
    return columns, places


def _clocks(plan: EvaluationPlan, events: pa.Table, width: Int64) -> dict[str, list[Any]]:
    """Return the clock of each event, null for none, and whether its time by the clock is certain."""
    if (name := plan.clock_names.source) is None:
        return {"clock": [None] * len(width), "read": [False] * len(width)}
    source = events.column(name)
    low, high = plan.domain.offsets(events, plan.names)
    return {
        "clock": [None if value is None else str(_plain(value)) for value in source.to_pylist()],
        "read": (width == high - low).tolist(),
    }


def _drawn(answer: Answer, pictures: Pictures, count: int, places: Int64, clock: Clock) -> list[list[Any]]:
    """Return for each match its events and the places of what could spoil it.

    An event is [variable, place, shades]. Where ticks at its ends have no probability, the first and last
    tick that the shades divide follow.
    """
    names, domain = answer.plan.names, answer.plan.domain
    rows = pa.array(pictures.row)
    lower, upper = (domain.ticks(answer.table.column(name).take(rows)) for name in (names.lower, names.upper))
    cut = (lower != pictures.first) | (upper != pictures.last)
    drawn: list[list[Any]] = [[[], []] for _ in range(count)]
    for k, (match, row) in enumerate(zip(pictures.match.tolist(), pictures.row.tolist(), strict=True)):
        shades = np.rint(pictures.density(k) * (len(LEVELS) - 1)).astype(int).tolist()
        text = "".join(LEVELS[level] for level in shades) if any(shades) else ""
        ends = clock.relative(np.array([pictures.first[k], pictures.last[k]])) if cut[k] else []
        drawn[match][0].append([pictures.variable[k], int(places[row]), text, *ends])
    for match, row in zip(pictures.spoiled.tolist(), pictures.spoiling.tolist(), strict=True):
        if len(drawn[match][1]) < SPOILING_SHOWN:
            drawn[match][1].append(int(places[row]))
    return drawn


def _independence(plan: EvaluationPlan, trace: TraceFacts) -> str:
    if plan.clock_names.source is None:
        return "The times of different events are independent of each other."
    return (
        f"{counted(trace.named, 'event')} of {counted(trace.clocks, 'clock')}: events of one clock move "
        "together by its offset, of which every tick is equally likely. Otherwise times are independent of "
        "each other."
    )


def _assumed(request: ReportRequest, plan: EvaluationPlan, trace: TraceFacts) -> list[str]:
    """Return the assumptions of the answer."""
    lines = [*request.notes]
    tick = plan.domain.tick_nanoseconds
    lines.append("A tick has no length in time." if tick is None else f"A tick is {format_duration(tick)}.")
    lines.append(f"{counted(trace.events, 'event')}, {trace.certain:,} of them with a certain time.")

    def length(ticks: int) -> str:
        return counted(ticks, "tick") if tick is None else format_duration(ticks * tick)

    for kind in trace.kinds:
        low, middle, high = kind.shortest, int(kind.middle), kind.longest
        spread = (
            length(high)
            if low == high
            else f"{length(low)} to {length(high)}, {length(middle)} in the middle"
        )
        lines.append(
            f"{kind.type}: {counted(kind.events, 'event')}; from first to last possible tick {spread}."
        )
    lines.append(
        f"{counted(trace.listed, 'event')} with probabilities of their own; "
        "else every tick is equally likely."
        if trace.listed
        else "Every tick of an interval is equally likely."
    )
    lines.append(_independence(plan, trace))
    if plan.known_until is not None:
        end = shown_tick(plan.known_until, plan.domain)
        lines.append(
            f"All events are known until {end}: matches with a gap that can end behind it are left out."
        )
    if trace.doubtful:
        doubtful = counted(trace.doubtful, "event")
        lines.append(f"{doubtful} may not have happened, each by itself, as their probabilities say.")
    if trace.stamped < trace.events:
        unstamped = trace.events - trace.stamped
        which = (
            f"Of {counted(unstamped, 'event')} there is no stamp" if trace.stamped else "No event has a stamp"
        )
        lines.append(f"{which}: in the comparison each stands in the middle of its interval.")
    return lines
