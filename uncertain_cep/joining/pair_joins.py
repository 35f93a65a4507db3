"""``uc.join``: pairs of events of two tables that belong together by their times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.executor.checked_events import names_of
from uncertain_cep.joining.joined_rows import joined_rows, two_tables
from uncertain_cep.joining.near_intervals import Intervals, overlapping
from uncertain_cep.joining.two_sides import Part, TwoSides
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.query.time_conditions import FAR
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import like

__all__ = ["join"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_WITHIN: Final = re.compile(r"\s*within\s+(\S.*?)\s*", re.IGNORECASE)


class Relation(NamedTuple):
    """Bounds of the ticks from the left time to the right one: ``lowest <= t_right - t_left <= highest``."""

    lowest: int
    highest: int

    @property
    def conditions(self) -> list[str]:
        """The relation as conditions of WHERE."""
        bounds = (">=", self.lowest), ("<=", self.highest)
        return [f"TIME(r) - TIME(l) {sign} {ticks}" for sign, ticks in bounds if abs(ticks) < FAR]

    @classmethod
    def of(cls, when: str, domain: TimeDomain) -> Relation:
        """Return the relation of a name; an OptionError says that there is none."""
        if matched := _WITHIN.fullmatch(when):
            length = matched[1]
            ticks = ticks_in(int(length) if length.isdecimal() else length, domain, "within")
            return cls(-ticks, ticks)
        if when not in _RELATIONS:
            raise OptionError(
                f"when={when!r} is unknown: use {', '.join(_RELATIONS)}, or within and a length"
            )
        return _RELATIONS[when]


_RELATIONS: Final = {
    "overlaps": Relation(0, 0),
    "contains": Relation(0, 0),
    "during": Relation(0, 0),
    "before": Relation(1, FAR),
    "after": Relation(-FAR, -1),
}
"""Of points: two have a tick in common only if they are at one."""


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
    left, right : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        Events as for :func:`uncertain_cep.match`. Types do not matter.
    on : str or sequence of str, optional
        Columns of both in which the two rows have equal values; a null is equal to none.
    when : str
        ``before`` (the left event is), ``after``, ``overlaps``, ``contains`` or ``during`` (moments have a
        tick in common only if they are at the same one), or ``within`` and the most that may lie between
        the two: ``within 5s``, ``within 20`` (ticks).
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
    O((n + m) log m + pairs), and a confidence for each pair. With ``how="left"`` a left event costs more
    the more ticks its interval has, unless no right event is near.

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
    if how not in ("inner", "left"):
        raise OptionError(f"how={how!r} is unknown: use inner or left")
    keys = names_of(on)
    with looked_at(options.limit):
        sides = TwoSides.of(*two_tables(left, right, options), keys, options)
        relation = Relation.of(when, sides.events.plan.domain)
        rows = _pairs(sides, relation, with_none=how == "left", threads=threads)
        return like(joined_rows(sides, options.names, keys, *rows), left)


def _pairs(
    sides: TwoSides, relation: Relation, *, with_none: bool, threads: int | None
) -> tuple[Int64, Int64, Float64]:
    """Return the rows of both sides, and the probabilities, of pairs that are possible."""
    times = sides.events.times
    left, right = sides.of_left, sides.of_right
    low = _moved(times.lower[left], relation.lowest)
    reach = Intervals(sides.group[left], low, _moved(times.upper[left], relation.highest))
    x, y = overlapping(reach, Intervals(sides.group[right], times.lower[right], times.upper[right]))
    where = " AND ".join(["[part]", *relation.conditions])
    none = np.zeros(0, np.int64)
    parts = [(none, none, np.zeros(0))]
    # Each pair is looked at apart: nothing else decides it.
    pair = Part(x, np.arange(len(x)), y, np.arange(len(x)))
    parts += sides.confidences(pair, f"PATTERN AND(left l, right r) WHERE {where}", threads)
    if with_none:
        everyone = np.arange(len(low))
        alone = f"PATTERN AND(left l, !right r) WHERE {where}"
        parts += sides.confidences(Part(everyone, everyone, y, x), alone, threads)
    rows, partners, probability = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return rows, partners, probability


def _moved(ticks: Int64, by: int) -> Int64:
    """Return ticks moved by a length, at most as far as FAR."""
    return np.clip(ticks, -FAR, FAR) + by if abs(by) < FAR else np.full_like(ticks, by)
