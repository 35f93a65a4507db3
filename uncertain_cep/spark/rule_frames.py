"""Rules over a Spark DataFrame: its events are cut for all rules in one pass, and matched rule by rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from uncertain_cep.errors import OptionError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.query.walks import components_of
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.rule_sets.rule_matching import (
    RULE,
    PlannedRule,
    joint_schema,
    plans_of,
    warn_of_types,
)  # fmt: skip
from uncertain_cep.rule_sets.rule_pieces import (
    SpreadRule,
    cut_for_rules,
    matches_in_pieces,
    told_of_rules,
)  # fmt: skip
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED
from uncertain_cep.spark.dataframes import (
    column,
    from_arrow_schema,
    in_ticks,
    in_workers,
    noted_schema,
    plainly_named,
    whole_numbers,
)  # fmt: skip
from uncertain_cep.spark.jobs import errors_of_workers
from uncertain_cep.spark.spoiled_values import naming_spoiled_values
from uncertain_cep.spark.streamed import layout_of
from uncertain_cep.streaming.cutting import PIECES
from uncertain_cep.streaming.stream_layout import StreamOptions, usual_length

__all__ = ["alerts_frame"]

_BUCKETS: Final = 8
"""How many tasks can match the events of one rule."""


@errors_of_workers()
def alerts_frame(frame: DataFrame, rules: Rules, options: MatchOptions) -> DataFrame:
    """Return the alerts of rules as `uncertain_cep.match` does for other frames, in no particular order.

    The events are read once for the extremes of their times, and once for all rules when the result is used.

    Raises
    ------
    QueryError, OptionError
        With what keeps each rule from these events, or from a frame that is cut into slices of time.
    """
    if frame.isStreaming:
        raise OptionError(
            "rules are not asked of streaming frames yet: 'uncertain-cep stream RULES' and RuleMatcher ask "
            "them of events as they come, in one process"
        )
    if options.known_until is not None:
        raise OptionError("known_until= with rules is for frames in this process")
    if not len(rules):
        raise OptionError("there is no rule")
    frame = whole_numbers(frame, options.names)
    events = noted_schema(frame, options.names)
    with naming_spoiled_values(frame):
        planned = plans_of(rules, events, options)
    longest, span = _extremes(frame, planned)
    spread = _spread(frame, planned, options, longest, span)
    schema = joint_schema((one.rule.name, one.layout.plan.output_schema) for one in spread)
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
    cut = partial(cut_for_rules, rules=spread, schema=of_events)
    pieces = in_workers(plainly_named(needed), cut, from_arrow_schema(PIECES))
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
    frame: DataFrame, planned: Sequence[PlannedRule], options: MatchOptions, longest: int, span: int
) -> list[SpreadRule]:
    """Return the rules, each with the layout of its events."""
    spread, refusals = [], []
    hashes: dict[tuple[str, ...], str] = {}
    taken = {name.lower() for name in frame.columns}
    for one in planned:
        length = max(usual_length(one.plan, longest), span // _BUCKETS)
        stream = StreamOptions(longest, slice_length=length, buckets=_BUCKETS)
        try:
            layout = layout_of(frame, one.rule.query, options, stream)
        except OptionError as error:
            refusals.append(f"rule {one.rule.name!r}: on Spark rules are matched as a stream is: {error}")
            continue
        hash_name = hashes.setdefault(layout.spread_by, f"hash{len(hashes)}")
        while hash_name.lower() in taken:
            hash_name = hashes[layout.spread_by] = f"{hash_name}_"
        spread.append(SpreadRule(one.rule, layout, hash_name, one.types, one.apart))
    if refusals:
        raise OptionError("\n".join(refusals))
    return spread
