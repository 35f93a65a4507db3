"""Uncertainty that depends on a column, such as the type of an event or its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, renumbered
from uncertain_cep.traces.uncertainty import Intervals, Missing, Stamps, Uncertainty

__all__ = ["ByValue", "by_value"]


@dataclass(frozen=True, slots=True)
class ByValue:
    """A rule of its own for each value of a column, such as the type of event or its source.

    Attributes
    ----------
    column : str
    rules : tuple of (str, Uncertainty)
        Values as text, each with its rule.
    otherwise : Uncertainty or None
        For all other values; None if such rows have no known uncertainty.
    """

    column: str
    rules: tuple[tuple[str, Uncertainty], ...]
    otherwise: Uncertainty | None = None

    def _all(self) -> list[Uncertainty]:
        last = [] if self.otherwise is None else [self.otherwise]
        return [rule for _, rule in self.rules] + last

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return tuple(dict.fromkeys(name for rule in self._all() for name in rule.stamps(time)))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return (
            self.column,
            *dict.fromkeys(name for rule in self._all() for name in rule.reads(time) if name != self.column),
        )

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        table = stamps.table
        given = pa.array([value for value, _ in self.rules], pa.string())
        keys = table.column(self.column).cast(pa.string())
        chosen = np.asarray(pc.fill_null(pc.index_in(keys, given), len(given)).to_numpy())
        lower, upper = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, np.int64)
        rests, floored = np.zeros(table.num_rows, np.int64), 0
        gaps: list[Missing] = []
        pieces: list[tuple[IntArray, pa.Array | None]] = []
        choices: list[Uncertainty | None] = [*(rule for _, rule in self.rules), self.otherwise]
        for number, rule in enumerate(choices):
            rows = np.flatnonzero(chosen == number)
            if rule is None:
                if len(rows):
                    gaps.append(self._unknown(chosen == number))
                pieces.append((rows, None))
                continue
            part = Stamps(table.take(pa.array(rows)), stamps.time, stamps.unit, stamps.grid)
            try:
                found = rule.intervals(part)
            except TraceError as error:
                raise TraceError(renumbered(error.faults, rows)) from None
            lower[rows], upper[rows] = found.lower, found.upper
            for gap in found.missing:
                where = np.zeros(table.num_rows, np.bool_)
                where[rows[gap.rows]] = True
                gaps.append(Missing(where, gap.column, gap.message))
            pieces.append((rows, found.pmf))
            floored += found.floored
            if found.rests is not None:
                rests[rows] = found.rests
        found_rests = rests if rests.any() else None
        return Intervals(lower, upper, tuple(gaps), _reassembled(pieces), found_rests, floored)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether all lengths of all rules are whole ticks."""
        return all(rule.is_whole(tick, schema, unit) for rule in self._all())

    def _unknown(self, rows: BoolArray) -> Missing:
        known = ", ".join(repr(value) for value, _ in self.rules)
        message = f"no uncertainty is given for this value, only for {known}: add it, or '*' for all others"
        return Missing(rows, self.column, message)


def _reassembled(pieces: Sequence[tuple[IntArray, pa.Array | None]]) -> pa.Array | None:
    if all(pmf is None for _, pmf in pieces):
        return None
    lists = pa.list_(pa.float64())
    parts = [pa.nulls(len(rows), lists) if pmf is None else pmf for rows, pmf in pieces]
    order = np.concatenate([rows for rows, _ in pieces])
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))


def by_value(column: str, rules: Mapping[str, Uncertainty], otherwise: Uncertainty | None = None) -> ByValue:
    """Give each value of a column, such as the type or the source of an event, a rule of its own.

    Examples
    --------
    >>> from uncertain_cep.traces import plus_minus, window
    >>> rule = by_value("type", {"CPU": window("15s")}, otherwise=plus_minus("5ms"))
    """
    return ByValue(column, tuple(rules.items()), otherwise)
