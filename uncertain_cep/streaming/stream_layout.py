"""How the state of a stream is laid out, and when its slices are evaluated: what workers are told."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.candidates.selection import reach_of
from uncertain_cep.config.limits import MAX_TICK, MOST_STREAM_COPIES
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan, MatchOptions
from uncertain_cep.plan.negated_reach import negated_reach
from uncertain_cep.plan.options import is_whole
from uncertain_cep.query import Query
from uncertain_cep.streaming.batch_clock import BatchClock
from uncertain_cep.streaming.stream_methods import ends_in_absence, refuse_open_groups
from uncertain_cep.streaming.watermark import types_that_matter
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import Duration, parse_duration

__all__ = [
    "CLOSE",
    "HEARTBEAT",
    "KIND",
    "LATE_ID",
    "LATE_TYPE",
    "METRICS",
    "RELEASE",
    "StreamLayout",
    "StreamOptions",
    "check_fingerprint",
    "differences",
    "refuse_what_needs_all",
]

HEARTBEAT: Final = "uncertain_cep.heartbeat"
"""The type of heartbeats: no event before their `lower` is to come; ``HEARTBEAT:TYPE`` is for one type."""

CLOSE: Final = "uncertain_cep.close"
"""The type of rows that end the stream: no event is to come."""

RELEASE: Final = "uncertain_cep.release"
"""The type of rows that have all matches told that no event to come can change, as a run ends."""

KIND: Final = "kind"
LATE_TYPE: Final = "late_type"
LATE_ID: Final = "late_id"
METRICS: Final = "uncertain_cep"
"""The default name of the counters of a batch in the progress of a streaming query."""
FORMAT: Final = 1
"""The version of the state's format. State of another version cannot be read."""

_STREAM_BUCKETS: Final = 8
"""Parts that the state of a stream on Spark has by default. Each costs some milliseconds a batch."""

_SLICE_REACHES: Final = 4
"""How long a slice of such a stream is by default, in the ticks that a match and an interval can take: each
event that is not the first of a match is kept 1.25 times on average."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options that a stream of Spark has beside those of a table.

    Attributes
    ----------
    largest_interval : str, timedelta or int
        Largest ``upper - lower`` of an event that is not late; an int is ticks.
    idle_after : str or timedelta or None
        After how long without events the bound on events to come moves on by the same length.
    duplicates : {"error", "drop"}
        Whether a row that equals another one is an error, or is dropped.
    slice_length : int or None
        Length of the slices of time in which the events are kept, ticks.
    buckets : int or None
        How many parts the state has.
    metrics : str
        The name of the counters in the progress of the query.
    checkpoint : str or path or None
        The folder with the state of rules that may be others than those asked now.
    """

    largest_interval: Duration | int | None = None
    idle_after: Duration | None = None
    duplicates: str = "error"
    slice_length: int | None = None
    buckets: int | None = None
    metrics: str = METRICS
    checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.duplicates not in ("error", "drop"):
            raise OptionError(f"duplicates={self.duplicates!r} is unknown: use error or drop")
        name: object = self.metrics
        if not isinstance(name, str) or not name:
            raise OptionError(f"metrics={name!r}: it must be a name")
        place: object = self.checkpoint
        if place is not None and not (isinstance(place, str | PathLike) and os.fspath(place)):
            raise OptionError(f"checkpoint={place!r}: it must be the folder of checkpointLocation")
        if self.idle_after is not None and not parse_duration(self.idle_after, what="idle_after"):
            raise OptionError("idle_after must be longer than 0")
        for name in ("slice_length", "buckets"):
            option = getattr(self, name)
            if option is not None and (not is_whole(option) or option < 1):
                raise OptionError(f"{name}={option!r}: it must be a whole number, at least 1")
        option = self.largest_interval
        if is_whole(option):
            if not 0 <= int(option) <= 2 * MAX_TICK:  # type: ignore[arg-type]
                raise OptionError(f"largest_interval={option}: it must be 0 or more whole ticks")
        elif option is not None:
            parse_duration(option, what="largest_interval")  # type: ignore[arg-type]

    @property
    def given(self) -> bool:
        """Whether an option differs from its default."""
        return self != StreamOptions()


def refuse_what_needs_all(plan: EvaluationPlan) -> None:
    """Raise OptionError if a query asks for what has no meaning before the end of a stream."""
    query = plan.query
    if query.order_by_confidence or query.limit is not None:
        raise OptionError(
            "ORDER BY and LIMIT choose among all matches, and a stream has not had all: leave them out, use "
            "HAVING CONFIDENCE >= x, or order the table that the stream writes"
        )
    if query.non_overlapping:
        raise OptionError(
            "OUTPUT NON OVERLAPPING needs all matches, and a stream has not had all: leave it out"
        )
    negated_reach(plan)
    refuse_open_groups(plan)
    if plan.bound.days is not None:
        raise OptionError(
            "EVERY of days of a time zone does not support streams of Spark: their slices are of one "
            "length, and such days are not; count by hours, or in UTC, or take uc.IncrementalMatcher"
        )
    if plan.counts and plan.bound.every is None:
        raise OptionError(
            "RETURN EXPECTED COUNT needs all matches, and a stream has not had all: count by buckets of "
            "time, such as RETURN EXPECTED COUNT EVERY 1 hour"
        )


def usual_length(plan: EvaluationPlan, largest: int) -> int:
    """Return the usual length of a slice, ticks; ``largest`` is the largest ``upper - lower`` of an event."""
    return _SLICE_REACHES * (reach_of(plan)[1] + largest + 1)


@dataclass(frozen=True)
class StreamLayout:
    """The layout that all parts of the evaluation of a stream share.

    Attributes
    ----------
    plan : EvaluationPlan
    schema : pyarrow.Schema
        The columns of the events that are kept: those that the plan reads, and the tick if there is one.
    largest : int
        Largest ``upper - lower`` of an event that is not late, ticks.
    length : int
        Length of a slice, ticks. Slice s reports the matches whose owner's `lower` is in ``[s * length,
        (s + 1) * length)``, or the counts and groups whose first time is.
    buckets : int
        How many parts the state has: slice s of a key of hash h is in part ``(h + s) % buckets``.
    query : Query
        As it was written.
    matching : MatchOptions
        Those of the plan.
    drops : bool
        Whether identical rows are dropped.
    idle : (int, int) or None
        Milliseconds without events, and the ticks by which the bound moves on then.
    rule : str
        The rule that the query is of, with its suppression; empty for a query alone.
    begun : BatchClock or None
        The clock of the stream where the query is asked later than others.
    only_late : bool
        Whether the part of the state tells late events alone, whatever the query is.
    """

    plan: EvaluationPlan
    schema: pa.Schema
    largest: int
    length: int
    buckets: int
    query: Query
    matching: MatchOptions
    drops: bool = False
    idle: tuple[int, int] | None = None
    rule: str = ""
    begun: BatchClock | None = None
    only_late: bool = False

    @classmethod
    def of(
        cls,
        plan: EvaluationPlan,
        schema: pa.Schema,
        options: StreamOptions,
        query: Query,
        matching: MatchOptions,
    ) -> StreamLayout:
        """Return the layout of a stream.

        Raises
        ------
        OptionError
            If an option does not fit the query or the tick.
        """
        refuse_what_needs_all(plan)
        if options.largest_interval is None:
            raise OptionError(
                "a stream needs largest_interval=: the largest upper - lower of an event, such as "
                'largest_interval="10 s"; what is longer is late'
            )
        largest = _ticks(options.largest_interval, plan.domain, "largest_interval")
        length = options.slice_length or usual_length(plan, largest)
        if plan.bound.every is not None:
            every = plan.bound.every
            length = -(-length // every) * every
        idle = None
        if options.idle_after is not None:
            nanoseconds = parse_duration(options.idle_after, what="idle_after")
            idle = max(nanoseconds // 1_000_000, 1), _ticks(options.idle_after, plan.domain, "idle_after")
        buckets = options.buckets or _STREAM_BUCKETS
        drops = options.duplicates == "drop"
        layout = cls(plan, schema, largest, length, buckets, query, matching, drops, idle)
        copies = (layout.back + layout.reach + largest) // length + 2
        if copies > MOST_STREAM_COPIES:
            raise OptionError(
                f"slice_length={length}: each event would be kept in up to {copies:,} slices; with this "
                f"window and largest_interval choose at least {(layout.back + layout.reach) // 100 + 1}"
            )
        return layout

    @property
    def reach(self) -> int:
        """How many ticks a match can reach beyond the end of its slice."""
        return reach_of(self.plan)[1] + (0 if self.has_buckets else self.largest)

    @property
    def back(self) -> int:
        """How many ticks before its slice an event that matters to its matches can end."""
        return reach_of(self.plan)[0]

    @property
    def spread_by(self) -> tuple[str, ...]:
        """The columns whose hash spreads events over parts; a group's counts and matches are in one part."""
        keys, bound = self.plan.shared_keys, self.plan.bound
        if not self.has_buckets:
            return keys
        by = {*bound.by, *(key.attribute for key in bound.keys if key.variable is None)}
        return tuple(key for key in keys if key in by)

    @property
    def has_buckets(self) -> bool:
        """Whether a slice reports buckets of time, not the matches of some events."""
        return self.plan.bound.every is not None

    @property
    def tells_at_once(self) -> bool:
        """Whether the matches of an event are told as soon as they are final, before others of its slice.

        They are where the pattern ends in an absence: such a match is an alert.
        """
        return not self.has_buckets and ends_in_absence(self.plan)

    @property
    def clock(self) -> BatchClock:
        """The clock of a stream before the first event that the query is asked of."""
        return self.begun or BatchClock.of(self.plan.domain, self.largest)

    @cached_property
    def types(self) -> frozenset[str]:
        """The types of the events that matter; empty if all types do."""
        return types_that_matter(self.plan)

    @cached_property
    def slice_column(self) -> str:
        """The name of a column that the events do not have."""
        name = "slice"
        while name in self.schema.names:
            name += "_"
        return name

    def is_final(self, number: int, owner_upper: int, bound: int) -> bool:
        """Return whether a slice's matches are final, as no event to come begins before ``bound``.

        ``owner_upper`` is the largest `upper` of the events that matches belong to.
        """
        end = (number + 1) * self.length
        if self.has_buckets:
            return bound >= end + self.reach
        return bound >= end and bound > owner_upper + self.reach - self.largest

    def final_until(self, bound: int) -> int:
        """Return a tick before which owners of final matches end, as no event begins before ``bound``."""
        return bound - reach_of(self.plan)[1]

    def last_over(self, bound: int) -> int:
        """Return the last slice that is final whatever it holds; no event to come begins before ``bound``."""
        return (bound - self.reach) // self.length - 1

    @property
    def id_keys(self) -> tuple[tuple[str, ...], ...]:
        """The attributes within which ids are unique, of each branch."""
        return tuple({branch.partition_attributes: None for branch in self.plan.or_free})

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the result: the kind, those of matches, and the type and id of late events."""
        names, domain = self.plan.names, self.plan.domain
        schema = self.plan.output_schema
        for name in ("range_lower", "range_upper"):
            if name not in schema.names:
                schema = schema.append(pa.field(name, domain.arrow_type))
        taken = {name.lower() for name in schema.names} & {KIND, LATE_TYPE, LATE_ID}
        if taken:
            raise OptionError(
                f"{', '.join(sorted(taken))}: the rows of a stream have columns of that name: call the "
                "variable, the attribute or what RETURN gives otherwise"
            )
        late = [pa.field(LATE_TYPE, pa.string()), pa.field(LATE_ID, self.schema.field(names.id).type)]
        return pa.schema([pa.field(KIND, pa.string()), *schema, *late])

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The values that two layouts must share, if one is to read the state of the other."""
        plan = self.plan
        if self.only_late:
            return {
                "format": FORMAT,
                "tick": plan.domain.describe(),
                "largest_interval": self.largest,
            }
        return {
            "format": FORMAT,
            "query": plan.query.text_with_values,
            "schema": {field.name: str(field.type) for field in self.schema},
            "columns": plan.model_columns(self.schema.names),
            "tick": plan.domain.describe(),
            "kleene": plan.kleene,
            "largest_interval": self.largest,
            "slice_length": self.length,
            "buckets": self.buckets,
        } | ({"rule": self.rule} if self.rule else {})

    @cached_property
    def mark(self) -> bytes:
        """The fingerprint as text, which every blob carries."""
        return json.dumps(self.fingerprint, sort_keys=True).encode()


def differences(held: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Return the differences between two fingerprints in words, an empty text if there are none."""
    names = [name for name in {**held, **expected} if held.get(name) != expected.get(name)]
    return "; ".join(f"{name} was {held.get(name)!r} and is {expected.get(name)!r}" for name in names)


def check_fingerprint(held: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise OptionError, with the differences, if state is that of another stream."""
    if difference := differences(held, expected):
        raise OptionError(
            f"the checkpoint is of another stream: {difference}. Go on with what it was made for, or begin "
            "with a new checkpoint folder and a new output folder"
        )


def _ticks(length: Duration | int, domain: TimeDomain, what: str) -> int:
    if is_whole(length):
        return int(length)  # type: ignore[arg-type]
    nanoseconds = parse_duration(length, what=what)  # type: ignore[arg-type]
    if domain.tick_nanoseconds is None:
        raise OptionError(
            f"{what}={length!r}: the times of this stream are plain ticks of unknown length: give the tick, "
            "such as tick='1ms'" + (", or the length in ticks" if what == "largest_interval" else "")
        )
    # An interval may be as long as the next whole tick.
    return -(-nanoseconds // domain.tick_nanoseconds)
