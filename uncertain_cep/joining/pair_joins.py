"""``uc.join``: pairs of events of two tables, moments or lasting, that belong together by their times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.executor.checked_events import names_of
from uncertain_cep.joining.joined_rows import are_on_spark, joined_rows, two_tables
from uncertain_cep.joining.near_intervals import Intervals, overlapping
from uncertain_cep.joining.two_sides import Part, TwoSides
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.query.time_conditions import FAR
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import like

__all__ = ["join", "joined"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_WITHIN: Final = re.compile(r"\s*within\s+(\S.*?)\s*", re.IGNORECASE)


class Relation(NamedTuple):
    """A relation of a left and a right event.

    Attributes
    ----------
    name : str
        Of the query language, for events that last; "" for ``within``.
    lowest, highest : int
        Bounds of the ticks from the left time to the right one, for moments.
    """

    name: str
    lowest: int
    highest: int

    def condition(self, lasting: bool) -> str:
        """Return the relation as a condition of WHERE."""
        if lasting and self.name:
            return f"l {self.name} r"
        sides = ("r.begin", "l.end"), ("r.end", "l.begin")
        highest, lowest = sides if lasting else (("r", "l"), ("r", "l"))
        # Events within a length of each other: the one that begins later does so soon behind the other's end.
        bounds = (*highest, "<=", self.highest), (*lowest, ">=", self.lowest)
        return " AND ".join(
            f"TIME({late}) - TIME({early}) {sign} {ticks}"
            for late, early, sign, ticks in bounds
            if abs(ticks) < FAR
        )

    def candidates(self, sides: TwoSides) -> tuple[Int64, Int64]:
        """Return the rows of the pairs for which the relation is possible, and perhaps of a few more."""
        begin, end = sides.ends.begin, sides.ends.end
        left, right = sides.of_left, sides.of_right
        low, high = begin[0, left], end[1, left]
        of_right = np.stack((begin[0, right], end[1, right]))
        if self.name == "BEFORE":
            low, of_right = end[0, left], begin[:, right]
        elif self.name == "AFTER":
            high, of_right = begin[1, left], end[:, right]
        reach = Intervals(sides.group[left], _moved(low, self.lowest), _moved(high, self.highest))
        return overlapping(reach, Intervals(sides.group[right], *of_right))

    @property
    def reach(self) -> tuple[int | None, int | None]:
        """Ticks before a left event, and behind it, at which a right one may be; None: any."""
        low, high = -self.lowest, self.highest
        return None if low >= FAR else max(low, 0), None if high >= FAR else max(high, 0)

    @classmethod
    def of(cls, when: str, domain: TimeDomain) -> Relation:
        """Return the relation of a name; an OptionError says that there is none."""
        if matched := _WITHIN.fullmatch(when):
            length = matched[1]
            ticks = ticks_in(int(length) if length.isdecimal() else length, domain, "within")
            return cls("", -ticks, ticks)
        if when not in _RELATIONS:
            raise OptionError(
                f"when={when!r} is unknown: use {', '.join(_RELATIONS)}, or within and a length"
            )
        return _RELATIONS[when]


_RELATIONS: Final = {
    "overlaps": Relation("OVERLAPS", 0, 0),
    "contains": Relation("CONTAINS", 0, 0),
    "during": Relation("DURING", 0, 0),
    "before": Relation("BEFORE", 1, FAR),
    "after": Relation("AFTER", -FAR, -1),
}
"""Of moments: two have a tick in common only if they are at one."""


@public
def join(
    left: Any,
    right: Any,
    on: str | Sequence[str] | None = None,
    when: str = "overlaps",
    how: str = "inner",
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    sources: bool = True,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Any:
    """Return the pairs of events of two tables whose times can be in a relation, and how likely they are.

    Parameters
    ----------
    left, right : pyarrow.Table or RecordBatchReader, pandas, Polars or Spark DataFrame
        Events as for :func:`uncertain_cep.match`, moments or such that last. Types do not matter. If one is
        of Spark, both are; its workers join them by ``on`` and by time.
    on : str or sequence of str, optional
        Columns of both in which the two rows have equal values; a null is equal to none.
    when : str
        ``overlaps`` (they have a tick in common), ``contains`` (the left event does), ``during``, ``before``,
        ``after``, or ``within`` and the most that may lie between the end of one and the begin of the other:
        ``within 5s``, ``within 20`` (ticks).
    how : {"inner", "left"}
        ``left``: also a row for each left event, with nulls for the right one, and the probability that it
        happened and no right event is its partner.
    names, tick, sources, threads, timeout, memory_limit
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    the same kind of frame as ``left``
        A row for each pair that is possible: ``left_id``, ``right_id``, the attributes of both sides
        (``_right`` is put behind names that both have), and ``probability``, float64, that both happened and
        their times are so. By rows of ``left``, then of ``right``.

    Raises
    ------
    OptionError
        If ``when`` or ``how`` has no such value, if columns or ticks of the sides do not go together, or if
        records of an ordered source overlap.
    TraceError, ConfidenceCostError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    The probabilities of the pairs of one left event sum to its expected number of partners, which is not the
    probability that it has one. Exact, as confidences are; two events of one clock move together.
    O((n + m) log m + pairs), and a confidence for each pair. Where times are uniform and share no clock, no
    cost of moments grows with ticks.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> left = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [3]})
    >>> right = pa.table({"type": ["B"] * 2, "id": [7, 8], "lower": [2, 9], "upper": [3, 9]})
    >>> for row in uc.join(left, right, when="within 1", how="left").to_pylist():
    ...     print(row)
    {'left_id': 1, 'right_id': 7, 'probability': 0.625}
    {'left_id': 1, 'right_id': None, 'probability': 0.375}
    """
    options = MatchOptions.among(locals())
    if are_on_spark(left, right, options):
        from uncertain_cep.joining.spark_joins import joined_frames

        def reach(domain: TimeDomain) -> tuple[int | None, int | None]:
            return Relation.of(when, domain).reach

        compute = partial(joined, on=names_of(on), when=when, how=how)
        return joined_frames(left, right, names_of(on), reach, compute, options)
    return like(joined(*two_tables(left, right, options), names_of(on), when, how, options), left)


def joined(
    left: pa.Table, right: pa.Table, on: Sequence[str], when: str, how: str, options: MatchOptions
) -> pa.Table:
    """Do what :func:`join` does for tables of events, with its options in one."""
    if how not in ("inner", "left"):
        raise OptionError(f"how={how!r} is unknown: use inner or left")
    with looked_at(options.limit):
        sides = TwoSides.of(left, right, on, options)
        relation = Relation.of(when, sides.events.plan.domain)
        rows = _pairs(sides, relation, with_none=how == "left", threads=options.threads)
        return joined_rows(sides, options.names, on, *rows)


def _pairs(
    sides: TwoSides, relation: Relation, *, with_none: bool, threads: int | None
) -> tuple[Int64, Int64, Float64]:
    """Return the rows of both sides, and the probabilities, of pairs that are possible."""
    x, y = relation.candidates(sides)
    where = " AND ".join(["[part]", relation.condition(lasting=bool(sides.ends.columns))])
    none = np.zeros(0, np.int64)
    parts = [(none, none, np.zeros(0))]
    # Each pair is looked at apart: nothing else decides it.
    pair = Part(x, np.arange(len(x)), y, np.arange(len(x)))
    parts += sides.confidences(pair, f"PATTERN AND(left l, right r) WHERE {where}", threads)
    if with_none:
        everyone = np.arange(sides.left.num_rows)
        alone = f"PATTERN AND(left l, !right r) WHERE {where}"
        parts += sides.confidences(Part(everyone, everyone, y, x), alone, threads)
    rows, partners, probability = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return rows, partners, probability


def _moved(ticks: Int64, by: int) -> Int64:
    """Return ticks moved by a length, at most as far as FAR."""
    return np.clip(ticks, -FAR, FAR) + by if abs(by) < FAR else np.full_like(ticks, by)
