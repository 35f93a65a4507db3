"""The query with Polars ``join_where``; set POLARS_MAX_THREADS before this module is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import polars as pl

from benchmarks.peer_query import PeerQuery

__all__ = ["FORMULATIONS", "collect"]

Plan = tuple[pl.LazyFrame, bool]
Join = Callable[[pl.LazyFrame, pl.LazyFrame], pl.LazyFrame]


def collect(plan: Plan) -> pl.DataFrame:
    """Return the matches of a formulation."""
    frame, streaming = plan
    return frame.collect(engine="streaming" if streaming else "in-memory")


def _candidates(events: pl.DataFrame, query: PeerQuery) -> list[pl.LazyFrame]:
    return [
        events.lazy()
        .filter(pl.col("value") % divisor == 0)
        .select(pl.col("id").alias(f"i{j}"), "lower", "upper")
        for j, divisor in enumerate(query.divisors)
    ]


def _distinct(matches: pl.LazyFrame, j: int, earlier: Sequence[int]) -> pl.LazyFrame:
    return matches.filter(pl.all_horizontal([pl.col(f"i{k}") != pl.col(f"i{j}") for k in earlier]))


def _forward(events: pl.DataFrame, query: PeerQuery, join: Join) -> pl.LazyFrame:
    candidates = _candidates(events, query)
    partial_match = candidates[0].select(
        "i0", earliest=pl.col("lower") + 1, latest=pl.col("upper") + (query.slack + 1)
    )
    for j in range(1, query.length):
        partial_match = _distinct(join(partial_match, candidates[j]), j, range(j)).select(
            *(f"i{k}" for k in range(j + 1)),
            earliest=pl.max_horizontal("earliest", "lower") + 1,
            latest=pl.min_horizontal("latest", pl.col("upper") + query.slack) + 1,
        )
    return partial_match.select(f"i{k}" for k in range(query.length))


def _backward(events: pl.DataFrame, query: PeerQuery, join: Join) -> pl.LazyFrame:
    candidates = _candidates(events, query)
    last = query.length - 1
    partial_match = candidates[last].select(
        f"i{last}", latest=pl.col("upper") - 1, earliest=pl.col("lower") - (query.slack + 1)
    )
    for j in reversed(range(last)):
        later = range(j + 1, query.length)
        partial_match = _distinct(join(partial_match, candidates[j]), j, later).select(
            *(f"i{k}" for k in range(j, query.length)),
            latest=pl.min_horizontal("latest", "upper") - 1,
            earliest=pl.max_horizontal("earliest", pl.col("lower") - query.slack) - 1,
        )
    return partial_match.select(f"i{k}" for k in range(query.length))


def _two_inequalities(matches: pl.LazyFrame, candidates: pl.LazyFrame) -> pl.LazyFrame:
    return matches.join_where(
        candidates, pl.col("earliest") <= pl.col("upper"), pl.col("lower") <= pl.col("latest")
    )


# Polars has a faster join for `start <= point <= end` with one and the same point. Padding by the length
# of the interval brings both inequalities to that form, for each length in the stream by itself.
def _lower_in_range(matches: pl.LazyFrame, candidates: pl.LazyFrame, padding: int) -> pl.LazyFrame:
    return (
        matches.with_columns(start=pl.col("earliest") - padding)
        .join_where(candidates, pl.col("start") <= pl.col("lower"), pl.col("lower") <= pl.col("latest"))
        .filter(pl.col("earliest") <= pl.col("upper"))
    )


def _upper_in_range(matches: pl.LazyFrame, candidates: pl.LazyFrame, padding: int) -> pl.LazyFrame:
    return (
        matches.with_columns(end=pl.col("latest") + padding)
        .join_where(candidates, pl.col("earliest") <= pl.col("upper"), pl.col("upper") <= pl.col("end"))
        .filter(pl.col("lower") <= pl.col("latest"))
    )


def _by_length(
    matches: pl.LazyFrame,
    candidates: pl.LazyFrame,
    lengths: Sequence[int],
    join: Callable[[pl.LazyFrame, pl.LazyFrame, int], pl.LazyFrame],
) -> pl.LazyFrame:
    length = pl.col("upper") - pl.col("lower")
    return pl.concat([join(matches, candidates.filter(length == padding), padding) for padding in lengths])


def _chain(
    events: pl.DataFrame, query: PeerQuery, *, forward: bool, streaming: bool, join: Join | None = None
) -> Plan:
    if join is None:
        in_range = _lower_in_range if forward else _upper_in_range
        join = partial(_by_length, lengths=query.interval_lengths, join=in_range)
    chain = _forward if forward else _backward
    return chain(events, query, join), streaming


FORMULATIONS: Final[dict[str, Callable[[pl.DataFrame, PeerQuery], Plan]]] = {
    "forward chain": partial(_chain, forward=True, streaming=False, join=_two_inequalities),
    "backward chain": partial(_chain, forward=False, streaming=False, join=_two_inequalities),
    "backward chain, streaming": partial(_chain, forward=False, streaming=True, join=_two_inequalities),
    "forward chain of point-in-range joins, streaming": partial(_chain, forward=True, streaming=True),
    "backward chain of point-in-range joins, streaming": partial(_chain, forward=False, streaming=True),
}
