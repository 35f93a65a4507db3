"""Rules over a Spark DataFrame: its events are cut for all rules in one pass, and matched rule by rule.

So it is where the frame is streaming: one stateful operator has the parts of all rules, by rule and bucket.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.query.walks import components_of
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.rule_sets.rule_changes import Change, HeldRule, HeldRules, changed_names, texts_of
from uncertain_cep.rule_sets.rule_matching import (
    RULE,
    PlannedRule,
    joint_schema,
    plans_of,
    warn_of_types,
)  # fmt: skip
from uncertain_cep.rule_sets.rule_parts import RuleParts
from uncertain_cep.rule_sets.rule_pieces import (
    LATE_BUCKET,
    SpreadRule,
    cut_for_rules,
    matches_in_pieces,
    told_of_rules,
)  # fmt: skip
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED
from uncertain_cep.spark.dataframes import (
    arrow_schema,
    column,
    from_arrow_schema,
    in_ticks,
    in_workers,
    noted_schema,
    plainly_named,
    whole_numbers,
    with_span_bounds,
)  # fmt: skip
from uncertain_cep.spark.held_indices import held_indices
from uncertain_cep.spark.jobs import errors_of_workers
from uncertain_cep.spark.spoiled_values import naming_spoiled_values
from uncertain_cep.spark.stream_state import StreamState
from uncertain_cep.spark.streamed import check_state_store, held_pieces, layout_of, rows_of_stream
from uncertain_cep.streaming.cutting import PIECES
from uncertain_cep.streaming.stream_layout import StreamOptions, usual_length

__all__ = ["alerts_frame"]

_log: Final = logging.getLogger("uncertain_cep.alerts")

_BUCKETS: Final = 8
"""How many tasks can match the events of one rule."""


@errors_of_workers()
def alerts_frame(
    frame: DataFrame,
    rules: Rules,
    options: MatchOptions,
    stream: StreamOptions = StreamOptions(),  # noqa: B008
) -> DataFrame:
    """Return the alerts of rules as `uncertain_cep.match` does for other frames, in no particular order.

    The events are read once for the extremes of their times, and once for all rules when the result is used.
    ``stream`` is for streaming frames.

    Raises
    ------
    QueryError, OptionError
        With what keeps each rule from these events, or from a frame that is cut into slices of time.
    """
    if options.known_until is not None:
        raise OptionError("known_until= with rules is for frames in this process")
    if not len(rules):
        raise OptionError("there is no rule")
    if frame.isStreaming:
        return _stream_of_alerts(frame, rules, options, stream)
    frame = whole_numbers(frame, options.names)
    events = noted_schema(frame, options.names)
    with naming_spoiled_values(frame):
        planned = plans_of(rules, events, options)
    longest, span = _extremes(frame, planned)

    lengths = [max(usual_length(one.plan, longest), span // _BUCKETS) for one in planned]
    of_layouts = [StreamOptions(longest, slice_length=length, buckets=_BUCKETS) for length in lengths]
    spread = _spread(frame, planned, options, of_layouts)
    schema = joint_schema((one.rule.name, one.layout.plan.output_schema) for one in spread)
    pieces = _pieces(frame, spread, events)
    of_alerts = from_arrow_schema(schema)
    matches = in_workers(
        pieces.repartition("bucket"), partial(matches_in_pieces, rules=spread, schema=schema), of_alerts
    )
    if all(one.rule.suppress is None for one in spread):
        return matches
    schema = schema.append(pa.field(SUPPRESSED, pa.int64()))
    of_told = from_arrow_schema(schema)
    waiting = matches.withColumn(SUPPRESSED, f.lit(None).cast("long")).repartition(RULE)
    return in_workers(plainly_named(waiting), partial(told_of_rules, rules=spread, schema=schema), of_told)


def _stream_of_alerts(
    frame: DataFrame, rules: Rules, options: MatchOptions, stream: StreamOptions
) -> DataFrame:
    """Return the alerts of rules among the events of a streaming frame, and the late events."""
    check_state_store(frame.sparkSession)
    frame = with_span_bounds(whole_numbers(frame, options.names), options.names)
    events = schema_with_all_bounds(arrow_schema(frame, options.names), options.names.lower)
    held = HeldRules()
    if stream.checkpoint is not None:
        held = HeldRules.of(held_indices(frame.sparkSession, stream.checkpoint))
    places = held.followed_by(rules)
    with _naming_those_that_leave(places):
        planned = plans_of([one.rule for one in places], events, options)
    usual = max(_BUCKETS // len(rules), 1)

    def layout_options(one: HeldRule) -> StreamOptions:
        if one.leaves:
            return replace(stream, buckets=one.buckets, slice_length=one.length)
        # Alerts are told in one place.
        buckets = 1 if one.rule.suppress is not None else stream.buckets or one.buckets or usual
        return replace(stream, buckets=buckets)

    spread = _spread(frame, planned, options, [layout_options(one) for one in places])
    parts = RuleParts.following(held, places, spread)
    _log_change(parts.change, parts.rules)
    pieces = _pieces(frame, parts.rules, events, of_stream=True)
    evaluated = held_pieces(pieces, StreamState(parts), parts.idle)
    return rows_of_stream(evaluated, stream.metrics, parts.schema, [one.rule.name for one in parts.rules])


@contextmanager
def _naming_those_that_leave(places: Sequence[HeldRule]) -> Iterator[None]:
    """Note which rules are not those that were asked, where some cannot be planned for the events."""
    try:
        yield
    except UncertainCepError as error:
        if leaving := [one.rule.name for one in places if one.leaves]:
            error.add_note(
                f"rules of the checkpoint that still tell alerts before the change: {', '.join(leaving)}"
            )
        raise


def _log_change(change: Change, rules: Sequence[SpreadRule]) -> None:
    """Log how rules change, if they do; the tick is known behind the first batch."""
    if change.clock is not None:
        names = changed_names(change.before, texts_of(rules))
        _log.info("rules change at the tick that the counter changed_at gives: %s", names)


def _pieces(
    frame: DataFrame, spread: Sequence[SpreadRule], events: pa.Schema, *, of_stream: bool = False
) -> DataFrame:
    """Return the pieces of the events of a frame for all rules."""
    columns = dict.fromkeys(name for one in spread for name in one.layout.schema.names)
    hashed = {}
    for one in spread:
        keys = one.layout.spread_by
        hashes = f.xxhash64(*map(column, keys)) if keys else f.lit(0).cast("long")
        hashed[one.hash] = hashes.alias(one.hash)
    needed = frame.select(*map(column, columns), *hashed.values())
    of_events = pa.schema(
        [*(events.field(name) for name in columns), *(pa.field(name, pa.int64()) for name in hashed)]
    )
    cut = partial(cut_for_rules, rules=spread, schema=of_events, of_stream=of_stream)
    return in_workers(plainly_named(needed), cut, from_arrow_schema(PIECES))


def _extremes(frame: DataFrame, planned: Sequence[PlannedRule]) -> tuple[int, int]:
    """Return the longest interval, and the ticks that all of them span; warn of types that no event has."""
    plan = planned[0].plan
    names = plan.names
    lower, upper = in_ticks(plan, frame.schema, names.lower), in_ticks(plan, frame.schema, names.upper)
    named = {name for one in planned for part in components_of(one.plan.query.pattern) for name in part.types}
    types = column(names.type)
    there = f.collect_set(f.when(types.isin(*sorted(named)), types)) if named else f.array()
    row = frame.agg(
        f.max(upper - lower), f.min(lower), f.max(upper), f.count(f.lit(1)), there
    ).collect()[0]  # fmt: skip
    warn_of_types(planned, frozenset(row[4]), row[3])
    # Events with faults are named when they are cut.
    return max(row[0] or 0, 0), max((row[2] or 0) - (row[1] or 0), 0)


def _spread(
    frame: DataFrame,
    planned: Sequence[PlannedRule],
    options: MatchOptions,
    of_layouts: Sequence[StreamOptions],
) -> list[SpreadRule]:
    """Return the rules, each with the layout of its events."""
    spread: list[SpreadRule] = []
    refusals: dict[str, str] = {}
    hashes: dict[tuple[str, ...], str] = {}
    taken = {name.lower() for name in frame.columns}
    for one, stream in zip(planned, of_layouts, strict=True):
        try:
            layout = layout_of(frame, one.rule.query, options, stream)
        except OptionError as error:
            refusals[one.rule.name] = str(error)
            continue
        hash_name = hashes.setdefault(layout.spread_by, f"hash{len(hashes)}")
        while hash_name.lower() in taken:
            hash_name = hashes[layout.spread_by] = f"{hash_name}_"
        first = spread[-1].end if spread else LATE_BUCKET + 1
        spread.append(SpreadRule(one.rule, layout, hash_name, one.types, one.apart, first))
    if len(refusals) == len(planned) and len({*refusals.values()}) == 1:
        # It is the same in all rules, as where an option is missing.
        raise OptionError(next(iter(refusals.values())))
    if refusals:
        lines = (f"rule {name!r}: {text}" for name, text in refusals.items())
        raise OptionError("on Spark rules are matched as a stream is\n" + "\n".join(lines))
    return spread
