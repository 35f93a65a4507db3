"""The output controls of SEMANTICS 7, on rows of the exact answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from uncertain_cep.testing.model import Match, Value
from uncertain_cep.testing.worlds import sort_key

_TOLERANCE = Fraction(1, 10**9)
_DIGITS = 12


def having(rows: Sequence[Match], threshold: Fraction) -> list[Match]:
    """Return the rows of ``HAVING CONFIDENCE >= threshold``: up to a relative 1e-9."""
    return [row for row in rows if row.confidence >= threshold * (1 - _TOLERANCE)]


def significant(confidence: Fraction) -> Fraction:
    """Return a confidence rounded to 12 significant digits, by which rankings and ties compare."""
    scale = Fraction(1)
    while confidence and confidence * scale < 10 ** (_DIGITS - 1):
        scale *= 10
    return round(confidence * scale) / scale


def is_clear(confidence: Fraction, error: Fraction = Fraction(1, 10**14)) -> bool:
    """Return whether a relative error leaves a confidence the same once it is rounded."""
    below, above = significant(confidence * (1 - error)), significant(confidence * (1 + error))
    return below == above == significant(confidence)


def by_falling_confidence(rows: Sequence[Match]) -> list[Match]:
    """Return the rows best first, ties in the order of their signatures."""
    return sorted(
        rows,
        key=lambda row: (-significant(row.confidence), sort_key(row.signature), repr(row.partition)),
    )


def best(rows: Sequence[Match], limit: int) -> list[Match]:
    """Return the rows of ``ORDER BY CONFIDENCE DESC LIMIT limit``."""
    return by_falling_confidence(rows)[:limit]


def non_overlapping(rows: Sequence[Match]) -> list[Match]:
    """Return the rows of ``OUTPUT NON OVERLAPPING``: greedy, in each partition apart."""
    kept: list[Match] = []
    for row in by_falling_confidence(rows):
        if all(
            row.partition != other.partition
            or row.range_upper < other.range_lower
            or row.range_lower > other.range_upper
            for other in kept
        ):
            kept.append(row)
    return kept


def expected_counts(
    rows: Sequence[Match],
    partition: Sequence[str],
    by: Sequence[str] = (),
    every: int | None = None,
) -> dict[tuple[tuple[Value, ...], int | None], Fraction]:
    """Return the answer of ``RETURN EXPECTED COUNT [BY attr, ...] [EVERY n]``.

    Parameters
    ----------
    rows : sequence of Match
    partition : sequence of str
        ``Query.partition``; the attributes of ``by`` must be among them, so that every match has one value.
    by : sequence of str
    every : int or None
        Length of a tumbling bucket in ticks; a bucket starts at every multiple of it.

    Returns
    -------
    dict
        Expected count by group values and first tick of the bucket (None without buckets).
    """
    positions = [list(partition).index(name) for name in by]
    counts: dict[tuple[tuple[Value, ...], int | None], Fraction] = defaultdict(Fraction)
    for row in rows:
        group = tuple(row.partition[position] for position in positions)
        for tick, probability in row.first_times.items():
            bucket = None if every is None else tick // every * every
            counts[group, bucket] += probability
    return dict(counts)
